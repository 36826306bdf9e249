/** Prints the findings of `svc check`, as text and as JSON. */
import { type Finding, printFinding, type Severity } from '../finding.ts'

/** The object of `svc check --json`; fields are only ever added to it. */
export interface CheckReport {
  /** The configuration file, or null. */
  readonly file: string | null
  readonly errors: number
  readonly warnings: number
  /** They fail nothing. */
  readonly notes: number
  /** The number of objects that `accepted_findings` excludes. */
  readonly accepted: number
  readonly findings: readonly ReportedFinding[]
  /** The effective settings of the connection URLs, as text lines. */
  readonly connections: readonly string[]
}

interface ReportedFinding extends Required<Omit<Finding, 'check'>> {
  /** The name of the check; null for a finding that no check of docs/reference/checks.md made. */
  readonly check: string | null
}

interface Found extends Pick<CheckReport, 'accepted' | 'connections'> {
  readonly findings: readonly Finding[]
}

/** Errors first. */
export function reportOf(file: string | null, found: Found): CheckReport {
  const { findings, accepted, connections } = found
  const reported = findings.map(
    ({ level, check = null, message, fix, objects = [], sql = [] }): ReportedFinding => ({
      ...{ level, check, message, fix, objects, sql },
    }),
  )
  const of = (wanted: Severity) => reported.filter(({ level }) => level === wanted)
  const [errors, warnings, notes] = [of('error'), of('warning'), of('note')]
  return {
    ...{ file, errors: errors.length, warnings: warnings.length, notes: notes.length, accepted },
    findings: [...errors, ...warnings, ...notes],
    connections,
  }
}

export function printReport({
  file,
  findings,
  errors,
  warnings,
  notes,
  accepted,
  connections,
}: CheckReport): readonly string[] {
  const counts = [
    ...[count(errors, 'error'), count(warnings, 'warning')],
    ...(notes > 0 ? [count(notes, 'note')] : []),
    ...(accepted > 0 ? [`${accepted} accepted`] : []),
  ]
  return [
    ...findings.map(({ check, ...finding }) => printFinding(check === null ? finding : { check, ...finding })),
    ...connections,
    `${file ?? 'no configuration file'}: ${counts.join(', ')}`,
  ]
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}
