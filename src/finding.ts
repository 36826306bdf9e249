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

export function printFinding({ level, message, fix, check }: Finding): string {
  const name = check === undefined ? '' : ` [${check}]`
  return `${level}: ${message}${name}\n  ${fix.replaceAll('\n', '\n  ')}`
}
