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
  const found = { ...NONE }
  for (const item of prefer.split(',')) add(item, found)
  return found
}

/** The first of two supported values of the same preference applies (RFC 7240, 2). */
function add(item: string, found: { -readonly [name in keyof Preferences]: Preferences[name] }): void {
  const equals = item.indexOf('=')
  if (equals < 0) return
  const value = readValue(item.slice(equals + 1))
  switch (item.slice(0, equals).trim().toLowerCase()) {
    case 'return':
      if (value === 'minimal' || value === 'representation') found.returned ??= value
      break
    case 'count':
      found.total ||= value === 'exact'
      break
    case 'on-error':
      found.continues ||= value === 'continue'
      break
    case 'consistency':
      found.strong ||= value === 'strong'
  }
}

/** The value can be quoted; parameters after a semicolon are ignored. */
function readValue(text: string): string {
  const [written = ''] = text.split(';', 1)
  return written
    .trim()
    .replace(/^"(.*)"$/, '$1')
    .toLowerCase()
}

/** Adds the `Preference-Applied` header to a response (RFC 7240, 3). */
export function withPreference(answer: Answer, applied: 'count=exact' | 'return=representation'): Answer {
  return { ...answer, headers: { 'Preference-Applied': applied, ...answer.headers } }
}
