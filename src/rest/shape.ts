/**
 * A request taken apart into what it is (the shape) and what fills it (the values).
 *
 * The tree that the parsers of this folder build holds parameters `$1 …` in place of every value, so it depends on the shape
 * alone. The key names the shape: two requests with equal keys have equal trees, and the printed statement of the first serves the
 * second.
 */

import type { StatementValue } from '../compile/statement.ts'
import type { Parameter } from '../language/tree/ast.ts'
import { NOWHERE } from '../language/tree/ast.ts'

export class Shape {
  #key: string
  readonly #values: StatementValue[] = []

  constructor(start: string) {
    this.#key = start
  }

  /** Adds structure. Parts are separated by NUL, which no request text can contain (see `decodePercent`). */
  add(part: string): void {
    this.#key += `\0${part}`
  }

  /** Adds a value and returns its place in the tree. Parsers that add structure for it do so themselves. */
  value(value: StatementValue): Parameter {
    this.#values.push(value)
    return { kind: 'position', n: this.#values.length, span: NOWHERE }
  }

  get key(): string {
    return this.#key
  }

  /** Element n − 1 belongs to `$n`. */
  get values(): readonly StatementValue[] {
    return this.#values
  }
}
