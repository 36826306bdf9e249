/**
 * What whole requests came to, for those that are asked again and again: where answers are kept, taking a request apart would be a good part of what is left to
 * do. Requests are made by callers, so there is an end to them.
 */
import { type ByCatalog, createByCatalog } from '../by-catalog.ts'

const REQUESTS_MAX = 4_000

/** A longer request is not remembered. */
export const REQUEST_CHARACTERS_MAX = 1_024

/** By the whole request. */
export function createRemembered<T extends object>(): ByCatalog<T> {
  const kept = createByCatalog<T>({ max: REQUESTS_MAX })
  return {
    of: (view, request, make) => (request.length > REQUEST_CHARACTERS_MAX ? make() : kept.of(view, request, make)),
  }
}

/** Where a request is hardly asked twice, remembering it would only cost. */
export function forgetful<T extends object>(): ByCatalog<T> {
  return { of: (_, __, make) => make() }
}
