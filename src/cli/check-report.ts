/** Prints the findings of `svc check`, as text and as JSON. */
import { type Finding, type FindingReport, printFinding, reportFindings, type Severity } from '../finding.ts'
import { type Style, styled } from './style.ts'

/** The object of `svc check --json`; fields are only ever added to it. */
export interface CheckReport extends FindingReport {
  /** The configuration file, or null. */
  readonly file: string | null
  /** The effective settings of the connection URLs, as text lines. */
  readonly connections: readonly string[]
}

interface Found extends Pick<CheckReport, 'accepted' | 'connections'> {
  readonly findings: readonly Finding[]
}

/** Errors first. */
export function reportOf(file: string | null, { findings, accepted, connections }: Found): CheckReport {
  return { file, ...reportFindings(findings, accepted), connections }
}

const STYLES: Readonly<Record<Severity, Style>> = { error: ['red', 'bold'], warning: ['yellow', 'bold'], note: 'bold' }

export function printReport(
  { file, findings, errors, warnings, notes, accepted, connections }: CheckReport,
  output: { readonly hasColors: boolean },
): readonly string[] {
  const counts = [
    ...[count(errors, 'error'), count(warnings, 'warning')],
    ...(notes > 0 ? [count(notes, 'note')] : []),
    ...(accepted > 0 ? [`${accepted} accepted`] : []),
  ]
  return [
    ...findings.map(({ check, ...finding }) =>
      printFinding(check === null ? finding : { check, ...finding }).replace(/^\w+:/, word =>
        styled(STYLES[finding.level], word, output),
      ),
    ),
    ...connections,
    `${file ?? 'no configuration file'}: ${counts.join(', ')}`,
  ]
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}
