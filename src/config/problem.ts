/** What is wrong with a configuration, and how it is said. */

export interface Problem {
  /** The file as it was named, or `environment`. */
  readonly source: string
  /** From 1; null when the whole source is meant. */
  readonly line: number | null
  /**
   * The name of the rule it is in, such as `trigger "orders"`; null or absent in files whose rules have no
   * names.
   */
  readonly rule?: string | null
  /** The dotted key, or the name of the environment variable; null when the whole source is meant. */
  readonly key: string | null
  /** What is wrong and what was expected. Never a value that could be a secret. */
  readonly message: string
  /** The known key that was probably meant. */
  readonly nearest: string | null
}

/** Holds every problem that was found, so that nobody has to start ten times to mend ten lines. */
export class ConfigError extends Error {
  readonly problems: readonly Problem[]

  constructor(problems: readonly Problem[]) {
    super(problems.map(printProblem).join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}

/** `svc.toml:12: gateway.max_filter: unknown key; did you mean gateway.max_filters?` */
export function printProblem(problem: Problem): string {
  const place = problem.line === null ? problem.source : `${problem.source}:${problem.line}`
  const rule = problem.rule == null ? '' : ` ${problem.rule}:`
  const subject = problem.key === null ? '' : ` ${problem.key}:`
  const suggestion = problem.nearest === null ? '' : `; did you mean ${problem.nearest}?`
  return `${place}:${rule}${subject} ${problem.message}${suggestion}`
}
