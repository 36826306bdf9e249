/**
 * Joins and nests without a condition: the foreign keys of the catalog supply it
 * (docs/reference/language.md#over-http).
 */
import type { Relation, Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Expression, Join, Nest, Span } from '../language/tree/ast.ts'
import { childJoin, columnsEqual, type JunctionTables } from './relations.ts'

/** The properties of a source that the search for its keys needs; a `ScopeSource` has them. */
export interface KeyedSource {
  readonly alias: string
  readonly rowset: {
    readonly label: string
    readonly isReadable: (column: string) => boolean
    readonly table: Pick<Table, 'resource' | 'relations'> | null
  }
}

/** No foreign key connects the source with any of the others. */
export class NoKeyError extends GatewayError {}

/**
 * The join condition between `joined` and the nearest source to its left that a foreign key connects with
 * it.
 */
export function joinByKey(join: Join, joined: KeyedSource, left: readonly KeyedSource[]): Expression {
  for (const source of [...left].reverse()) {
    const relations = relationsBetween(source, joined).filter(({ junction }) => junction === null)
    const [only] = relations
    if (only === undefined) continue
    if (relations.length > 1) throw severalKeys('join', source, joined, relations, join.span)
    return columnsEqual(source.alias, only.columns, joined.alias, only.targetColumns)
  }
  throw noKey('join', joined, left, join.span)
}

/** The condition that selects the rows of `nested` that belong to the row around them. */
export function nestByKey(
  nest: Nest,
  nested: KeyedSource,
  around: readonly KeyedSource[],
  catalog: JunctionTables,
): Expression {
  const cardinality = nest.many ? 'many' : 'one'
  for (const source of around) {
    const relations = relationsBetween(source, nested).filter(relation => relation.cardinality === cardinality)
    const direct = relations.filter(({ junction }) => junction === null)
    const fitting = direct.length > 0 ? direct : relations
    const [only] = fitting
    if (only === undefined) continue
    if (fitting.length > 1) throw severalKeys('nest', source, nested, fitting, nest.span)
    return childJoin(only, source.alias, nested.alias, catalog, unlike([source.alias, nested.alias]))
  }
  throw noKey(nest.many ? 'nest many' : 'nest', nested, around, nest.span)
}

/** An alias for the junction table that differs from both sources' aliases and therefore hides neither. */
function unlike(aliases: readonly string[]): string {
  return ['via', 'via2', 'via3'].find(name => !aliases.includes(name)) ?? 'via'
}

function relationsBetween(from: KeyedSource, to: KeyedSource): readonly Relation[] {
  const target = to.rowset.table?.resource
  const relations =
    target === undefined ? [] : (from.rowset.table?.relations.filter(({ table }) => table === target) ?? [])
  const readable = relations.filter(
    ({ columns, targetColumns }) => columns.every(from.rowset.isReadable) && targetColumns.every(to.rowset.isReadable),
  )
  return readable.length > 0 ? readable : relations.slice(0, 1)
}

function severalKeys(
  what: string,
  from: KeyedSource,
  to: KeyedSource,
  relations: readonly Relation[],
  span: Span,
): GatewayError {
  const choices = relations.map(({ columns, targetColumns }) => {
    const equal = columns.map((name, index) => `${from.alias}.${name} = ${to.alias}.${targetColumns[index]}`)
    return `on ${equal.join(' and ')}`
  })
  return new GatewayError(
    'PARSE_ERROR',
    `several foreign keys connect ${from.rowset.label} with ${to.rowset.label}; write ` +
      `the one that the ${what} uses: ${choices.join(', or ')}`,
    { span },
  )
}

function noKey(what: string, to: KeyedSource, from: readonly KeyedSource[], span: Span): NoKeyError {
  const labels = from.map(({ rowset }) => rowset.label).join(', ')
  return new NoKeyError(
    'PARSE_ERROR',
    `no foreign key connects ${labels} with ${to.rowset.label}; write the condition of the ${what}: on a.b_id = b.id`,
    { span },
  )
}
