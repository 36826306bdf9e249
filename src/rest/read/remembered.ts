/**
 * What whole requests came to, for those that are asked again and again: where answers are kept, taking a request apart would be a good part of what is left to
 * do. Requests are made by callers, so there is an end to them.
 */
import { LRUCache } from 'lru-cache'
import type { View } from '../../access/rights.ts'
import type { Catalog } from '../../catalog/model.ts'

const REQUESTS_MAX = 4_000

/** A longer request is not remembered. */
export const REQUEST_CHARACTERS_MAX = 1_024

export interface Remembered<T extends object> {
  /** What `request` comes to for callers who see this; `make` is called for one not seen before, and what it throws is not kept. */
  of(view: View, request: string, make: () => T): T
}

/** It belongs to the catalogue that it was worked out against: a new one begins with nothing. */
export function createRemembered<T extends object>(): Remembered<T> {
  const known = new WeakMap<Catalog, LRUCache<string, T>>()
  return {
    of({ catalog, rights }, request, make) {
      if (request.length > REQUEST_CHARACTERS_MAX) return make()
      let requests = known.get(catalog)
      if (requests === undefined) {
        requests = new LRUCache<string, T>({ max: REQUESTS_MAX })
        known.set(catalog, requests)
      }
      const key = rights.key + request
      const found = requests.get(key)
      if (found !== undefined) return found
      const made = make()
      requests.set(key, made)
      return made
    },
  }
}

/** Where a request is hardly asked twice, remembering it would only cost. */
export function forgetful<T extends object>(): Remembered<T> {
  return { of: (_, __, make) => make() }
}
