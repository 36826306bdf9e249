/** Builds the tree of a read request, in the same form as the tree of a query-language text. */

import { columnsEqual, followable, relatedTable } from '../../access/relations.ts'
import { allowsAll, readableColumns, type View } from '../../access/rights.ts'
import { isSearchable } from '../../access/types.ts'
import type { Catalog, Relation, Table } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import type { Arithmetic, Expression, Field, Get, Order, Parameter } from '../../language/tree/ast.ts'
import {
  allOf,
  and,
  arithmetic,
  call,
  column,
  compare,
  exists,
  field,
  get,
  impliedColumn,
  integer,
  isNull,
  order,
  text,
} from '../../language/tree/build.ts'
import { nearest } from '../../text/nearest.ts'
import { shorten } from '../../text/shorten.ts'
import { buildFilter } from '../parameters/filters.ts'
import { limitCount } from '../parameters/page.ts'
import { buildFields, type SelectItem } from '../parameters/select.ts'
import { buildOrder, plainColumn } from '../parameters/sort.ts'
import { keyEquals, TABLE_ALIAS } from '../resource.ts'
import { afterCursor, type CursorKey, invalidCursor } from './cursor.ts'
import { expandNests } from './expand.ts'
import { resolveRelation } from './relation.ts'
import type { ListTree, OneTree, ParentTree, ReadLimits, Search } from './request.ts'

/** The aliases of the parent of a child list and of the junction to it. */
const PARENT = 'p'
const VIA = 'j'

/** Selects the row with the key `id`. */
export function buildOne(tree: OneTree, view: View, limits: ReadLimits): Get {
  const { table, id, select, expand, version } = tree
  return get({
    table,
    alias: TABLE_ALIAS,
    fields: version !== null ? namedFields(select, table, view) : buildFields(select, null),
    nests: expandNests(expand, table, TABLE_ALIAS, view, limits),
    where: keyEquals(table, TABLE_ALIAS, id),
  })
}

/** The fields with `*` written out, for rows with a further column or a header. */
function namedFields(select: readonly SelectItem[], table: Table, { rights }: View): readonly Field[] {
  const all = readableColumns(table, rights).map(({ name }) => field(column(TABLE_ALIAS, name)))
  const items: readonly SelectItem[] = select.length === 0 ? [{ kind: 'star' }] : select
  const fields = items.flatMap(item => (item.kind === 'star' && all.length > 0 ? all : buildFields([item], null)))
  return fields
}

/**
 * Builds the tree of one page or of a stream.
 * @throws {GatewayError} for an unknown relation, a cursor of another list or an unsearchable column.
 */
export function buildList(list: ListTree, view: View, limits: ReadLimits): Get {
  const { table, distinct } = list
  const conditions = conditionsOf(list, view)
  const keys = sortKeys(list)
  const paging = pagingOf(list, view)
  const after = cursorCondition(list, keys, paging)
  return get({
    ...{ table, alias: TABLE_ALIAS, distinct: distinct !== null },
    fields: fieldsOf(list, view),
    nests: expandNests(list.expand, table, TABLE_ALIAS, view, limits),
    where: allOf([...conditions, after]),
    orderBy: keys,
    limit: limitCount(list.fetch),
    offset: offsetOf(list, paging),
  })
}

function fieldsOf({ table, select, distinct, written }: ListTree, view: View): readonly Field[] {
  if (distinct !== null) return [field(column(TABLE_ALIAS, distinct), null)]
  return written.headers.csv ? namedFields(select, table, view) : buildFields(select, null)
}

/** Counts the rows on all pages: one row with one column. */
export function buildTotal(list: ListTree, view: View): Get {
  const count = list.distinct === null ? call('count', [], { star: true }) : countDistinct(list.distinct)
  const where = allOf(conditionsOf(list, view))
  return get({ table: list.table, alias: TABLE_ALIAS, fields: [field(count, 'count')], where })
}

/** The conditions for the rows on all pages. */
function conditionsOf({ table, parent, filter, search }: ListTree, view: View): readonly (Expression | null)[] {
  const within = parent === null ? null : childCondition(parent, view.catalog)
  return [within, buildFilter(filter, null), searchCondition(search, table, view)]
}

/**
 * How the next page is found. Pages are counted by offset if a cursor would reveal a column that the caller
 * cannot read, or if the table has no key.
 */
export function pagingOf({ table, distinct }: ListTree, { rights }: View): Paging {
  if (distinct !== null) return 'keys'
  const { read } = rights.of(table)
  return table.primaryKey.length > 0 && allowsAll(read, table.primaryKey) ? 'keys' : 'offset'
}

/** How pages follow each other: by the sort keys of the last row, or by offset. */
export type Paging = 'keys' | 'offset'

/** count(distinct c) does not count NULL, but the list includes it, so NULL is counted separately. */
function countDistinct(name: string): Expression {
  const counted = column(TABLE_ALIAS, name)
  return arithmetic(
    '+',
    call('count', [counted], { distinct: true }),
    call('least', [call('count', [], { star: true, filter: isNull(counted) }), integer('1')]),
  )
}

/**
 * The requested sort followed by the missing columns of the primary key, if there is one. The order is then
 * unique, and pages neither repeat nor skip rows.
 */
function sortKeys({ table, sort, distinct }: ListTree): readonly Order[] {
  if (distinct !== null) {
    const other = sort.find(item => plainColumn(item) !== distinct)
    if (other !== undefined) {
      throw new GatewayError(
        'PARSE_ERROR',
        `with distinct=${distinct} only sort=${distinct} or sort=-${distinct} is possible`,
      )
    }
    const [first] = sort
    return [first === undefined ? order(column(TABLE_ALIAS, distinct)) : buildOrder(first, TABLE_ALIAS)]
  }
  const sorted = new Set(sort.map(plainColumn))
  const appended = table.primaryKey
    .filter(name => !sorted.has(name))
    .map(name => order(impliedColumn(TABLE_ALIAS, name)))
  return [...sort.map(item => buildOrder(item, TABLE_ALIAS)), ...appended]
}

function cursorCondition({ cursor, table }: ListTree, keys: readonly Order[], paging: Paging): Expression | null {
  if (cursor === null || paging === 'offset') return null
  if (cursor.values.length !== keys.length) throw invalidCursor()
  const positions: CursorKey[] = keys.map((key, index) => ({
    order: key,
    value: cursor.parameters[index] ?? null,
    nullable: isNullable(key, table),
  }))
  return afterCursor(positions)
}

function isNullable({ expression }: Order, table: Table): boolean {
  const name = expression.kind === 'column' ? expression.path.at(-1) : undefined
  const known = name === undefined ? undefined : table.columnByName.get(name)
  return known === undefined || known.nullable
}

function offsetOf(request: ListTree, paging: Paging): Parameter | null {
  if (request.offset !== null) return request.offset.parameter
  if (request.cursor === null || paging === 'keys') return null
  const [parameter] = request.cursor.parameters
  if (request.cursor.values.length !== 1 || parameter === undefined) throw invalidCursor()
  return parameter
}

/**
 * The condition of a full-text search, or null without one. All columns form one document, so the words can
 * be in different columns.
 * @throws {GatewayError} `PARSE_ERROR` for a column that is not text, `FORBIDDEN` if no text column is
 * readable.
 */
export function searchCondition(search: Search | null, table: Table, view: View): Expression | null {
  if (search === null) return null
  const columns = search.columns ?? searchableColumns(table, view)
  const documents = columns.map(name => {
    const known = table.columnByName.get(name)
    if (known !== undefined && !isSearchable(known.type)) {
      throw new GatewayError('PARSE_ERROR', `search_columns has "${name}", which is ${known.typeText}, not text`)
    }
    return column(TABLE_ALIAS, name)
  })
  if (documents.length === 0) {
    const hidden = table.columns.some(known => isSearchable(known.type))
    throw hidden
      ? new GatewayError(
          'FORBIDDEN',
          `no text column of "${table.resource}" is readable, so there is nothing to search`,
        )
      : new GatewayError('PARSE_ERROR', `table "${table.resource}" has no text columns to search`)
  }
  return { ...compare('@@', joined(documents), search.words), searches: true }
}

/**
 * Builds `coalesce(a, '') || ' ' || coalesce(b, '') …` as a balanced tree, because a chain of many columns
 * would be nested too deeply.
 */
function joined(documents: readonly Expression[]): Expression {
  const parts = documents.map(document => (documents.length === 1 ? document : call('coalesce', [document, text('')])))
  const join = (from: number, to: number): Expression => {
    const only = parts[from]
    if (to - from === 1 && only !== undefined) return only
    const middle = (from + to) >> 1
    const left: Arithmetic = { ...arithmetic('||', join(from, middle), text(' ')), searches: true }
    return { ...arithmetic('||', left, join(middle, to)), searches: true }
  }
  return join(0, parts.length)
}

function searchableColumns(table: Table, { rights }: View): readonly string[] {
  return readableColumns(table, rights)
    .filter(known => isSearchable(known.type))
    .map(known => known.name)
}

/** Selects the parent of a child list: one row if the caller can see it, otherwise none. */
export function buildParent({ table, id }: ParentTree): Get {
  const [first = ''] = table.primaryKey
  return get({
    table,
    alias: PARENT,
    fields: [field(impliedColumn(PARENT, first), null)],
    where: keyEquals(table, PARENT, id),
  })
}

/**
 * The condition for children of the row with this id. If the relation references the primary key, the id is
 * compared directly. A junction is outside of the parent: PostgreSQL can only join the three tables if each
 * `exists` refers to the query around it.
 */
function childCondition({ relation, table: parent, id }: ParentTree, catalog: Catalog): Expression {
  const { columns, targetColumns, junction } = relation
  const parentWith = (linked: Expression) =>
    exists(get({ table: parent, alias: PARENT, where: and(keyEquals(parent, PARENT, id), linked) }))
  if (junction !== null) {
    const linked = parentWith(columnsEqual(VIA, junction.from, PARENT, columns))
    return exists(
      get({
        table: relatedTable(catalog, junction.table),
        alias: VIA,
        where: and(columnsEqual(VIA, junction.to, TABLE_ALIAS, targetColumns), linked),
      }),
    )
  }
  const byKey = columns.map(name => parent.primaryKey.indexOf(name))
  if (!byKey.every(index => index >= 0)) return parentWith(columnsEqual(TABLE_ALIAS, targetColumns, PARENT, columns))
  return and(
    ...targetColumns.map((name, index) => {
      const value = id[byKey[index] ?? -1]
      if (value === undefined) throw new Error('an id has a value for each column of the key')
      return compare('=', column(TABLE_ALIAS, name), value)
    }),
  )
}

/**
 * The relation in a path segment `child` or `child!hint`. A relation name that contains an exclamation mark
 * takes precedence.
 * @throws {GatewayError} `NOT_FOUND` if there is no such child.
 */
export function childRelation(parent: Table, child: string, view: View): Relation {
  const isChild = (name: string) =>
    parent.relations.some(known => (known.name === name || known.table === name) && known.cardinality === 'many')
  const mark = isChild(child) ? -1 : child.lastIndexOf('!')
  const relation = mark < 0 ? child : child.slice(0, mark)
  if (!isChild(relation)) throw unknownChild(parent, relation, view)
  return resolveRelation(parent, { relation, hint: mark < 0 ? null : child.slice(mark + 1), nested: true }, view, '')
}

function unknownChild(parent: Table, child: string, view: View): GatewayError {
  const names = followable(parent, view)
    .filter(relation => relation.cardinality === 'many')
    .map(relation => relation.name)
  const near = nearest(child, names)
  const hint = near === null ? 'it has no foreign key to this table' : `did you mean "${near}"?`
  return new GatewayError('NOT_FOUND', `"${shorten(child)}" is not a child of "${parent.resource}"; ${hint}`)
}
