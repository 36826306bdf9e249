/**
 * The `Prefer` header (RFC 7240): a comma-separated list of preferences. Unknown preferences are ignored, as
 * the RFC requires.
 */
import type { Answer, Incoming } from '../exchange.ts'
import { headerOf } from './header.ts'

/** The preferences of a request that the gateway supports. */
export interface Preferences {
  /** `count=exact`: the response to a list includes the number of rows on all pages. */
  readonly total: boolean
  /** `return=…`: what the response to a write contains, or null if the request does not contain it. */
  readonly returned: 'minimal' | 'representation' | null
  /** `on-error=continue`: an import skips the rows that fail. */
  readonly continues: boolean
  /** `consistency=strong`: reads run on the primary. */
  readonly strong: boolean
}

const NONE: Preferences = { total: false, returned: null, continues: false, strong: false }

/** Parses the `Prefer` header. */
export function preferencesOf(headers: Incoming['headers']): Preferences {
  const prefer = headerOf(headers, 'prefer')
  if (prefer === undefined) return NONE
  const items = prefer.split(',')
  // The first of two values of the same preference applies (RFC 7240, 2).
  const first = (name: string, values: readonly string[]) =>
    items.map(item => valueOfPreference(item, name)).find(value => value !== null && values.includes(value)) ?? null
  return {
    total: first('count', ['exact']) !== null,
    returned: first('return', ['minimal', 'representation']) as Preferences['returned'],
    continues: first('on-error', ['continue']) !== null,
    strong: first('consistency', ['strong']) !== null,
  }
}

/** Adds the `Preference-Applied` header to a response (RFC 7240, 3). */
export function withPreference(answer: Answer, applied: 'count=exact' | 'return=representation'): Answer {
  return { ...answer, headers: { 'Preference-Applied': applied, ...answer.headers } }
}

/**
 * The value of the preference `name`, or null if `item` is a different preference. The value can be quoted;
 * parameters after a semicolon are ignored.
 */
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
