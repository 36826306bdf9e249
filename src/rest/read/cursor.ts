/**
 * The opaque cursor of a row, in `next_cursor` and `cursor` (docs/reference/reading.md#order-and-pages,
 * decision 0006).
 *
 * A cursor is the base64url encoding of the JSON array `[digest, …values]`: the text of the row's sort
 * values, null for NULL, after a digest of these values and of what the list was sorted by. The digest is
 * keyed. It makes a cursor of another table or sort, an altered cursor and an invented cursor an error.
 */
import { createHmac } from 'node:crypto'
import { GatewayError } from '../../errors.ts'
import type { Expression, Order } from '../../language/tree/ast.ts'
import { and, compare, isNull, literal, or, row } from '../../language/tree/build.ts'

/** The sort values of a row as text; null for NULL. */
export type CursorValues = readonly (string | null)[]

/** Limit on the length of a cursor. A row whose sort values need more has no cursor. */
const CURSOR_CHARACTERS_MAX = 8_192

const DIGEST_CHARACTERS = 16

/** Encodes and verifies cursors. */
export interface CursorCodec {
  /** The cursor of these values, or null if it would be too long. */
  encode(scope: string, values: CursorValues): string | null
  /**
   * The values of a cursor, not yet verified. They are needed first because the statement depends on which of
   * them are null.
   * @throws {GatewayError} `PARSE_ERROR` for a malformed cursor.
   */
  decode(cursor: string): { readonly digest: string; readonly values: CursorValues }
  /** @throws {GatewayError} `PARSE_ERROR` unless `encode` made `digest` for this scope and these values. */
  verify(scope: string, digest: string, values: CursorValues): void
}

/**
 * Creates a codec. A scope names the table and the sort. All gateways that serve the same clients need the
 * same `key`.
 */
export function createCursorCodec(key: string): CursorCodec {
  const digestOf = (scope: string, values: CursorValues): string =>
    createHmac('sha256', key)
      .update(JSON.stringify([scope, ...values]))
      .digest('base64url')
      .slice(0, DIGEST_CHARACTERS)
  return {
    encode(scope, values) {
      const cursor = toBase64url([digestOf(scope, values), ...values])
      return cursor.length <= CURSOR_CHARACTERS_MAX ? cursor : null
    },
    decode(cursor) {
      const parsed = cursor.length <= CURSOR_CHARACTERS_MAX ? parseExactly(cursor) : null
      if (!Array.isArray(parsed) || parsed.length < 2 || !parsed.every(isText)) throw invalidCursor()
      const [digest, ...values] = parsed
      if (typeof digest !== 'string') throw invalidCursor()
      return { digest, values }
    },
    verify(scope, digest, values) {
      if (digest !== digestOf(scope, values)) throw invalidCursor()
    },
  }
}

/**
 * Parses exactly what `encode` writes; null for anything else. Buffer ignores characters that are not
 * base64url, and JSON ignores white space.
 */
function parseExactly(cursor: string): unknown {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    return toBase64url(parsed) === cursor ? parsed : null
  } catch {
    return null
  }
}

function toBase64url(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/** Cursors made by the gateway never contain NUL. */
function isText(value: unknown): value is string | null {
  return value === null || (typeof value === 'string' && !value.includes('\0'))
}

/** Creates the error for a cursor that cannot be used. */
export function invalidCursor(): GatewayError {
  return new GatewayError(
    'PARSE_ERROR',
    'the cursor does not belong to this table and sort, or was altered; ' +
      'use next_cursor of the previous page with the same sort, or omit the cursor to start again',
  )
}

/** A sort key and its value in the last row. The value is null for NULL. */
export interface CursorKey {
  readonly order: Order
  readonly value: Expression | null
  readonly nullable: boolean
}

/**
 * Builds the condition for rows that sort after the cursor. For keys a, b, c it is `a > x or a = x and (b > y
 * or b = y and c > z)`, with `<` for descending keys and extra terms for NULLs. If all keys have the same
 * direction and cannot be NULL, it is one row comparison, which an index supports.
 */
export function afterCursor(keys: readonly CursorKey[]): Expression {
  const [first] = keys
  if (first === undefined) throw invalidCursor()
  const uniform = keys.every(
    key => !key.nullable && key.value !== null && key.order.descending === first.order.descending,
  )
  if (uniform && keys.length > 1) {
    const left = row(keys.map(key => key.order.expression))
    const right = row(keys.map(key => presentValue(key)))
    return compare(first.order.descending ? '<' : '>', left, right)
  }
  // The other terms imply the bound of the first key; written out, it lets an index scan start there.
  const bound = boundOf(first)
  return bound === null || keys.length === 1 ? after(keys) : and(bound, after(keys))
}

function boundOf({ order, value, nullable }: CursorKey): Expression | null {
  return value === null || nullable ? null : compare(order.descending ? '<=' : '>=', order.expression, value)
}

function after(keys: readonly CursorKey[]): Expression {
  const [key, ...rest] = keys
  if (key === undefined) throw new Error('a cursor has at least one key')
  const beyond = beyondKey(key)
  if (rest.length === 0) return beyond ?? NEVER
  const tie = and(sameKey(key), after(rest))
  return beyond === null ? tie : or(beyond, tie)
}

const NEVER: Expression = literal('boolean', 'false')

/** The condition that this key alone sorts after the cursor, or null if no value can. */
function beyondKey({ order, value, nullable }: CursorKey): Expression | null {
  const nullsLast = (order.nulls ?? (order.descending ? 'first' : 'last')) === 'last'
  if (value === null) return nullsLast ? null : isNull(order.expression, 'negated')
  const greater = compare(order.descending ? '<' : '>', order.expression, value)
  return nullable && nullsLast ? or(greater, isNull(order.expression, 'plain')) : greater
}

function sameKey({ order, value }: CursorKey): Expression {
  return value === null ? isNull(order.expression, 'plain') : compare('=', order.expression, value)
}

function presentValue(key: CursorKey): Expression {
  if (key.value === null) throw new Error('a NULL has no value to compare with')
  return key.value
}
