/**
 * Names of components and operations, and names of columns as the notations of a query string take them.
 *
 * A key says what it is for and then the name it is about: `create-orders`, `list-orders`. It depends on nothing else, so it stays the same whatever
 * comes or goes in the schema, and two different names never make the same key.
 */

/** Component keys match `^[a-zA-Z0-9._-]+$` (OpenAPI 3.0.3, Components Object). What does not fit is its code point in hexadecimal: `Server-20-Today`. */
export function keyOf(name: string): string {
  // As most are.
  if (FIT.test(name)) return name
  return name.replace(UNFIT, character => `-${character.codePointAt(0)?.toString(16)}-`)
}

/** A hyphen belongs to the notation; an underscore in front would let `__proto__` be a key in somebody's plain object. */
const FIT = /^[A-Za-z0-9.][A-Za-z0-9._]*$/
const UNFIT = /^_|[^A-Za-z0-9._]/gu

/** `children-orders-to-order_items`; `to` is no hexadecimal number, so it is never read as a character. */
export function pairKey(first: string, second: string): string {
  return `${keyOf(first)}-to-${keyOf(second)}`
}

/** A name as `select`, `sort`, `expand` and filters take it, in quotes unless nothing in it could be punctuation (rest/names.ts). */
export function quoted(name: string): string {
  return PLAIN.test(name) ? name : inQuotes(name)
}

export function inQuotes(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

const PLAIN = /^[\p{L}\p{N}_](?:[\p{L}\p{N}_ ]*[\p{L}\p{N}_])?$/u
