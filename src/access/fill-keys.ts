/**
 * Fills in the conditions that joins and nests omit, for `svc transpile`: it prints a statement without
 * checking it, since the command line has no caller with rights.
 */
import type { Relation as Way } from '../catalog/model.ts'
import type { Expression, Span, Statement, TableName } from '../language/tree/ast.ts'
import { LanguageError } from '../language/tree/error.ts'
import { type NamedSource, sourceName } from '../language/tree/scope.ts'
import { rewrite } from '../language/tree/walk.ts'
import { joinByKey, type KeyedSource, NoKeyError, nestByKey } from './keys.ts'

/** A table with its relations to others. */
export interface RelatedTable extends Pick<TableName, 'schema' | 'name'> {
  readonly resource: string
  readonly relations: readonly Way[]
}

/** The tables whose keys are known, and how to find them by name. */
export interface KeyedTables {
  /** Tables by resource name. */
  readonly tables: ReadonlyMap<string, RelatedTable>
  /** The table that a statement means by a name; null if the name is unknown. */
  find(name: TableName): RelatedTable | null
}

/**
 * The statement with its join conditions filled in, or the same object if nothing is omitted. Throws if no
 * foreign key, or more than one, connects two tables.
 */
export function fillKeys<S extends Statement>(statement: S, known: KeyedTables): S {
  return rewrite(statement, {
    join(join, scope) {
      const { source, type, lateral, on, span } = join
      if (on !== null || type === 'cross' || lateral || source.kind !== 'table source') return join
      const at = scope.relations.findIndex(({ name }, index) => index > 0 && name === sourceName(source))
      const [joined, ...left] = [scope.relations[at], ...scope.relations.slice(0, at)].map(one => keyed(one, known))
      if (joined === undefined) throw new Error('a join is part of its scope')
      return { ...join, on: withKeyHelp(joined, span, () => joinByKey(join, joined, left)) }
    },
    nest(nest, scope) {
      if (nest.on !== null) return nest
      const nested = keyed(scope.relations[0], known)
      const around = scope.parent?.relations.map(one => keyed(one, known)) ?? []
      return { ...nest, on: withKeyHelp(nested, nest.span, () => nestByKey(nest, nested, around, known)) }
    },
  })
}

function keyed(relation: NamedSource | undefined, known: KeyedTables): KeyedSource {
  if (relation === undefined) throw new Error('a join or nest has a source')
  const { name: alias, table, query } = relation
  const isReadable = (): boolean => true
  if (table === null || query !== null) return { alias, rowset: { label: `"${alias}"`, isReadable, table: null } }
  const found = known.find(table)
  const name = table.schema === null ? table.name : `${table.schema}.${table.name}`
  const label = found === null ? `table "${name}" (not in the schema)` : `table "${name}"`
  return { alias, rowset: { label, isReadable, table: found } }
}

/** Runs `work`; if it finds no foreign key, adds the existing foreign keys to the error. */
function withKeyHelp(to: KeyedSource, span: Span, work: () => Expression): Expression {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof NoKeyError) || to.rowset.table === null) throw error
    throw new LanguageError(`${error.message}; ${keysOf(to)}`, span)
  }
}

function keysOf({ alias, rowset }: KeyedSource): string {
  const ways = rowset.table?.relations.filter(({ junction }) => junction === null) ?? []
  if (ways.length === 0) return `${rowset.label} has no foreign key, and no foreign key references it`
  const keys = ways.map(({ table, columns, targetColumns }) =>
    columns.map((column, index) => `${alias}.${column} = ${table}.${targetColumns[index]}`).join(' and '),
  )
  return `the keys of ${rowset.label} are: ${keys.join(', or ')}`
}
