/**
 * The totals of one statement: joins, relations, expressions, bytes, patterns and products of long numbers.
 * Each is rejected beyond its limit.
 * PostgreSQL merges subqueries into the statement around them, so a mention of a column that a subquery
 * computes is replaced by the whole expression. A few hundred bytes of text (`a + a as a`, twenty times)
 * would become millions of expressions; therefore each mention counts as the whole expression (`Growth`).
 */

import type { InlinedBody } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Join, Span } from '../language/tree/ast.ts'
import { LIMIT_NAMES, STATEMENT_LIMITS, type StatementLimits } from '../statement-limits.ts'

/** The size that each mention of an expression adds to a statement. */
export interface Growth {
  /** Nodes of the tree. */
  readonly terms: number
  /** Relations of the subqueries in the expression. */
  readonly relations: number
  /** Bytes of literals, parameters and built values. */
  readonly bytes: number
  /** Bytes of the patterns that `like` searches for. */
  readonly patternBytes: number
  /** Multiplications and divisions, weighted by their steps: 1 for two numbers of full size. */
  readonly products: number
  /** Mentions of columns whose values can be large. */
  readonly mentions: number
  /** Copies of such values that functions and operators make for one row. */
  readonly copies: number
}

/** The growth of an expression that adds nothing. */
export const NO_GROWTH: Growth = {
  terms: 0,
  relations: 0,
  bytes: 0,
  patternBytes: 0,
  products: 0,
  mentions: 0,
  copies: 0,
}

/** The sum of two growths. */
export function sumOf(a: Growth, b: Growth): Growth {
  return combined(a, b, 1)
}

function combined(a: Growth, b: Growth, sign: 1 | -1): Growth {
  return {
    terms: a.terms + sign * b.terms,
    relations: a.relations + sign * b.relations,
    bytes: a.bytes + sign * b.bytes,
    patternBytes: a.patternBytes + sign * b.patternBytes,
    products: a.products + sign * b.products,
    mentions: a.mentions + sign * b.mentions,
    copies: a.copies + sign * b.copies,
  }
}

/** How many values of the largest size all expressions of a statement can build together for one row. */
const BUILT_VALUES_MAX = 64

/** Built values and literals of this size together count as one copy. */
const BYTES_OF_COPY = 1_048_576

/** The running totals of one statement. */
export class Tally {
  readonly limits: StatementLimits
  /** Bytes that all expressions together can build for one row. */
  readonly bytesMax: number
  #terms = 0
  #relations = 0
  #bytes = 0
  #patternBytes = 0
  #products = 0
  #mentions = 0
  #copies = 0

  constructor(limits: StatementLimits = STATEMENT_LIMITS) {
    this.limits = limits
    this.bytesMax = limits.maxBuiltValueBytes * BUILT_VALUES_MAX
  }

  /** The totals so far; `since` returns the difference. */
  mark(): Growth {
    return {
      terms: this.#terms,
      relations: this.#relations,
      bytes: this.#bytes,
      patternBytes: this.#patternBytes,
      products: this.#products,
      mentions: this.#mentions,
      copies: this.#copies,
    }
  }

  since(before: Growth): Growth {
    return combined(this.mark(), before, -1)
  }

  add({ terms, relations, bytes, patternBytes, products, mentions, copies }: Growth, span?: Span): void {
    this.addTerms(terms, span)
    this.addRelations(relations, span)
    this.addBytes(bytes, span)
    this.addPattern(patternBytes, span)
    this.addProducts(products, span)
    this.#mentions += mentions
    this.addCopies(copies, span)
  }

  addTerms(count: number, span?: Span): void {
    this.#terms += count
    const { maxExpressions } = this.limits
    if (this.#terms <= maxExpressions || maxExpressions === 0) return
    throw limitExceeded(
      `the query expands to more than ${maxExpressions} expressions once its subqueries and the bodies of ` +
        `functions are merged (${LIMIT_NAMES.maxExpressions}); mention computed columns and nest calls less often`,
      span,
      'maxExpressions',
    )
  }

  /** Counts a call that PostgreSQL may replace by the body of the function, which repeats the arguments. */
  addInlined({ terms, uses }: InlinedBody, args: readonly { readonly growth: Growth }[], span: Span): void {
    this.addTerms(terms, span)
    for (const { growth } of args) {
      this.addTerms((uses - 1) * growth.terms, span)
      this.addBytes((uses - 1) * growth.bytes, span)
    }
  }

  addRelations(count: number, span?: Span): void {
    this.#relations += count
    const { maxRelations } = this.limits
    if (this.#relations <= maxRelations || maxRelations === 0) return
    throw limitExceeded(
      `the query reads from more than ${maxRelations} relations (${LIMIT_NAMES.maxRelations}), counting ` +
        'subqueries and the tables behind views and policies; read from fewer',
      span,
      'maxRelations',
    )
  }

  addBytes(count: number, span?: Span): void {
    this.#bytes += count
    if (this.#bytes <= this.bytesMax || this.bytesMax === 0) return
    throw limitExceeded(
      `the expressions of the query could build more than ${this.bytesMax} bytes for one row, ` +
        `${BUILT_VALUES_MAX} times ${LIMIT_NAMES.maxBuiltValueBytes}; build fewer or smaller values`,
      span,
      'maxBuiltValueBytes',
    )
  }

  addPattern(bytes: number, span?: Span): void {
    this.#patternBytes += bytes
    const { maxPatternBytes } = this.limits
    if (this.#patternBytes <= maxPatternBytes || maxPatternBytes === 0) return
    throw limitExceeded(patternsTooLong(maxPatternBytes), span, 'maxPatternBytes')
  }

  addProducts(count: number, span?: Span): void {
    this.#products += count
    const { maxNumericProducts } = this.limits
    if (this.#products <= maxNumericProducts || maxNumericProducts === 0) return
    throw limitExceeded(
      `the query multiplies and divides numbers of any length more than ${maxNumericProducts} times ` +
        `(${LIMIT_NAMES.maxNumericProducts}); declare their number of digits or another ` +
        'type, as in (…)::numeric(20, 4) or (…)::float8',
      span,
      'maxNumericProducts',
    )
  }

  /** Counts a mention of a value that can be large, in multiples of an ordinary one. */
  addMentions(count: number): void {
    this.#mentions += count
  }

  /** Forgets the mentions since `before`: the result of an expression is small, whatever its operands are. */
  forgetMentions(before: Growth): void {
    this.#mentions = before.mentions
  }

  /**
   * Counts the copies that an operator or function makes of everything mentioned since `before`: `times` of
   * each. PostgreSQL frees them after the row.
   */
  copySince(before: Growth, times: number, span: Span): void {
    const { mentions, bytes } = this.since(before)
    this.addCopies(times * (mentions + bytes / BYTES_OF_COPY), span)
  }

  addCopies(count: number, span?: Span): void {
    this.#copies += count
    const { maxCopiedValues } = this.limits
    if (this.#copies <= maxCopiedValues || maxCopiedValues === 0) return
    throw limitExceeded(
      `the functions and operators of the query copy more than ${maxCopiedValues} values for one row ` +
        `(${LIMIT_NAMES.maxCopiedValues}); each "||" copies everything before it: join many texts with concat(…)`,
      span,
      'maxCopiedValues',
    )
  }

  assertJoins(joins: readonly Join[]): void {
    const { maxJoins } = this.limits
    if (joins.length <= maxJoins || maxJoins === 0) return
    throw limitExceeded(
      `the query joins ${joins.length} tables at one level, more than the ` +
        `${maxJoins} of ${LIMIT_NAMES.maxJoins}; join fewer`,
      joins[maxJoins]?.span,
      'maxJoins',
    )
  }
}

/** The message for patterns that are, in total, too long. */
export function patternsTooLong(bytesMax: number): string {
  return (
    `the patterns of like and ilike are longer than ${bytesMax} bytes together, from the first % of each ` +
    `(${LIMIT_NAMES.maxPatternBytes}); search for a shorter text`
  )
}

/** The error for a statement above a limit; `limit` names the setting. */
export function limitExceeded(message: string, span: Span | undefined, limit?: keyof StatementLimits): GatewayError {
  return new GatewayError('PARSE_ERROR', message, {
    ...(span === undefined ? {} : { span }),
    ...(limit === undefined ? {} : { limit: LIMIT_NAMES[limit] }),
  })
}
