/** Headers of requests and responses (docs/reference/rest-api.md#headers). */
import { type Header, headerRef, type Reference } from './model.ts'

export const HEADER_PARAMETERS = [
  'Prefer',
  'X-Request-Id',
  'X-Max-Affected',
  'X-Upsert',
  'X-On-Conflict',
  'x-svc-result-format',
] as const

export type HeaderName = 'X-Cache' | 'Location' | 'Preference-Applied' | 'Retry-After' | 'WWW-Authenticate' | 'Allow'

export const HEADERS: Readonly<Record<HeaderName, Header>> = {
  'X-Cache': {
    description: 'Whether the answer was kept from an earlier request.',
    schema: { type: 'string', enum: ['HIT', 'MISS'] },
  },
  Location: {
    description: 'The path of the row that was created, if it has a primary key that may be answered.',
    schema: { type: 'string' },
  },
  'Preference-Applied': {
    description: 'What of `Prefer` was done.',
    schema: { type: 'string', enum: ['return=minimal', 'return=representation', 'count=exact'] },
  },
  'Retry-After': {
    description: 'Seconds to wait before the next try.',
    schema: { type: 'integer', minimum: 0 },
  },
  'WWW-Authenticate': {
    description: 'How to authenticate (RFC 6750).',
    schema: { type: 'string' },
  },
  Allow: {
    description: 'The methods that are possible here.',
    schema: { type: 'string' },
  },
}

type References = Readonly<Record<string, Reference>>

/** By the names: thousands of answers have the same. */
const made = new Map<string, References>()

/** These. What every response has, the document says once. */
export function headersWith(...names: readonly HeaderName[]): References {
  const key = names.join()
  const known = made.get(key)
  if (known !== undefined) return known
  const references = Object.fromEntries(names.map(name => [name, headerRef(name)]))
  made.set(key, references)
  return references
}
