/** Builds the trees of writes: the rows of a body, and the rows that filters select. */
import { toTypeName } from '../access/types.ts'
import type { Catalog, Table } from '../catalog/model.ts'
import type {
  Add,
  Del,
  Expression,
  Field,
  Parameter,
  RecordColumn,
  Returned,
  Set as SetStatement,
} from '../language/tree/ast.ts'
import {
  add,
  assign,
  column,
  conflict,
  del,
  field,
  getFrom,
  recordSource,
  returned,
  set,
} from '../language/tree/build.ts'
import type { BoundCondition, BoundLevel } from './bind.ts'
import { buildClauses, type LevelContext, tableSource } from './build-level.ts'
import { buildWhere } from './build-read.ts'
import { notImplemented } from './errors.ts'
import { writtenColumn, writtenValue } from './representations.ts'

/** The alias of the body. */
const BODY = 'pgrst_body'

/** How existing rows are treated. */
export interface ConflictResolution {
  readonly target: readonly string[]
  readonly existing: 'update' | 'ignore'
}

/** An insert of the rows of a body. */
export interface InsertShape {
  readonly columns: readonly string[]
  readonly rows: 'one' | 'many'
  readonly upsert: ConflictResolution | null
  /** Conditions that select the rows to insert; empty for all. */
  readonly where: readonly BoundCondition[]
}

/** The rows that a write returns; a null level for none. */
export interface ReturningShape {
  readonly level: BoundLevel | null
  readonly context: LevelContext
}

/** Inserts rows of `value`. */
export function buildInsert(
  table: Table,
  { columns, rows, upsert, where }: InsertShape,
  value: Parameter,
  returning: ReturningShape,
): Add {
  const { catalog } = returning.context.view
  const source = recordSource(value, BODY, recordColumns(table, columns, catalog), rows)
  const values = getFrom(source, {
    fields: columns.map(name => field(bodyValue(table, name, catalog))),
    where: buildWhere(tableSource(table, BODY, returning.context), where),
  })
  return add({
    table,
    columns,
    from: columns.length > 0 ? values : rows === 'one' ? 'defaults' : value,
    conflict: upsert === null ? null : conflictOf(upsert, columns),
    ...returningOf(table, returning),
  })
}

/** Updates the columns that are not the target, or else the target itself, so that the row is returned. */
function conflictOf({ target, existing }: ConflictResolution, columns: readonly string[]): Add['conflict'] {
  if (existing === 'ignore') return conflict(target, null)
  const others = columns.filter(name => !target.includes(name))
  const assigned = others.length > 0 ? others : target
  return conflict(
    target,
    assigned.map(name => assign(name, column('excluded', name))),
  )
}

/** The columns of an update: those with a value in the body, and those that are set to their defaults. */
export interface UpdatedColumns {
  readonly given: readonly string[]
  readonly defaults: readonly string[]
}

/** Updates columns of the rows that filters select to the values of the object `value`. */
export function buildUpdate(
  table: Table,
  columns: UpdatedColumns,
  where: readonly BoundCondition[],
  value: Parameter,
  returning: ReturningShape,
): SetStatement {
  const { catalog } = returning.context.view
  return set({
    table,
    alias: table.name,
    from:
      columns.given.length === 0
        ? null
        : recordSource(value, BODY, recordColumns(table, columns.given, catalog), 'one'),
    assignments: columns.given.map(name => assign(name, bodyValue(table, name, catalog))),
    defaults: columns.defaults,
    where: buildWhere(tableSource(table, table.name, returning.context), where) ?? 'all',
    ...returningOf(table, returning),
  })
}

/** Deletes the rows that filters select. */
export function buildDelete(table: Table, where: readonly BoundCondition[], returning: ReturningShape): Del {
  return del({
    table,
    alias: table.name,
    where: buildWhere(tableSource(table, table.name, returning.context), where) ?? 'all',
    ...returningOf(table, returning),
  })
}

/**
 * The rows as a read of them would return them. Related rows are those before the write. The filters of the
 * level select what is written, not what is returned.
 */
function returningOf(
  table: Table,
  { level, context }: ReturningShape,
): { readonly returning: readonly Field[]; readonly returned: Returned | null } {
  if (level === null) return { returning: [], returned: null }
  const clauses = buildClauses(table, table.name, { ...level, where: [] }, context)
  const { fields, nests, where, orderBy, groupBy } = clauses
  if (groupBy.length > 0) throw notImplemented('Aggregates over the rows that a write returns')
  if (fields.length + nests.length === 0) throw notImplemented('Rows without columns')
  const isPlain = nests.length === 0 && where === null && orderBy.length === 0
  return { returning: fields, returned: isPlain ? null : returned({ nests, where, orderBy }) }
}

function bodyValue(table: Table, name: string, catalog: Catalog): Expression {
  return writtenValue(column(BODY, name), table.columnByName.get(name)?.type, catalog)
}

function recordColumns(table: Table, columns: readonly string[], catalog: Catalog): readonly RecordColumn[] {
  return columns.flatMap(name => {
    const known = table.columnByName.get(name)
    return known === undefined ? [] : [writtenColumn(name, known, toTypeName(known.type), catalog)]
  })
}
