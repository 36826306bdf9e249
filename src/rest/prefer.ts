/** The `Prefer` header (RFC 7240): a comma-separated list of preferences; what is not known is ignored, as the RFC wants it. */
import type { Answer, Incoming } from '../exchange.ts'
import { headerOf } from './header.ts'

export interface Preferences {
  /** `count=exact`: a list tells how many rows there are on all pages. */
  readonly total: boolean
  /** `return=…`: what a write answers; null when nothing was said. */
  readonly returned: 'minimal' | 'representation' | null
}

const NONE: Preferences = { total: false, returned: null }

export function preferencesOf(headers: Incoming['headers']): Preferences {
  const prefer = headerOf(headers, 'prefer')
  if (prefer === undefined) return NONE
  const items = prefer.split(',')
  // Given twice, the first counts (RFC 7240, 2).
  const first = (name: string, values: readonly string[]) =>
    items.map(item => valueOfPreference(item, name)).find(value => value !== null && values.includes(value)) ?? null
  return {
    total: first('count', ['exact']) !== null,
    returned: first('return', ['minimal', 'representation']) as Preferences['returned'],
  }
}

/** The answer, saying what of the preferences was done (RFC 7240, 3). */
export function withPreference(answer: Answer, applied: 'count=exact' | 'return=representation'): Answer {
  return { ...answer, headers: { ...answer.headers, 'Preference-Applied': applied } }
}

/** Of `name=value`, the value possibly quoted, parameters after a semicolon left aside; null for another name. */
function valueOfPreference(item: string, name: string): string | null {
  const [written = ''] = item.split(';')
  const equals = written.indexOf('=')
  if (equals < 0 || written.slice(0, equals).trim().toLowerCase() !== name) return null
  return written
    .slice(equals + 1)
    .trim()
    .replace(/^"(.*)"$/, '$1')
    .toLowerCase()
}
