/**
 * What a value was meant as that its column's type does not take: an operator that PostgREST or Hasura has, and we have not. A text that begins with no
 * operator of ours is a value (docs/reference/reading.md#filters), so nobody can tell before PostgreSQL has refused it.
 */

/** Behind `is.`: ours, whole. */
const IS: ReadonlyMap<string, string> = new Map([
  ['null', 'is_null'],
  ['not_null', 'is_not_null'],
  ['unknown', 'is_null'],
  ['true', 'eq.true'],
  ['false', 'eq.false'],
])

/** Ours has a value behind it as theirs has. */
const OURS: ReadonlyMap<string, string> = new Map([
  ['cs', 'contains'],
  ['cd', 'contained'],
  ['ov', 'overlaps'],
  ['isdistinct', 'is_distinct'],
  ['plfts', 'fts'],
  ['phfts', 'fts'],
  ['wfts', 'fts'],
  ['nin', 'not_in'],
])

/** What to write instead, for an answer's `hint`; null where the value reads like no operator. */
export function meantOperator(value: string): string | null {
  const [, not = '', name = '', rest = ''] = /^(not\.)?(\w+)\.(.*)$/s.exec(value) ?? []
  const ours = OURS.get(name)
  const written = name === 'is' ? IS.get(rest.toLowerCase()) : ours && `${ours}.…`
  if (written === undefined) return null
  return `filters have no operator "${name}", so this was taken for a value; write =${not}${written}`
}
