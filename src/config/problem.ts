/** A problem of a configuration, and its message. */

export interface Problem {
  /** The file as it was named, or `environment`. */
  readonly source: string
  /** The line, from 1; null if the problem concerns the whole source. */
  readonly line: number | null
  /**
   * The name of the rule that contains the problem, such as `trigger "orders"`; null or absent in files
   * whose rules have no names.
   */
  readonly rule?: string | null
  /**
   * The dotted key, or the name of the environment variable; null if the problem concerns the whole source.
   */
  readonly key: string | null
  /** The problem and what was expected. Never contains a value that could be a secret. */
  readonly message: string
  /** The known key that was probably intended; null if none is similar. */
  readonly nearest: string | null
}

/** Contains every problem, so that one start reports them all. */
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
