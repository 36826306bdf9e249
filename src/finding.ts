/** A danger, or something to mend, that boot and `svc check` see; and what to do about it. */

export interface Finding {
  readonly level: Level
  /** What is the case, and what can come of it. */
  readonly message: string
  /** What to do: a sentence, or SQL that can be pasted. */
  readonly fix: string
  /** The check that found it, by its name in docs/reference/checks.md; what is found in other ways has none. */
  readonly check?: string
  /** What it was found in, all of it, where the message may name only the first. */
  readonly objects?: readonly string[]
  /** The statements that mend it, all of them, in order. */
  readonly sql?: readonly string[]
}

/** A note is worth knowing and fails nothing. */
export type Level = 'note' | 'warning' | 'error'

/** Under `strict` every warning is an error. Notes stay notes. */
export function asErrors(findings: readonly Finding[]): readonly Finding[] {
  return findings.map(finding => (finding.level === 'note' ? finding : { ...finding, level: 'error' }))
}

/** At boot, without `strict`, a danger is told and the gateway starts. */
export function asWarnings(findings: readonly Finding[]): readonly Finding[] {
  return findings.map(finding => (finding.level === 'note' ? finding : { ...finding, level: 'warning' }))
}

export function printFinding({ level, message, fix, check }: Finding): string {
  const name = check === undefined ? '' : ` [${check}]`
  return `${level}: ${message}${name}\n  ${fix.replaceAll('\n', '\n  ')}`
}
