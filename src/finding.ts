/** A problem that boot or `svc check` reports, and its fix. */

export interface Finding {
  readonly level: Severity
  /** The problem, and its consequences. */
  readonly message: string
  /** The fix: a sentence, or SQL that can be pasted. */
  readonly fix: string
  /** The name of the check in docs/reference/checks.md; none if it was found in another way. */
  readonly check?: string
  /** All objects that have the problem; the message may name only the first. */
  readonly objects?: readonly string[]
  /** All statements of the fix, in order. */
  readonly sql?: readonly string[]
}

/** A note is for information only and never makes a check fail. */
export type Severity = 'note' | 'warning' | 'error'

/** Turns warnings into errors, for `strict`. Notes stay notes. */
export function asErrors(findings: readonly Finding[]): readonly Finding[] {
  return findings.map(finding => (finding.level === 'note' ? finding : { ...finding, level: 'error' }))
}

/** Turns errors into warnings: at boot without `strict`, they are reported and the gateway starts. */
export function asWarnings(findings: readonly Finding[]): readonly Finding[] {
  return findings.map(finding => (finding.level === 'note' ? finding : { ...finding, level: 'warning' }))
}

/** Findings as JSON; fields are only ever added to it. */
export interface FindingReport {
  readonly errors: number
  readonly warnings: number
  /** Notes, which never cause a failure. */
  readonly notes: number
  /** The number of objects that `accepted_findings` excludes. */
  readonly accepted: number
  readonly findings: readonly ReportedFinding[]
}

/** A finding with all of its fields. */
export interface ReportedFinding extends Required<Omit<Finding, 'check'>> {
  /** The name of the check; null for a finding that no check of docs/reference/checks.md made. */
  readonly check: string | null
}

/** Errors first. */
export function reportFindings(findings: readonly Finding[], accepted: number): FindingReport {
  const reported = findings.map(
    ({ level, check = null, message, fix, objects = [], sql = [] }): ReportedFinding => ({
      ...{ level, check, message, fix, objects, sql },
    }),
  )
  const of = (wanted: Severity) => reported.filter(({ level }) => level === wanted)
  const [errors, warnings, notes] = [of('error'), of('warning'), of('note')]
  return {
    ...{ errors: errors.length, warnings: warnings.length, notes: notes.length, accepted },
    findings: [...errors, ...warnings, ...notes],
  }
}

export function printFinding({ level, message, fix, check }: Finding): string {
  const name = check === undefined ? '' : ` [${check}]`
  return `${level}: ${message}${name}\n  ${fix.replaceAll('\n', '\n  ')}`
}
