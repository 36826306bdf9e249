/**
 * The opaque position after a row: what `next_cursor` holds and `cursor` takes (docs/reference/reading.md#order-and-pages, decision 0006).
 *
 * base64url of the JSON array `[digest, …values]`: the text of the row's sort values, null for NULL, after a digest of these and of
 * what they were sorted by. The digest makes a cursor of another table or sort, or an altered one, an error; it is keyed so that
 * nobody can make one up.
 */
import { createHmac } from 'node:crypto'
import { GatewayError } from '../../errors.ts'
import type { Expression, Order } from '../../language/tree/ast.ts'
import { and, compare, isNull, literal, or, row } from '../../language/tree/build.ts'

export type CursorValues = readonly (string | null)[]

/** Longer cursors are refused; a row whose sort values need more gets none. */
const CURSOR_CHARACTERS_MAX = 8_192

const DIGEST_CHARACTERS = 16

export interface CursorCodec {
  /** Null when the position does not fit into a cursor. */
  encode(scope: string, values: CursorValues): string | null
  /** The values, not yet verified: which of them are null decides the statement. */
  decode(cursor: string): { readonly digest: string; readonly values: CursorValues }
  /** Throws unless `digest` was made by `encode` for this scope and these values. */
  verify(scope: string, digest: string, values: CursorValues): void
}

/** `scope` names table and sort. Gateways that serve the same clients need the same `key`. */
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

/** Null for what `encode` does not write: Buffer overlooks what is no base64url, and JSON white space, where we do not. */
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

/** A NUL can only stand in a cursor that we did not make. */
function isText(value: unknown): value is string | null {
  return value === null || (typeof value === 'string' && !value.includes('\0'))
}

export function invalidCursor(): GatewayError {
  return new GatewayError(
    'PARSE_ERROR',
    'the cursor was not made for this table and sort, or was altered; use next_cursor of the previous page with the same sort, or leave it out to begin again',
  )
}

/** One sort key and the last row's value of it; the value is null where it was NULL. */
export interface CursorKey {
  readonly order: Order
  readonly value: Expression | null
  readonly nullable: boolean
}

/**
 * Rows that sort after the last one. For keys a, b, c: `a > x, or a = x and (b > y, or b = y and c > z)`, each `>` turned for descending
 * keys and completed for NULLs. Where all keys ascend (or all descend) and none can be NULL it is one row comparison, which an index answers.
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
  // The first key's bound is implied by the rest; written out, an index can begin there.
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

/** This key alone already sorts after; null when nothing can. */
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
