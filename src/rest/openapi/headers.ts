/** Headers of answers (specification 4.8, decisions 8). */
import { type Header, headerRef, type Reference } from './model.ts'

export type HeaderName =
  | 'X-Request-Id'
  | 'X-Response-Time'
  | 'X-Cache'
  | 'Location'
  | 'Preference-Applied'
  | 'Retry-After'
  | 'WWW-Authenticate'
  | 'Allow'

export const HEADERS: Readonly<Record<HeaderName, Header>> = {
  'X-Request-Id': {
    description: 'Names this request in the log; the one that was sent, if it was valid.',
    schema: { type: 'string', pattern: '^[A-Za-z0-9._-]{1,128}$' },
  },
  'X-Response-Time': {
    description: 'How long the gateway took, in milliseconds.',
    schema: { type: 'string', example: '2ms', pattern: '^[0-9]+ms$' },
  },
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

/** Those of every answer, and these. */
export function headersWith(...names: readonly HeaderName[]): References {
  const key = names.join()
  const known = made.get(key)
  if (known !== undefined) return known
  const all: readonly HeaderName[] = ['X-Request-Id', 'X-Response-Time', ...names]
  const references = Object.fromEntries(all.map(name => [name, headerRef(name)]))
  made.set(key, references)
  return references
}
