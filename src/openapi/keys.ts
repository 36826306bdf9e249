/**
 * Keys of components and operations, and column names in the syntax of a query string.
 * A key consists of a role and a name: `create-orders`, `list-orders`. Two names never have the same key.
 * Client generators ignore case and punctuation, so of names that differ only in those, one keeps the plain
 * key and the others get a hash (`distinctKeys`).
 */
import { createHash } from 'node:crypto'

/**
 * The key of a name. Component keys match `^[a-zA-Z0-9._-]+$` (OpenAPI 3.0.3, Components Object). Other
 * characters are encoded as hexadecimal code points: `Server-20-Today`.
 */
export function componentKey(name: string): string {
  // True for most names.
  if (VALID.test(name)) return name
  return name.replace(INVALID_CHARACTER, character => `-${character.codePointAt(0)?.toString(16)}-`)
}

/** A hyphen is part of the encoding; a leading underscore would allow `__proto__` as a key of an object. */
const VALID = /^[A-Za-z0-9.][A-Za-z0-9._]*$/
const INVALID_CHARACTER = /^_|[^A-Za-z0-9._]/gu

/**
 * The key of a pair, such as `children-orders-to-order_items`. `to` is not a hexadecimal number, so it is
 * unambiguous.
 */
export function pairKey(first: string, second: string): string {
  return `${componentKey(first)}-to-${componentKey(second)}`
}

/** A name as client generators see it: `order_id`, `orderId` and `Order ID` are the same. */
export function identifierOf(name: string): string {
  const letters = PLAIN_KEY.test(name) ? name.replaceAll('_', '') : name.toLowerCase().replace(NO_LETTER, '')
  return letters === '' ? name : letters
}

const PLAIN_KEY = /^[a-z0-9_]*$/
const NO_LETTER = /[^\p{L}\p{N}]+/gu

/**
 * Removes items that generators would confuse with an earlier item or with one of `taken`. A plain name
 * (`order_id`) takes precedence over others (`orderId`).
 */
export function distinctBy<Item>(
  items: readonly Item[],
  nameOf: (item: Item) => string,
  taken: ReadonlySet<string> = NONE,
): readonly Item[] {
  const chosen = new Map<string, Item>()
  for (const item of items) {
    const identifier = identifierOf(nameOf(item))
    const rival = chosen.get(identifier)
    if (rival === undefined || (!PLAIN_KEY.test(nameOf(rival)) && PLAIN_KEY.test(nameOf(item)))) {
      chosen.set(identifier, item)
    }
  }
  for (const identifier of taken) chosen.delete(identifier)
  return chosen.size === items.length ? items : items.filter(item => chosen.get(identifierOf(nameOf(item))) === item)
}

const NONE: ReadonlySet<string> = new Set()

/**
 * The key of each name, such that no two components collide with any of `roles` in front (`''`: no prefix).
 * `fixed`: other keys.
 */
export function distinctKeys(
  names: readonly string[],
  roles: readonly string[],
  fixed: readonly string[],
): ReadonlyMap<string, string> {
  const prefixes = roles.map(identifierOf)
  const taken = new Set(fixed.map(identifierOf))
  const keys = new Map<string, string>()
  // Plain names first, and `orders` before `create_orders`, which equals a role plus a name.
  const order = [...names].sort(
    (a, b) => Number(PLAIN_KEY.test(b)) - Number(PLAIN_KEY.test(a)) || a.length - b.length || (a < b ? -1 : 1),
  )
  for (const name of order) {
    const plain = identifiersOf(componentKey(name), prefixes)
    const key = plain.some(one => taken.has(one)) ? `${componentKey(name)}-${hashOf(name)}` : componentKey(name)
    for (const one of identifiersOf(key, prefixes)) taken.add(one)
    keys.set(name, key)
  }
  return keys
}

function identifiersOf(key: string, prefixes: readonly string[]): readonly string[] {
  const identifier = identifierOf(key)
  return prefixes.map(prefix => prefix + identifier)
}

/** Eight hexadecimal digits. */
export function hashOf(name: string): string {
  return createHash('sha256').update(name).digest('hex').slice(0, 8)
}

/**
 * A name in the syntax of `select`, `sort`, `expand` and filters: quoted if it contains punctuation
 * (parameters/name-reader.ts).
 */
export function quoteIfNeeded(name: string): string {
  return PLAIN.test(name) ? name : inQuotes(name)
}

/** Encloses a name in double quotes. */
export function inQuotes(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

const PLAIN = /^[\p{L}\p{N}_](?:[\p{L}\p{N}_ ]*[\p{L}\p{N}_])?$/u
