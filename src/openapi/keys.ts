/**
 * Names of components and operations, and names of columns as the notations of a query string take them.
 *
 * A key is a role and a name: `create-orders`, `list-orders`. Two names never make the same key. Generators of clients change case and drop
 * punctuation, so of names that differ in nothing else one keeps the plain key and the others get a hash of themselves (`distinctKeys`).
 */
import { createHash } from 'node:crypto'

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

/** A name as generators of clients see it, which write `order_id`, `orderId` and `Order ID` alike. */
export function identifierOf(name: string): string {
  const letters = PLAIN_KEY.test(name) ? name.replaceAll('_', '') : name.toLowerCase().replace(NO_LETTER, '')
  return letters === '' ? name : letters
}

const PLAIN_KEY = /^[a-z0-9_]*$/
const NO_LETTER = /[^\p{L}\p{N}]+/gu

/** Without those that generators would take for an item before them or for one of `taken`. A plain name (`order_id`) goes before any other (`orderId`). */
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

/** The key of each name, so that no two components collide, whatever of `roles` is in front (`''`: nothing). `fixed`: other keys. */
export function distinctKeys(
  names: readonly string[],
  roles: readonly string[],
  fixed: readonly string[],
): ReadonlyMap<string, string> {
  const prefixes = roles.map(identifierOf)
  const taken = new Set(fixed.map(identifierOf))
  const keys = new Map<string, string>()
  // Plain names before others, and `orders` before `create_orders`, which is like the role and the name.
  const order = [...names].sort(
    (a, b) => Number(PLAIN_KEY.test(b)) - Number(PLAIN_KEY.test(a)) || a.length - b.length || (a < b ? -1 : 1),
  )
  for (const name of order) {
    const plain = identifiersOf(keyOf(name), prefixes)
    const key = plain.some(one => taken.has(one)) ? `${keyOf(name)}-${hashOf(name)}` : keyOf(name)
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

/** A name as `select`, `sort`, `expand` and filters take it, in quotes unless nothing in it could be punctuation (parameters/names.ts). */
export function quoted(name: string): string {
  return PLAIN.test(name) ? name : inQuotes(name)
}

export function inQuotes(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

const PLAIN = /^[\p{L}\p{N}_](?:[\p{L}\p{N}_ ]*[\p{L}\p{N}_])?$/u
