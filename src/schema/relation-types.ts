/**
 * The names by which `expand` reaches each relation of a table: the short name of a key (`customer`), else
 * the other table's name, else that name with the key (`users!approved_by`). Each name leads to one relation.
 */
import type { RelationTypes } from './types-model.ts'

export interface NamedRelation {
  /** The other table's name without its schema. */
  readonly name: string
  /** The other table's name in paths. */
  readonly table: string
  readonly cardinality: 'one' | 'many'
  /** Columns of this table. */
  readonly columns: readonly string[]
  /** A constraint or a junction, which names this relation. */
  readonly via: string
}

export function relationTypes(relations: readonly NamedRelation[]): readonly RelationTypes[] {
  const choices = relations.map(namesOf)
  const counts = new Map<string, number>()
  relations.forEach(({ cardinality }, at) => {
    for (const name of choices[at] ?? [])
      counts.set(`${cardinality} ${name}`, (counts.get(`${cardinality} ${name}`) ?? 0) + 1)
  })
  const taken = new Set<string>()
  const found = relations.flatMap(({ table, cardinality }, at) => {
    const name = choices[at]?.find(one => counts.get(`${cardinality} ${one}`) === 1 && !taken.has(one))
    if (name === undefined) return []
    taken.add(name)
    return { name, table, many: cardinality === 'many' }
  })
  // In an order that does not depend on the order in which keys were created.
  return found.toSorted((a, b) => Number(a.many) - Number(b.many) || (a.name < b.name ? -1 : 1))
}

function namesOf({ name, cardinality, columns, via }: NamedRelation): readonly string[] {
  const [column = ''] = columns
  const short = cardinality === 'one' && columns.length === 1 && /.(?=_id$)/.test(column) ? [column.slice(0, -3)] : []
  const hints = cardinality === 'one' && columns.length === 1 ? [column, via] : [via]
  const all = [...short.map(quoted), quoted(name), ...hints.map(hint => `${quoted(name)}!${quoted(hint)}`)]
  return [...new Set(all)]
}

/** In double quotes if it contains punctuation, as in `expand` (docs/reference/reading.md#names). */
function quoted(name: string): string {
  return PLAIN.test(name) ? name : `"${name.replaceAll('"', '""')}"`
}

const PLAIN = /^[\p{L}\p{N}_](?:[\p{L}\p{N}_ ]*[\p{L}\p{N}_])?$/u
