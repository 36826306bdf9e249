/** Keeps what was worked out against a catalogue for callers who see the same of it. A new catalogue begins with nothing. */
import { LRUCache } from 'lru-cache'
import type { View } from '../access/rights.ts'
import type { Catalog } from '../catalog/model.ts'

export interface ByCatalog<T> {
  /** What is kept under `key` for callers who see this; `make` is called where nothing is, and what it throws is not kept. */
  of(view: View, key: string, make: () => T): T
}

/** Keys are made by callers: `bounds` are those of each catalogue. */
export function createByCatalog<T extends object>(bounds: LRUCache.Options<string, T, unknown>): ByCatalog<T> {
  const known = new WeakMap<Catalog, LRUCache<string, T>>()
  return {
    of({ catalog, rights }, key, make) {
      let kept = known.get(catalog)
      // Once, not for every request: setting an entry of a weak map costs more than all else here.
      if (kept === undefined) {
        kept = new LRUCache<string, T>(bounds)
        known.set(catalog, kept)
      }
      const whole = rights.key + key
      const found = kept.get(whole)
      if (found !== undefined) return found
      const made = make()
      kept.set(whole, made)
      return made
    },
  }
}
