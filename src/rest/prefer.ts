/** The `Prefer` header (RFC 7240): a comma-separated list of preferences; what is not known is ignored, as the RFC wants it. */
import type { Incoming } from '../http/types.ts'

export interface Preferences {
  /** `count=exact`: a list tells how many rows there are on all pages. */
  readonly total: boolean
  /** `return=…`: what a write answers; null when nothing was said. */
  readonly returned: 'minimal' | 'representation' | null
}

const NONE: Preferences = { total: false, returned: null }

export function preferencesOf({ prefer }: Incoming['headers']): Preferences {
  if (prefer === undefined) return NONE
  const items = (Array.isArray(prefer) ? prefer.join(',') : prefer).split(',')
  const has = (name: string, value: string): boolean => items.some(item => isPreference(item, name, value))
  return {
    total: has('count', 'exact'),
    returned: has('return', 'minimal') ? 'minimal' : has('return', 'representation') ? 'representation' : null,
  }
}

/** `name=value`, the value possibly quoted, parameters after a semicolon left aside. */
function isPreference(item: string, name: string, value: string): boolean {
  const [written = ''] = item.split(';')
  const equals = written.indexOf('=')
  if (equals < 0 || written.slice(0, equals).trim().toLowerCase() !== name) return false
  return (
    written
      .slice(equals + 1)
      .trim()
      .replace(/^"(.*)"$/, '$1')
      .toLowerCase() === value
  )
}
