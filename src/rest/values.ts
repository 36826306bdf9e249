/**
 * The values of a request, apart from its tree. The tree holds `$1 …` in place of every value, so it depends on the shape of the request alone: the statement of
 * one request serves the next that has the same plan key (`plan-key.ts`).
 */
import type { StatementValue } from '../compile/statement.ts'
import type { Parameter } from '../language/tree/ast.ts'
import { NOWHERE } from '../language/tree/ast.ts'

export class Values {
  readonly #all: StatementValue[] = []

  /** Adds a value and returns its place in the tree. */
  add(value: StatementValue): Parameter {
    this.#all.push(value)
    return { kind: 'position', n: this.#all.length, span: NOWHERE }
  }

  /** Element n − 1 belongs to `$n`. */
  get all(): readonly StatementValue[] {
    return this.#all
  }
}
