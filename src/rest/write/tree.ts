/** Builds the tree of a write: what a query-language text of the same meaning would become, but for its values, which are a body. */
import { toTypeName } from '../../access/types.ts'
import type { Table } from '../../catalog/model.ts'
import type { Add, Conflict, Del, Expression, Get, RecordColumn, Set as SetStatement } from '../../language/tree/ast.ts'
import {
  add,
  and,
  assign,
  call,
  column,
  compare,
  conflict,
  del,
  field,
  getFrom,
  integer,
  isNull,
  recordColumn,
  recordSource,
  set,
} from '../../language/tree/build.ts'
import { buildFilter } from '../parameters/filters.ts'
import { buildFields } from '../parameters/select.ts'
import { keyIs, SELF } from '../resource.ts'
import type { BodyTree, DeleteTree, InsertTree, SetTree, Target, Upsert } from './request.ts'

/** The alias of the body. */
const BODY = 'x'

/** Rows from an array of objects, or one from an object, that all have exactly these keys. Without keys only the number of rows counts. */
export function buildAdd({ table, columns, value, rows, upsert, returning }: InsertTree): Add {
  const record = recordSource(value, BODY, recordColumns(table, columns), rows)
  const defaults = rows === 'one' ? 'defaults' : value
  const fields = columns.map(name => field(column(BODY, name)))
  return add({
    table,
    columns,
    from: columns.length === 0 ? defaults : getFrom(record, { fields }),
    conflict: upsert === null ? null : buildConflict(upsert, columns),
    returning: buildFields(returning, null),
  })
}

/** Sets every given column but the target's; where nothing else was given, the target to what it is, so that the row is answered. */
function buildConflict({ target, existing }: Upsert, columns: readonly string[]): Conflict {
  if (existing === 'ignore') return conflict(target, null)
  const others = columns.filter(name => !target.includes(name))
  const assigned = others.length > 0 ? others : target
  return conflict(
    target,
    assigned.map(name => assign(name, column('excluded', name))),
  )
}

/**
 * Whether two rows of the body have the same key, which one statement would refuse, but a batch of several statements would not notice. A key
 * with a NULL equals no other.
 */
export function buildRepeated({ table, columns, value }: BodyTree): Get {
  const keys = columns.map(name => column(BODY, name))
  return getFrom(recordSource(value, BODY, recordColumns(table, columns), 'many'), {
    fields: keys.map(key => field(key)),
    where: and(...keys.map(key => isNull(key, 'negated'))),
    groupBy: keys,
    having: compare('>', call('count', [], { star: true }), integer('1')),
    limit: integer('1'),
  })
}

/** The key that each row of the body gives, in its order. */
export function buildKeys({ table, columns, value }: BodyTree): Get {
  const fields = columns.map(name => field(column(BODY, name)))
  return getFrom(recordSource(value, BODY, recordColumns(table, columns), 'many'), { fields })
}

/** The columns in `columns` from the body. */
export function buildSet({ table, columns, value, target, returning }: SetTree): SetStatement {
  return set({
    table,
    alias: SELF,
    from: recordSource(value, BODY, recordColumns(table, columns), 'one'),
    assignments: columns.map(name => assign(name, column(BODY, name))),
    where: buildTarget(target, table),
    returning: buildFields(returning, null),
  })
}

export function buildDel({ table, target, returning }: DeleteTree): Del {
  return del({ table, alias: SELF, where: buildTarget(target, table), returning: buildFields(returning, null) })
}

function buildTarget(target: Target, table: Table): Expression {
  const where = target.kind === 'row' ? keyIs(table, SELF, target.id) : buildFilter(target.filter, SELF)
  if (where === null) throw new Error('a write to all rows is refused before')
  return where
}

/** A key that is no column is left out: the check refuses it where it is written. */
function recordColumns(table: Table, columns: readonly string[]): readonly RecordColumn[] {
  return columns.flatMap(name => {
    const known = table.columnByName.get(name)
    return known === undefined ? [] : [recordColumn(name, toTypeName(known.type))]
  })
}
