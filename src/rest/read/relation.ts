/** Finds the relation that a request names (docs/reference/reading.md#related-rows). */
import { followable, relatedTable } from '../../access/relations.ts'
import type { View } from '../../access/rights.ts'
import type { Catalog, Relation, Table } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import { nearest } from '../../text/nearest.ts'
import { shorten } from '../../text/shorten.ts'

/** A relation as a request names it. */
export interface RelationName {
  readonly relation: string
  /** The name of a constraint or key column after `!`, or null. */
  readonly hint: string | null
  /** True if the name has the prefix `nested:`. */
  readonly nested: boolean
}

/**
 * The relation with this name.
 * @throws {GatewayError} `PARSE_ERROR` that lists the choices if there are several, written after `prefix`,
 * or suggests the nearest name if no relation matches.
 */
export function resolveRelation(
  table: Table,
  wanted: RelationName,
  view: View,
  prefix: string = wanted.nested ? 'nested:' : '',
): Relation {
  const named = relationsNamed(table, wanted.relation)
  if (named.length === 0) throw unknownRelation(table, wanted, view)
  const cardinality = wanted.nested ? 'many' : 'one'
  const fitting = named.filter(relation => relation.cardinality === cardinality)
  if (fitting.length === 0) throw otherWay(table, wanted)
  const hinted = wanted.hint === null ? fitting : fitting.filter(relation => fitsHint(relation, wanted.hint ?? ''))
  const [only] = hinted
  if (hinted.length === 1 && only !== undefined) return only
  const known = followable(table, view)
  throw ambiguous(
    table,
    wanted,
    fitting.filter(relation => known.includes(relation)),
    prefix,
  )
}

/**
 * The relations with a name. A resource name or the short name of a forward key takes precedence. A bare
 * table name then matches tables in every schema, and a key column whose name does not end in `_id` matches
 * its key last.
 */
export function relationsNamed(table: Table, name: string): readonly Relation[] {
  const exact = table.relations.filter(relation => relation.table === name || relation.shortName === name)
  if (exact.length > 0) return exact
  const bare = table.relations.filter(relation => relation.name === name)
  return bare.length > 0 ? bare : table.relations.filter(relation => isKey(relation, name))
}

/** Reports whether the table has a relation of this name. */
export function isRelation(table: Table, name: string): boolean {
  return relationsNamed(table, name).length > 0
}

function isKey({ cardinality, columns, shortName }: Relation, name: string): boolean {
  return cardinality === 'one' && shortName === null && columns.length === 1 && columns[0] === name
}

function fitsHint(relation: Relation, hint: string): boolean {
  const { junction, constraints } = relation
  if (junction === null) return constraints.includes(hint) || keyColumnsOf(relation).includes(hint)
  // A junction has two keys. The key that leads to the other table identifies the relation, since a table can
  // be joined with itself in both directions.
  return junction.table === hint || junction.to.includes(hint) || constraints[1] === hint
}

/** The columns of the foreign key, on either side of the relation. */
function keyColumnsOf(relation: Relation): readonly string[] {
  return relation.cardinality === 'one' ? relation.columns : relation.targetColumns
}

function unknownRelation(table: Table, { relation }: RelationName, view: View): GatewayError {
  const names = followable(table, view).flatMap(known => [
    known.name,
    ...(known.shortName === null ? [] : [known.shortName]),
  ])
  const near = nearest(relation, names)
  const hint = near === null ? listed(names) : `did you mean "${near}"?`
  return new GatewayError('PARSE_ERROR', `"${table.resource}" has no relation "${shorten(relation)}"; ${hint}`)
}

const LISTED_MAX = 20

function listed(names: readonly string[]): string {
  const unique = [...new Set(names)]
  if (unique.length === 0) return 'it has no relations: no foreign key leads from or to it'
  return `it has ${unique.slice(0, LISTED_MAX).join(', ')}${unique.length > LISTED_MAX ? ', …' : ''}`
}

function otherWay(table: Table, { relation, nested }: RelationName): GatewayError {
  return new GatewayError(
    'PARSE_ERROR',
    nested
      ? `"${relation}" is one row for each of "${table.resource}", not many; write ${relation} without nested:`
      : `"${relation}" can be many rows for each of "${table.resource}"; write nested:${relation}`,
  )
}

function ambiguous(
  table: Table,
  { relation, hint }: RelationName,
  fitting: readonly Relation[],
  prefix: string,
): GatewayError {
  const choices = fitting.map(choice => `${prefix}${relation}!${hintFor(choice, fitting)}`).join(', ')
  const what = hint === null ? 'is ambiguous' : `is not identified by the hint "${shorten(hint)}"`
  return new GatewayError(
    'PARSE_ERROR',
    `relation "${relation}" of "${table.resource}" ${what}; write one of: ${choices}`,
  )
}

function hintFor(relation: Relation, others: readonly Relation[]): string {
  return tellingHint(relation, others) ?? relation.constraints.join(',')
}

/** The shortest hint that distinguishes `relation` from the others. */
function tellingHint(relation: Relation, others: readonly Relation[]): string | undefined {
  const candidates = [
    ...(relation.junction === null ? keyColumnsOf(relation) : [relation.junction.table, ...relation.junction.to]),
    ...relation.constraints,
  ]
  return candidates.find(hint => others.filter(other => fitsHint(other, hint)).length === 1)
}

/** The name by which `resolveRelation` finds this relation of `table`, or null if no name is unambiguous. */
export function nameOfRelation(table: Table, relation: Relation): RelationName | null {
  const nested = relation.cardinality === 'many'
  for (const name of [relation.shortName, relation.table]) {
    if (name === null) continue
    const fitting = relationsNamed(table, name).filter(({ cardinality }) => cardinality === relation.cardinality)
    if (!fitting.includes(relation)) continue
    if (fitting.length === 1) return { relation: name, hint: null, nested }
    const hint = tellingHint(relation, fitting)
    if (hint !== undefined) return { relation: name, hint, nested }
  }
  return null
}

/** The table at the other end of a relation. */
export function otherTable(catalog: Catalog, relation: Relation): Table {
  return relatedTable(catalog, relation.table)
}
