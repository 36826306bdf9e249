/**
 * What one statement adds up to: joins, relations, expressions and bytes, each refused beyond its limit.
 *
 * PostgreSQL merges subqueries into the statement around them, so a column that a subquery computes stands for its whole expression wherever it is
 * mentioned. A few hundred bytes of text – `a + a as a`, twenty times – would become millions of expressions; a mention therefore counts for all that
 * the column stands for (`Growth`).
 */

import { GatewayError } from '../errors.ts'
import type { Join, Span } from '../language/tree/ast.ts'
import { LIMIT_NAMES, STATEMENT_LIMITS, type StatementLimits } from '../statement-limits.ts'

/** The size that an expression adds to a statement with each mention. */
export interface Growth {
  /** Nodes of the tree. */
  readonly terms: number
  /** Relations of the subqueries in it. */
  readonly relations: number
  /** Of literals, parameters and built values. */
  readonly bytes: number
}

export const NO_GROWTH: Growth = { terms: 0, relations: 0, bytes: 0 }

export function sumOf(a: Growth, b: Growth): Growth {
  return { terms: a.terms + b.terms, relations: a.relations + b.relations, bytes: a.bytes + b.bytes }
}

/** A text has 16 384 tokens at most; what is above that comes from columns that stand for expressions. Planning 32 768 of them took 0.2 s and 50 MB. */
const TERMS_MAX = 32_768

/** Values of the largest size that all expressions of a statement may build together for one row. */
const BUILT_VALUES_MAX = 64

export class Tally {
  readonly limits: StatementLimits
  /** Bytes that all expressions together may build for one row. */
  readonly bytesMax: number
  #terms = 0
  #relations = 0
  #bytes = 0

  constructor(limits: StatementLimits = STATEMENT_LIMITS) {
    this.limits = limits
    this.bytesMax = limits.maxBuiltValueBytes * BUILT_VALUES_MAX
  }

  /** So far; `since` says what came after. */
  mark(): Growth {
    return { terms: this.#terms, relations: this.#relations, bytes: this.#bytes }
  }

  since({ terms, relations, bytes }: Growth): Growth {
    return { terms: this.#terms - terms, relations: this.#relations - relations, bytes: this.#bytes - bytes }
  }

  add({ terms, relations, bytes }: Growth, span?: Span): void {
    this.addTerms(terms, span)
    this.addRelations(relations, span)
    this.addBytes(bytes, span)
  }

  addTerms(count: number, span?: Span): void {
    this.#terms += count
    if (this.#terms <= TERMS_MAX) return
    throw refused(
      `the query stands for more than ${TERMS_MAX} expressions once its subqueries are merged; mention computed columns less often`,
      span,
    )
  }

  addRelations(count: number, span?: Span): void {
    this.#relations += count
    const { maxRelations } = this.limits
    if (this.#relations <= maxRelations || maxRelations === 0) return
    throw refused(
      `the query reads from more than ${maxRelations} relations (${LIMIT_NAMES.maxRelations}), counting subqueries and the tables behind views and policies; read from fewer`,
      span,
      'maxRelations',
    )
  }

  addBytes(count: number, span?: Span): void {
    this.#bytes += count
    if (this.#bytes <= this.bytesMax || this.bytesMax === 0) return
    throw refused(
      `the expressions of the query could build more than ${this.bytesMax} bytes for one row, ${BUILT_VALUES_MAX} times ${LIMIT_NAMES.maxBuiltValueBytes}; build fewer or smaller values`,
      span,
      'maxBuiltValueBytes',
    )
  }

  assertJoins(joins: readonly Join[]): void {
    const { maxJoins } = this.limits
    if (joins.length <= maxJoins || maxJoins === 0) return
    throw refused(
      `the query joins ${joins.length} tables at one level, more than the ${maxJoins} of ${LIMIT_NAMES.maxJoins}; join fewer`,
      joins[maxJoins]?.span,
      'maxJoins',
    )
  }
}

export function refused(message: string, span: Span | undefined, limit?: keyof StatementLimits): GatewayError {
  return new GatewayError('PARSE_ERROR', message, {
    ...(span === undefined ? {} : { span }),
    ...(limit === undefined ? {} : { limit: LIMIT_NAMES[limit] }),
  })
}
