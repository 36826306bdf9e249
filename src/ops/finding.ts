/** A danger that boot and `svc check` see, and how to mend it. */

export interface Finding {
  readonly level: 'warning' | 'error'
  /** What is the case, and what can come of it. */
  readonly message: string
  /** What to do: a sentence, or SQL that can be pasted. */
  readonly fix: string
}

/** Under `strict`, and from `svc check`, what boot would only warn about is an error (decisions 1). */
export function asErrors(findings: readonly Finding[]): readonly Finding[] {
  return findings.map(finding => ({ ...finding, level: 'error' }))
}

export function printFinding(finding: Finding): string {
  return `${finding.level}: ${finding.message}\n  ${finding.fix.replaceAll('\n', '\n  ')}`
}
