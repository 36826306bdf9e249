/**
 * Fills in the conditions that joins and nests leave out, for `svc transpile`: it prints a statement that was
 * not checked, since the command line has no caller whose rights could be asked.
 */
import type { Relation as Way } from '../catalog/model.ts'
import type { Expression, Span, Statement, TableName } from '../language/tree/ast.ts'
import { LanguageError } from '../language/tree/error.ts'
import { type Relation, sourceName } from '../language/tree/scope.ts'
import { rewrite } from '../language/tree/walk.ts'
import { joinByKey, type KeyedSource, NoKeyError, nestByKey } from './keys.ts'

/** A table with its ways to others. */
export interface KeyedTable extends Pick<TableName, 'schema' | 'name'> {
  readonly resource: string
  readonly relations: readonly Way[]
}

export interface KeyedTables {
  /** By resource name. */
  readonly tables: ReadonlyMap<string, KeyedTable>
  /** What a statement means by a name; null: nothing is known of it. */
  find(name: TableName): KeyedTable | null
}

/**
 * Throws where no key, or more than one, leads from one table to the other. The statement itself where
 * nothing is left out.
 */
export function fillKeys<S extends Statement>(statement: S, known: KeyedTables): S {
  return rewrite(statement, {
    join(join, scope) {
      const { source, type, lateral, on, span } = join
      if (on !== null || type === 'cross' || lateral || source.kind !== 'table source') return join
      const at = scope.relations.findIndex(({ name }, index) => index > 0 && name === sourceName(source))
      const [joined, ...left] = [scope.relations[at], ...scope.relations.slice(0, at)].map(one => keyed(one, known))
      if (joined === undefined) throw new Error('a join is part of its scope')
      return { ...join, on: told(joined, span, () => joinByKey(join, joined, left)) }
    },
    nest(nest, scope) {
      if (nest.on !== null) return nest
      const nested = keyed(scope.relations[0], known)
      const around = scope.parent?.relations.map(one => keyed(one, known)) ?? []
      return { ...nest, on: told(nested, nest.span, () => nestByKey(nest, nested, around, known)) }
    },
  })
}

function keyed(relation: Relation | undefined, known: KeyedTables): KeyedSource {
  if (relation === undefined) throw new Error('a join or nest has a source')
  const { name: alias, table, query } = relation
  const isReadable = (): boolean => true
  if (table === null || query !== null) return { alias, rowset: { label: `"${alias}"`, isReadable, table: null } }
  const found = known.find(table)
  const name = table.schema === null ? table.name : `${table.schema}.${table.name}`
  const label = found === null ? `table "${name}", which the schema does not have,` : `table "${name}"`
  return { alias, rowset: { label, isReadable, table: found } }
}

/** Where there is no key, the keys that there are say more. */
function told(to: KeyedSource, span: Span, work: () => Expression): Expression {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof NoKeyError) || to.rowset.table === null) throw error
    throw new LanguageError(`${error.message}; ${keysOf(to)}`, span)
  }
}

function keysOf({ alias, rowset }: KeyedSource): string {
  const ways = rowset.table?.relations.filter(({ junction }) => junction === null) ?? []
  if (ways.length === 0) return `${rowset.label} has no foreign key, and none leads to it`
  const keys = ways.map(({ table, columns, targetColumns }) =>
    columns.map((column, index) => `${alias}.${column} = ${table}.${targetColumns[index]}`).join(' and '),
  )
  return `the keys of ${rowset.label} are: ${keys.join(', or ')}`
}
