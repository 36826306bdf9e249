/**
 * Suggests an operator for a value that its column's type does not accept: the value may be an operator of
 * PostgREST or Hasura that does not exist here. Text that begins with no known operator is a value
 * (docs/reference/reading.md#filters), so this is known only after PostgreSQL has refused it.
 */

/** The operator of this API for each word that can follow `is.` in PostgREST's notation. */
const IS: ReadonlyMap<string, string> = new Map([
  ['null', 'is_null'],
  ['not_null', 'is_not_null'],
  ['unknown', 'is_null'],
  ['true', 'eq.true'],
  ['false', 'eq.false'],
])

/** Operators that take a value here as well. */
const EQUIVALENT: ReadonlyMap<string, string> = new Map([
  ['cs', 'contains'],
  ['cd', 'contained'],
  ['ov', 'overlaps'],
  ['isdistinct', 'is_distinct'],
  ['plfts', 'fts'],
  ['phfts', 'fts'],
  ['wfts', 'fts'],
  ['nin', 'not_in'],
])

/** A hint with the correct notation; null if the value does not resemble an operator. */
export function operatorSuggestion(value: string): string | null {
  const [, not = '', name = '', rest = ''] = /^(not\.)?(\w+)\.(.*)$/s.exec(value) ?? []
  const ours = EQUIVALENT.get(name)
  const written = name === 'is' ? IS.get(rest.toLowerCase()) : ours && `${ours}.…`
  if (written === undefined) return null
  return `filters have no operator "${name}", so this was read as a value; write =${not}${written}`
}
