/**
 * The values of a request, kept apart from its tree. The tree contains `$1 …` in place of values and
 * therefore depends on the request shape only, so one statement serves every request with the same plan key
 * (`plan-key.ts`).
 */
import type { StatementValue } from '../compile/statement.ts'
import type { Parameter } from '../language/tree/ast.ts'
import { NOWHERE } from '../language/tree/ast.ts'

/** Collects the values of one request. */
export class Values {
  readonly #all: StatementValue[] = []

  /** Adds a value and returns the parameter that represents it in the tree. */
  add(value: StatementValue): Parameter {
    this.#all.push(value)
    return { kind: 'position', n: this.#all.length, span: NOWHERE }
  }

  /** All values; element n − 1 is the value of `$n`. */
  get all(): readonly StatementValue[] {
    return this.#all
  }
}
