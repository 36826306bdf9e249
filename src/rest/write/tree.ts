/** Builds the tree of a write: what a query-language text of the same meaning would become, but for its values, which are a body. */
import { toTypeName } from '../../access/types.ts'
import type { Table } from '../../catalog/model.ts'
import type {
  Add,
  Conflict,
  Del,
  Expression,
  Field,
  Get,
  Parameter,
  RecordColumn,
  Set as SetStatement,
} from '../../language/tree/ast.ts'
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
import { ofSource } from '../of-source.ts'
import { SELF } from '../resource.ts'
import type { Upsert } from './request.ts'

/** The alias of the body. */
const BODY = 'x'

/** Rows from an array of objects, or one from an object, that all have exactly these keys. Without keys only the number of rows counts. */
export function buildAdd(
  table: Table,
  columns: readonly string[],
  body: { readonly value: Parameter; readonly rows: 'one' | 'many' },
  upsert: Upsert | null,
  returning: readonly Field[],
): Add {
  const record = recordSource(body.value, BODY, recordColumns(table, columns), body.rows)
  const defaults = body.rows === 'one' ? 'defaults' : body.value
  const fields = columns.map(name => field(column(BODY, name)))
  return add({
    table,
    columns,
    from: columns.length === 0 ? defaults : getFrom(record, { fields }),
    conflict: upsert === null ? null : buildConflict(upsert, columns),
    returning,
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
export function buildRepeated(table: Table, target: readonly string[], body: Parameter): Get {
  const keys = target.map(name => column(BODY, name))
  return getFrom(recordSource(body, BODY, recordColumns(table, target), 'many'), {
    fields: keys.map(key => field(key)),
    where: and(...keys.map(key => isNull(key, 'negated'))),
    groupBy: keys,
    having: compare('>', call('count', [], { star: true }), integer('1')),
    limit: integer('1'),
  })
}

/** The key that each row of the body gives, in its order. */
export function buildKeys(table: Table, target: readonly string[], body: Parameter): Get {
  const fields = target.map(name => field(column(BODY, name)))
  return getFrom(recordSource(body, BODY, recordColumns(table, target), 'many'), { fields })
}

/** The columns in `columns` from the body, in the rows that `where` picks. */
export function buildSet(
  table: Table,
  columns: readonly string[],
  body: Parameter,
  where: Expression,
  returning: readonly Field[],
): SetStatement {
  return set({
    table,
    alias: SELF,
    from: recordSource(body, BODY, recordColumns(table, columns), 'one'),
    assignments: columns.map(name => assign(name, column(BODY, name))),
    where: ofSource(SELF, where),
    returning,
  })
}

export function buildDel(table: Table, where: Expression, returning: readonly Field[]): Del {
  return del({ table, alias: SELF, where, returning })
}

/** A key that is no column is left out: the check refuses it where it is written. */
function recordColumns(table: Table, columns: readonly string[]): readonly RecordColumn[] {
  return columns.flatMap(name => {
    const known = table.columnByName.get(name)
    return known === undefined ? [] : [recordColumn(name, toTypeName(known.type))]
  })
}
