/**
 * Builds the tree of a write, in the same form as the tree of a query-language text, except that the values
 * are a body.
 */
import type { View } from '../../access/rights.ts'
import { castTo, isJson, toTypeName } from '../../access/types.ts'
import type { Table } from '../../catalog/model.ts'
import {
  type Add,
  type Conflict,
  type Del,
  type Expression,
  type Get,
  type Join,
  NOWHERE,
  type RecordColumn,
  type Set as SetStatement,
  type TypeName,
} from '../../language/tree/ast.ts'
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
  crossJoin,
  del,
  field,
  get,
  getFrom,
  impliedColumn,
  inSet,
  integer,
  isNull,
  jsonPatch,
  jsonStep,
  literal,
  order,
  recordColumn,
  recordSource,
  set,
  text,
} from '../../language/tree/build.ts'
import { buildFilter } from '../parameters/filters.ts'
import { buildFields } from '../parameters/select.ts'
import { type ExpandLimits, expandNests } from '../read/expand.ts'
import { keyEquals, TABLE_ALIAS } from '../resource.ts'
import type {
  BodyTree,
  ChildrenTree,
  DeleteTree,
  FoundTree,
  ImportTree,
  InsertTree,
  ParsedUpsert,
  PartialChange,
  SetTree,
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
function buildConflict({ target, existing }: ParsedUpsert, columns: readonly string[]): Conflict {
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
  const cleared = tree.cleared ?? []
  return set({
    table,
    alias: TABLE_ALIAS,
    from:
      target.kind === 'matched'
        ? recordSource(value, BODY, recordColumns(table, [...target.by, ...columns]), 'many')
        : recordSource(value, BODY, recordColumns(table, columns), 'one'),
    assignments: [
      ...columns.map(name => assign(name, changedValue(name, table, partial))),
      ...cleared.map(name => assign(name, literal('null', 'null'))),
    ],
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
  const alone = del({
    ...{ table, alias: TABLE_ALIAS, where: buildTarget(target, table) },
    returning: buildFields(returning, null),
  })
  if (target.kind !== 'matched') return alone
  return { ...alone, joins: [crossJoin(recordSource(target.rows, BODY, recordColumns(table, target.by), 'many'))] }
}

function buildTarget(target: WriteTarget, table: Table): Expression {
  switch (target.kind) {
    case 'row':
      return rowIs(target, table)
    case 'matched':
      return isMatched(target.by, BODY, table)
    case 'rows': {
      const where = buildFilter(target.filter, TABLE_ALIAS)
      if (where === null) throw new Error('a write to all rows must be rejected earlier')
      return where
    }
  }
}

/**
 * The columns of the primary key are implied, as those of an id in a path are. Those of a foreign key show
 * where a row belongs, so they must be readable.
 */
function isMatched(by: readonly string[], body: string, { primaryKey }: Table): Expression {
  const own = (name: string) =>
    primaryKey.includes(name) ? impliedColumn(TABLE_ALIAS, name) : column(TABLE_ALIAS, name)
  return and(...by.map(name => compare('=', own(name), column(body, name))))
}

/** The position of a row in the array of a body. */
const POSITION = 'svc_position'
const INTEGER: TypeName = { kind: 'type', schema: null, name: 'int4', modifiers: [], dimensions: 0, span: NOWHERE }

/** Selects the rows that an array names, with their related rows. */
export function buildFound({ table, by, value, answer }: FoundTree, view: View, limits: ExpandLimits): Get {
  const source = recordSource(value, BODY, [positionColumn(POSITION), ...recordColumns(table, by)], 'many')
  const place = column(BODY, POSITION)
  const isWhole = 'select' in answer
  return getFrom(source, {
    joins: [crossJoin(get({ table, alias: TABLE_ALIAS }).source)],
    fields: isWhole
      ? buildFields(answer.select, TABLE_ALIAS)
      : [field(place), ...answer.columns.map(name => field(column(TABLE_ALIAS, name)))],
    nests: isWhole ? expandNests(answer.expand, table, TABLE_ALIAS, view, limits) : [],
    where: isMatched(by, BODY, table),
    orderBy: [order(place)],
  })
}

const PARENTS = 'p'
const ELEMENTS = 'e'

/** Selects the children of several rows, and which elements of an array name them. */
export function buildChildren(tree: ChildrenTree): Get {
  const { table, relation, parents, elements, key, columns, rowsMax } = tree
  const { targetColumns } = relation
  const ofParents = [positionColumn(POSITION), ...recordColumns(table, targetColumns)]
  const ofElements = [positionColumn('svc_parent'), positionColumn(POSITION), ...recordColumns(table, key)]
  const isNamed = and(
    compare('=', column(ELEMENTS, 'svc_parent'), column(PARENTS, POSITION)),
    ...key.map(name => compare('=', column(ELEMENTS, name), column(TABLE_ALIAS, name))),
  )
  const naming: Join = { ...crossJoin(recordSource(elements, ELEMENTS, ofElements, 'many')), type: 'left', on: isNamed }
  return getFrom(recordSource(parents, PARENTS, ofParents, 'many'), {
    joins: [crossJoin(get({ table, alias: TABLE_ALIAS }).source), naming],
    fields: [
      field(column(PARENTS, POSITION), 'parent'),
      field(column(ELEMENTS, POSITION), 'element'),
      ...columns.map((name, index) => field(column(TABLE_ALIAS, name), `c${index}`)),
    ],
    where: isMatched(targetColumns, PARENTS, table),
    limit: integer(String(rowsMax + 1)),
  })
}

function positionColumn(name: string): RecordColumn {
  return recordColumn(name, INTEGER)
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
