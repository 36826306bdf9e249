/** Headers of requests and responses (docs/reference/rest-api.md#headers). */
import { type Header, headerRef, type ReferenceObject } from './model.ts'

/** The names of the request headers in the document. */
export const HEADER_PARAMETERS = [
  'Prefer',
  'X-Request-Id',
  'X-Max-Affected',
  'X-Upsert',
  'X-On-Conflict',
  'x-svc-result-format',
  'If-Match',
  'Idempotency-Key',
  'If-None-Match',
  'X-Svc-LSN',
] as const

export type HeaderName =
  | 'X-Cache'
  | 'Location'
  | 'Preference-Applied'
  | 'Retry-After'
  | 'WWW-Authenticate'
  | 'Allow'
  | 'ETag'
  | 'X-Next-Cursor'
  | 'X-Total-Count'

/** The response headers of the API. */
export const HEADERS: Readonly<Record<string, Header>> = {
  cache: {
    description: 'Whether the response came from the result cache.',
    schema: { type: 'string', enum: ['HIT', 'MISS'] },
  },
  Location: {
    description: 'The path of the created row, if it has a primary key that you can read.',
    schema: { type: 'string' },
  },
  applied: {
    description: 'The preferences of `Prefer` that were applied.',
    schema: { type: 'string', enum: ['return=minimal', 'return=representation', 'count=exact'] },
  },
  'Retry-After': {
    description: 'Seconds to wait before retrying.',
    schema: { type: 'integer', minimum: 0 },
  },
  'WWW-Authenticate': {
    description: 'How to authenticate (RFC 6750).',
    schema: { type: 'string' },
  },
  ETag: {
    description:
      'The version of the row, for `If-Match` and `If-None-Match`; of a list a weak tag, for `If-None-Match`.',
    schema: { type: 'string' },
  },
  next: {
    description: 'The `next_cursor` of a list that is answered as CSV, if there is a next page.',
    schema: { type: 'string' },
  },
  total: {
    description: 'The `total` of a list that is answered as CSV, with `Prefer: count=exact`.',
    schema: { type: 'string', pattern: '^[0-9]+$' },
  },
  Allow: {
    description: 'The methods that are supported here.',
    schema: { type: 'string' },
  },
}

/** Shorter keys of components that are often referenced. */
const KEYS: Partial<Record<HeaderName, string>> = {
  ...{ 'Preference-Applied': 'applied', 'X-Cache': 'cache', 'X-Next-Cursor': 'next', 'X-Total-Count': 'total' },
}

type References = Readonly<Record<string, ReferenceObject>>

/** Cached by name, because thousands of responses have the same headers. */
const made = new Map<string, References>()

/** References to these headers. Headers of every response are documented once in the introduction. */
export function headersWith(...names: readonly HeaderName[]): References {
  const key = names.join()
  const known = made.get(key)
  if (known !== undefined) return known
  const references = Object.fromEntries(names.map(name => [name, headerRef(KEYS[name] ?? name)]))
  made.set(key, references)
  return references
}
