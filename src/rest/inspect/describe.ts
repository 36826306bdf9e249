/** The parts of an inspection that come from the gateway: the tree of a read, and the caller's rights. */
import { canSee, isKnown, isKnownColumn, type TableRights, type View } from '../../access/rights.ts'
import { resourceName, type Table } from '../../catalog/model.ts'
import type { CompiledStatement } from '../../compile/statement.ts'
import type { WriteOperation } from '../../compile/table-dependencies.ts'
import { format, formatStatement } from '../../language/format/format.ts'
import type { Expression, Get } from '../../language/tree/ast.ts'
import { get } from '../../language/tree/build.ts'
import { LanguageError } from '../../language/tree/error.ts'
import { rewrite } from '../../language/tree/walk.ts'

/** The effect of the gateway's own rules on reads of a table. */
export interface InspectedAccess {
  /** Why reads are refused; null if they are allowed. */
  readonly refused: string | null
  /** The columns that can be read, or null for all of them. Columns that are hidden are not named. */
  readonly columns: readonly string[] | null
  /** The rows that the route policy permits, as a query; null for all of them. */
  readonly rows: string | null
  /** True if there is a condition on rows that mentions hidden columns, and is therefore not shown. */
  readonly rowsWithheld: boolean
  /** The column that marks deleted rows, which are left out; null without one. */
  readonly softDelete: string | null
}

/** The effect of the gateway's own rules on a write of a table. */
export interface InspectedWrite {
  readonly operation: WriteOperation
  /** Why the operation is refused; null if it is allowed. */
  readonly refused: string | null
  /** The columns that can be written, or null for all of them, and for rows that are deleted. */
  readonly columns: readonly string[] | null
  /** The rows that the policies permit, as a query; null for all of them. */
  readonly rows: string | null
  /** True if there is a condition on rows that mentions hidden columns, and is therefore not shown. */
  readonly rowsWithheld: boolean
}

/** The canonical text of a tree; null if a part of it has no text form. */
export function describeTree(tree: Get): string | null {
  return printed(() => formatStatement(tree))
}

/** The canonical form of a text of the query language; null if it is invalid. */
export function describeText(text: string): string | null {
  return printed(() => format(text))
}

function printed(print: () => string): string | null {
  try {
    return print()
  } catch (error) {
    if (error instanceof LanguageError) return null
    throw error
  }
}

/** The tables that statements read and that the caller can see, in the order of their first mention. */
export function tablesOf(statements: readonly CompiledStatement[], { catalog, rights }: View): readonly Table[] {
  const reads = statements.flatMap(statement => (statement.kind === 'call' ? [] : statement.dependencies.reads))
  const found = reads.flatMap(name => catalog.tables.get(resourceName(name, catalog.schemas)) ?? [])
  return [...new Set(found)].filter(table => isKnown(table, rights))
}

/** The tables that statements write and that the caller can see, with the operations. */
export function writesOf(
  statements: readonly CompiledStatement[],
  { catalog, rights }: View,
): ReadonlyMap<Table, ReadonlySet<WriteOperation>> {
  const found = new Map<Table, Set<WriteOperation>>()
  for (const statement of statements) {
    if (statement.kind === 'call') continue
    for (const { table: name, operation } of statement.dependencies.writes) {
      const table = catalog.tables.get(resourceName(name, catalog.schemas))
      if (table === undefined || !isKnown(table, rights)) continue
      const operations = found.get(table) ?? new Set()
      found.set(table, operations.add(operation))
    }
  }
  return found
}

/** The table with this resource name, if the caller can see it. */
export function knownTable(resource: string, { catalog, rights }: View): readonly Table[] {
  const table = catalog.tables.get(resource)
  return table !== undefined && canSee(table, null, rights) ? [table] : []
}

export function describeAccess(table: Table, { rights }: View): InspectedAccess {
  const of = rights.of(table)
  const softDelete = table.managed?.softDelete ?? null
  return {
    refused: of.refused.read,
    columns: of.read === 'any' ? null : [...of.read].toSorted(),
    ...describeRows(table, of.rows.read, of),
    softDelete: softDelete !== null && isKnownColumn(softDelete, of) ? softDelete : null,
  }
}

export function describeWrite(table: Table, written: WriteOperation, { rights }: View): InspectedWrite {
  const of = rights.of(table)
  const operation = OPERATION[written]
  const columns = operation === 'delete' ? 'any' : of[operation]
  return {
    operation: written,
    refused: of.refused[operation],
    columns: columns === 'any' ? null : [...columns].toSorted(),
    ...describeRows(table, of.rows[operation], of),
  }
}

const OPERATION = { insert: 'create', update: 'update', delete: 'delete' } as const

function describeRows(
  table: Table,
  rows: Expression | null,
  rights: TableRights,
): Pick<InspectedWrite, 'rows' | 'rowsWithheld'> {
  const isShown = rows !== null && mentionsOnlyKnown(rows, table, rights)
  return { rows: isShown ? describeTree(get({ table, where: rows })) : null, rowsWithheld: rows !== null && !isShown }
}

function mentionsOnlyKnown(where: Expression, table: Table, rights: TableRights): boolean {
  let reads = 0
  let known = true
  rewrite(get({ table, where }), {
    expression(inner) {
      const hidden = (name: string) => table.columnByName.has(name) && !isKnownColumn(name, rights)
      if (inner.kind === 'column' && inner.path.some(hidden)) known = false
      return inner
    },
    get(inner) {
      reads += 1
      return inner
    },
  })
  // A condition that reads other tables may name those that the caller cannot see.
  return known && reads === 1
}
