/**
 * Builds the tree of a write, in the same form as the tree of a query-language text, except that the values
 * are a body.
 */
import { castTo, isJson, toTypeName } from '../../access/types.ts'
import type { Table } from '../../catalog/model.ts'
import type { Add, Conflict, Del, Expression, Get, RecordColumn, Set as SetStatement } from '../../language/tree/ast.ts'
import {
  add,
  and,
  arithmetic,
  arraySource,
  assign,
  call,
  cast,
  column,
  compare,
  conflict,
  del,
  field,
  getFrom,
  impliedColumn,
  inSet,
  integer,
  isNull,
  jsonPatch,
  jsonStep,
  recordColumn,
  recordSource,
  set,
  text,
} from '../../language/tree/build.ts'
import { buildFilter } from '../parameters/filters.ts'
import { buildFields } from '../parameters/select.ts'
import { keyEquals, TABLE_ALIAS } from '../resource.ts'
import type {
  BodyTree,
  DeleteTree,
  ImportTree,
  InsertTree,
  PartialChange,
  SetTree,
  UpsertOptions,
  WriteTarget,
} from './request.ts'

/** The alias of the body. */
const BODY = 'x'

/**
 * Inserts the rows of an array, or one row from an object. All have exactly the keys in `columns`; without
 * keys only the number of rows matters.
 */
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

/** Inserts the rows of arrays. */
export function buildImport({ table, columns, values, upsert }: ImportTree): Add {
  const source = arraySource(values, BODY, recordColumns(table, columns))
  return add({
    table,
    columns,
    from: getFrom(source, { fields: columns.map(name => field(column(BODY, name))) }),
    conflict: upsert === null ? null : buildConflict(upsert, columns),
    returning: [],
  })
}

/**
 * Updates every given column except those of the target. If there is no other column, it sets the target to
 * its current value, so that the row is returned.
 */
function buildConflict({ target, existing }: UpsertOptions, columns: readonly string[]): Conflict {
  if (existing === 'ignore') return conflict(target, null)
  const others = columns.filter(name => !target.includes(name))
  const assigned = others.length > 0 ? others : target
  return conflict(
    target,
    assigned.map(name => assign(name, column('excluded', name))),
  )
}

/**
 * Selects a key that several rows of the body have, if any. One statement would reject such rows, but a batch
 * of several statements would not detect them. A key with a NULL equals no other.
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

/** Selects the key of each row of the body, in its order. */
export function buildKeys({ table, columns, value }: BodyTree): Get {
  const fields = columns.map(name => field(column(BODY, name)))
  return getFrom(recordSource(value, BODY, recordColumns(table, columns), 'many'), { fields })
}

/** Updates the columns in `columns` to the values of the body. */
export function buildSet(tree: SetTree): SetStatement {
  const { table, columns, value, target, returning, partial } = tree
  if (partial?.kind === 'operations') return buildOperations(tree, partial.document)
  return set({
    table,
    alias: TABLE_ALIAS,
    from: recordSource(value, BODY, recordColumns(table, columns), 'one'),
    assignments: columns.map(name => assign(name, changedValue(name, table, partial))),
    where: buildTarget(target, table),
    returning: buildFields(returning, null),
  })
}

/** The current value is needed to compute the new one, and is not revealed. */
function changedValue(name: string, table: Table, partial: ValueChanges | undefined): Expression {
  const given = column(BODY, name)
  const current = impliedColumn(TABLE_ALIAS, name)
  if (partial?.increments.includes(name) === true) return arithmetic('+', current, given)
  if (partial?.merged.includes(name) !== true) return given
  if (table.columnByName.get(name)?.type.name !== 'json') return jsonPatch('merge', current, given)
  return cast(jsonPatch('merge', cast(current, 'jsonb'), cast(given, 'jsonb')), 'json')
}

type ValueChanges = Extract<PartialChange, { kind: 'values' }>

/** Applies a list of operations to the columns `document` of the row. */
function buildOperations({ table, columns, value, target, returning }: SetTree, document: readonly string[]) {
  const row = call(
    'jsonb_build_object',
    document.flatMap(name => [text(name), column(TABLE_ALIAS, name)]),
  )
  const patched = jsonPatch('operations', row, cast(value, 'jsonb'))
  return set({
    table,
    alias: TABLE_ALIAS,
    from: null,
    assignments: columns.map(name => assign(name, memberOf(patched, name, table))),
    where: buildTarget(target, table),
    returning: buildFields(returning, null),
  })
}

/** JSON's null is NULL. */
function memberOf(document: Expression, name: string, table: Table): Expression {
  const type = table.columnByName.get(name)?.type
  if (type === undefined) return jsonStep('->', document, text(name))
  const member = jsonStep(isJson(type) ? '->' : '->>', document, text(name))
  return isJson(type) ? castTo(call('nullif', [member, cast(text('null'), 'jsonb')]), type) : castTo(member, type)
}

/** Deletes the target rows. */
export function buildDel({ table, target, returning }: DeleteTree): Del {
  return del({ table, alias: TABLE_ALIAS, where: buildTarget(target, table), returning: buildFields(returning, null) })
}

function buildTarget(target: WriteTarget, table: Table): Expression {
  const where = target.kind === 'row' ? rowIs(target, table) : buildFilter(target.filter, TABLE_ALIAS)
  if (where === null) throw new Error('a write to all rows must be rejected earlier')
  return where
}

/** PostgreSQL evaluates this again for the row that a concurrent write leaves (PostgreSQL manual, 13.2.1). */
function rowIs({ id, version }: WriteTarget & { readonly kind: 'row' }, table: Table): Expression {
  const key = keyEquals(table, TABLE_ALIAS, id)
  if (version === null) return key
  return and(key, inSet(cast(impliedColumn(TABLE_ALIAS, version.column), 'text'), version.values))
}

/**
 * The record's columns. A key that is not a column is omitted; the access check rejects it where it is
 * written.
 */
function recordColumns(table: Table, columns: readonly string[]): readonly RecordColumn[] {
  return columns.flatMap(name => {
    const known = table.columnByName.get(name)
    return known === undefined ? [] : [recordColumn(name, toTypeName(known.type))]
  })
}
