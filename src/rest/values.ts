/**
 * The values of a request, kept apart from its tree. The tree contains `$1 …` in place of values and
 * therefore depends on the request shape only, so one statement serves every request with the same plan key
 * (`plan-key.ts`).
 */
import type { StatementValue } from '../compile/statement.ts'
import type { Parameter } from '../language/tree/ast.ts'
import { NOWHERE } from '../language/tree/ast.ts'
import { finish, isPending, type PendingValue } from './body/text-values.ts'

/** Collects the values of one request. */
export class Values {
  readonly #all: PendingValue[]

  /** Begins with the values of `others`. */
  constructor(others: Values | null = null) {
    this.#all = others === null ? [] : [...others.#all]
  }

  /** Adds a value and returns the parameter that represents it in the tree. */
  add(value: PendingValue): Parameter {
    this.#all.push(value)
    return { kind: 'position', n: this.#all.length, span: NOWHERE }
  }

  /** Reports whether all values are finished. */
  get isReady(): boolean {
    return !this.#all.some(isPending)
  }

  /** Finishes large values in several turns of the event loop. */
  async finish(): Promise<void> {
    for (const [index, value] of this.#all.entries()) {
      if (!isPending(value)) continue
      await finish(value)
      this.#all[index] = value.bytes()
    }
  }

  /** Finishes all values at once; for messages of a few KB. */
  finished(): readonly StatementValue[] {
    for (const [index, value] of this.#all.entries()) {
      if (!isPending(value)) continue
      value.run(Number.POSITIVE_INFINITY)
      this.#all[index] = value.bytes()
    }
    return this.all
  }

  /** All values, once they are ready; element n − 1 is the value of `$n`. */
  get all(): readonly StatementValue[] {
    return this.#all as readonly StatementValue[]
  }
}
