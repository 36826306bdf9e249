/** A shape request that is refused because of one of its parameters. */
export class ShapeProblem extends Error {
  /** The name of the parameter. */
  readonly parameter: string

  constructor(parameter: string, message: string) {
    super(message)
    this.name = 'ShapeProblem'
    this.parameter = parameter
  }
}
