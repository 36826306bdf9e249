/**
 * The heads of requests, with what was made of them: clients mostly send the same head again, and comparing
 * it is cheaper than reading it.
 */
import type { Incoming } from '../exchange.ts'
import { createKept } from './kept.ts'

/** The parts of a request that repeat: everything except the query and the body. */
export type Head = Pick<Incoming, 'method' | 'path' | 'headers'>

/** Limits on the heads that are kept, and on the characters of one. */
const KEPT_MAX = 1_000
const CHARACTERS_MAX = 4_000

interface LastHead<T> extends Pick<Head, 'method' | 'path'> {
  /** Names and values in turn. */
  readonly headers: readonly unknown[]
  readonly made: T
}

/** Makes something of heads, mostly once for all requests with the same one. */
export class Heads<T extends object> {
  readonly #make: (head: Head) => T
  /** Mostly a connection repeats its last head, and comparing that is cheaper than making the key. */
  readonly #lastOn = new WeakMap<object, LastHead<T>>()
  readonly #keep = createKept<T>(KEPT_MAX, CHARACTERS_MAX)

  constructor(make: (head: Head) => T) {
    this.#make = make
  }

  of(head: Head & Pick<Incoming, 'connection'>): T {
    const last = this.#lastOn.get(head.connection)
    if (last !== undefined && isSame(last, head)) return last.made
    const { method, path, headers } = head
    const key = JSON.stringify([method, path, headers])
    const made = this.#keep(key, () => this.#make(head))
    if (key.length > CHARACTERS_MAX) return made
    this.#lastOn.set(head.connection, { method, path, headers: Object.entries(headers).flat(), made })
    return made
  }
}

/** A header with a list of values is another one each time. */
function isSame(last: LastHead<unknown>, { method, path, headers }: Head): boolean {
  if (last.method !== method || last.path !== path) return false
  let at = 0
  for (const name in headers) {
    if (last.headers[at] !== name || last.headers[at + 1] !== headers[name]) return false
    at += 2
  }
  return at === last.headers.length
}
