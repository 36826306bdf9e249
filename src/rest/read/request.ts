/**
 * Parses a read request into its tree and values. This happens for every request; compilation (`tree.ts`, the
 * access check, the printer) happens only for plan keys that are not cached.
 */
import { unknownTableColumn } from '../../access/refusals.ts'
import { followable } from '../../access/relations.ts'
import type { View } from '../../access/rights.ts'
import type { Relation, Table } from '../../catalog/model.ts'
import type { Known } from '../../compile/unless-known.ts'
import { GatewayError } from '../../errors.ts'
import type { Parameter } from '../../language/tree/ast.ts'
import { nearest } from '../../text/nearest.ts'
import { shorten } from '../../text/shorten.ts'
import { parseColumnPath } from '../parameters/column-path.ts'
import { keyOfRelation, parseExpand } from '../parameters/expand.ts'
import { type Condition, type FilterLimits, parseFilters } from '../parameters/filters.ts'
import { parseNameList } from '../parameters/name-reader.ts'
import { effectiveLimit, type Limit, limitOf, parseBoolean, parseCount } from '../parameters/page.ts'
import type { QueryParameter } from '../parameters/query-string.ts'
import { findMisspelt, partitionParameters } from '../parameters/request-parameters.ts'
import { parseSelect, type SelectItem } from '../parameters/select.ts'
import { parseSort, type SortItem } from '../parameters/sort.ts'
import { LIST_PARAMETERS, ONE_PARAMETERS, parametersIn, type WrittenRequest } from '../request.ts'
import type { TablesOptions } from '../row-version.ts'
import type { Values } from '../values.ts'
import { type CursorCodec, invalidCursor } from './cursor.ts'
import { type ExpandedRelation, withParameters } from './expand.ts'

/** Limits on read requests. */
export interface ReadLimits extends FilterLimits {
  readonly tables: TablesOptions
  readonly defaultLimit: number
  readonly maxResultRows: number
  readonly maxExpandDepth: number
}

interface ReadTree {
  readonly written: WrittenRequest
  readonly table: Table
  /** The part that the client has and PostgreSQL compares. */
  readonly known?: Known
}

interface Fields extends ReadTree {
  /** The selected columns; empty for all columns. */
  readonly select: readonly SelectItem[]
  readonly expand: readonly ExpandedRelation[]
}

/** The tree of `GET /api/{table}/{id}`. */
export interface OneTree extends Fields {
  readonly kind: 'one'
  readonly id: readonly Parameter[]
  /** The column whose value is answered behind the row, its version; null: none. */
  readonly version: string | null
}

/** The tree of `GET /api/{table}`, its `_explain`, and `GET /api/{table}/{id}/{child}`. */
export interface ListTree extends Fields {
  readonly kind: 'list'
  /** The row whose children are listed, or null for all rows of the table. */
  readonly parent: ParentTree | null
  readonly filter: readonly Condition[]
  readonly search: Search | null
  readonly sort: readonly SortItem[]
  /** The text of `sort`, to which a cursor is bound. */
  readonly sortText: string
  readonly distinct: string | null
  /** Limit on the rows of the response. */
  readonly limit: number
  /** The operand of LIMIT, as text or parameter. */
  readonly fetch: Limit
  readonly offset: { readonly value: number; readonly parameter: Parameter } | null
  readonly cursor: ReceivedCursor | null
  readonly stream: boolean
  /** True if `Prefer: count=exact` was sent. */
  readonly total: boolean
}

/** The query whether the row whose children are listed exists. */
export interface ParentTree {
  readonly kind: 'parent'
  readonly table: Table
  readonly id: readonly Parameter[]
  readonly relation: Relation
  /** The name of the relation in the path. */
  readonly child: string
}

/** The query for the number of rows on all pages of a list. */
export interface TotalTree {
  readonly kind: 'total'
  readonly list: ListTree
}

/** The query for the execution plan of a list. EXPLAIN executes the list. */
export interface ExplainTree {
  readonly kind: 'explain'
  readonly list: ListTree
}

/** A full-text search. */
export interface Search {
  readonly words: Parameter
  /** The searched columns, or null for every text column. */
  readonly columns: readonly string[] | null
}

/** A cursor sent by a client, decoded but not verified. */
export interface ReceivedCursor {
  readonly digest: string
  readonly values: readonly (string | null)[]
  /** A parameter for each value; null for NULL. */
  readonly parameters: readonly (Parameter | null)[]
}

type ListParameter = (typeof LIST_PARAMETERS)[number]

/**
 * Parses the read of one row.
 * @throws {GatewayError} `PARSE_ERROR` for a parameter that is invalid or not accepted.
 */
export function parseOne(
  written: WrittenRequest,
  table: Table,
  id: readonly Parameter[],
  values: Values,
  limits: ReadLimits,
  version: string | null,
): OneTree {
  const { named, others, related } = partitionParameters<ListParameter>(parametersIn(written), ONE_PARAMETERS)
  const [unknown] = others
  if (unknown !== undefined) throw unknownParameter(unknown.name)
  const select = parseSelect(named.get('select'), values)
  const relations = parseExpand(named.get('expand'), limits.maxExpandDepth)
  const expand = withParameters(relations, related, values, limits, { filters: 0 })
  return { kind: 'one', written, table, id, select, expand, version: expand.length === 0 ? version : null }
}

function unknownParameter(name: string): GatewayError {
  const near = nearest(name, ONE_PARAMETERS)
  const hint = near === null ? 'it accepts select and expand' : `did you mean "${near}"?`
  return new GatewayError(
    'PARSE_ERROR',
    `a request for a single row does not accept the parameter "${shorten(name)}"; ${hint}`,
  )
}

/**
 * Parses a list. `parent` is the row whose children are listed, or null for all rows of the table.
 * @throws {GatewayError} `PARSE_ERROR` for an invalid parameter, combination of parameters or exceeded limit.
 */
export function parseListRequest(
  written: WrittenRequest,
  table: Table,
  parent: ParentTree | null,
  values: Values,
  { cursors, limits }: { readonly cursors: CursorCodec; readonly limits: ReadLimits },
): ListTree {
  const { named, others, related } = partitionParameters<ListParameter>(parametersIn(written), LIST_PARAMETERS)
  const counted = { filters: 0 }
  const filter = parseFilters(others, values, limits, counted)
  const stream = parseBoolean(named.get('stream'), 'stream')
  const search = parseSearch(named, values)
  const select = parseSelect(named.get('select'), values)
  const relations = parseExpand(named.get('expand'), limits.maxExpandDepth)
  const expand = withParameters(relations, related, values, limits, counted)
  const sort = parseSort(named.get('sort'), values)
  const distinct = parseDistinct(named.get('distinct'))
  const cursor = parseCursor(named.get('cursor'), values, cursors)
  const { limit, fetch, offset } = parsePage(named, values, limits, stream)
  refuseCombinations(cursor, offset, distinct, select.length > 0 || expand.length > 0)
  const sortText = named.get('sort') ?? ''
  const total = !stream && written.headers.prefer.total
  // Written out because spreading objects is measurably slower.
  return {
    kind: 'list',
    written,
    table,
    parent,
    filter,
    search,
    select,
    expand,
    sort,
    sortText,
    distinct,
    limit,
    fetch,
    offset,
    cursor,
    stream,
    total,
  }
}

/**
 * Rejects a misspelt parameter and suggests a column of `table` or one of `ours`, the parameters of the
 * route.
 * @throws {GatewayError} `PARSE_ERROR`.
 */
export function refuseMisspeltParameter(
  parameters: readonly QueryParameter[],
  table: Table,
  { rights }: View,
  ours: readonly string[],
): void {
  const name = findMisspelt(parameters, known => ours.includes(known) || table.columnByName.has(known))
  if (name === undefined) return
  const instead = FOREIGN_PARAMETERS.get(name.toLowerCase())
  if (instead === undefined || !ours.includes(instead)) throw unknownTableColumn(name, table, rights, ours)
  throw new GatewayError('PARSE_ERROR', `there is no parameter "${name}"; did you mean "${instead}"?`, {
    hint: HINTS[instead],
  })
}

/**
 * Rejects a filter such as `items.amount=5` whose relation is not expanded, unless a column has that name.
 * @throws {GatewayError} `PARSE_ERROR` with the expansion to write, or the nearest expanded relation.
 */
export function refuseUnexpanded({ written, table, expand }: Fields, view: View): void {
  for (const parameter of written.parameters) {
    const path = parameter.kind === 'filter' && parameter.filter.kind === 'test' ? parameter.filter.path : null
    const dot = path?.column.indexOf('.') ?? -1
    if (path === null || dot <= 0 || table.columnByName.has(path.column)) continue
    const relation = path.column.slice(0, dot)
    const found = followable(table, view).find(({ name, shortName }) => relation === name || relation === shortName)
    const near = nearest(relation, expand.map(keyOfRelation))
    if (found === undefined && near === null) continue
    const wanted = found === undefined ? null : `${found.cardinality === 'many' ? 'nested:' : ''}${relation}`
    throw new GatewayError(
      'PARSE_ERROR',
      wanted === null || expand.some(known => known.relation === relation)
        ? `"${shorten(relation)}" is not the name of an expanded relation; did you mean "${near}"?`
        : `"${shorten(path.column)}" is about "${relation}", which is not expanded; add expand=${wanted}`,
    )
  }
}

/** The names that other APIs use for these parameters. */
const FOREIGN_PARAMETERS: ReadonlyMap<string, keyof typeof HINTS> = new Map([
  ...(['order', 'order_by', 'orderby', 'sort_by'] as const).map(name => [name, 'sort'] as const),
  ...(['fields', 'columns'] as const).map(name => [name, 'select'] as const),
  ...(['include', 'embed', 'with'] as const).map(name => [name, 'expand'] as const),
])

const HINTS = {
  sort: 'write sort=name for ascending order, sort=-name or sort=name:desc for descending order',
  select: 'write select=id,name',
  expand:
    'write expand=customer for the row that a foreign key of this table references, ' +
    'expand=nested:items for rows that reference this table',
} as const

/**
 * Rejects `select=a,rel(*)`, PostgREST's notation for embedded rows.
 * @throws {GatewayError} `PARSE_ERROR`.
 */
export function refuseEmbedded(parameters: readonly QueryParameter[], table: Table): void {
  const text = parameters.find(({ name }) => name === 'select')?.value ?? ''
  const [, written = '', name = ''] = EMBEDDED.exec(text) ?? []
  if (name === '' || table.columns.some(column => column.name.includes('('))) return
  throw new GatewayError(
    'PARSE_ERROR',
    `select has "${shorten(written)}(…)"; select takes columns, and expand joins rows`,
    {
      hint:
        `write expand=${shorten(name)} for the row that a foreign key of this table references, ` +
        `expand=nested:${shorten(name)} for rows that reference this table`,
    },
  )
}

/** Matches an item that opens a parenthesis: `rel(`, `alias:rel(`, `rel!hint(`. */
const EMBEDDED = /(?:^|,)\s*((?:[^",():]+:)?([^",():!]+)(?:![^",():!]+)?)\(/

/**
 * Parses `search` and `search_columns`; null without a search.
 * @throws {GatewayError} `PARSE_ERROR` for columns without a search.
 */
export function parseSearch(
  named: Pick<ReadonlyMap<'search' | 'search_columns', string>, 'get'>,
  values: Values,
): Search | null {
  const words = named.get('search')
  const columns = named.get('search_columns')
  if (words === undefined) {
    if (columns !== undefined) throw new GatewayError('PARSE_ERROR', 'search_columns requires search; add search=words')
    return null
  }
  const names = columns === undefined ? null : parseNameList(columns, 'search_columns')
  return { words: values.add(words), columns: names }
}

function parseDistinct(text: string | undefined): string | null {
  if (text === undefined) return null
  const path = parseColumnPath(text)
  if (path.steps.length > 0)
    throw new GatewayError(
      'PARSE_ERROR',
      `distinct "${shorten(text)}" is not a column; distinct takes the name of one column`,
    )
  return path.column
}

function parseCursor(text: string | undefined, values: Values, codec: CursorCodec): ReceivedCursor | null {
  if (text === undefined) return null
  if (text === '') throw invalidCursor()
  const cursor = codec.decode(text)
  return { ...cursor, parameters: cursor.values.map(value => (value === null ? null : values.add(value))) }
}

function parsePage(
  named: ReadonlyMap<ListParameter, string>,
  values: Values,
  limits: ReadLimits,
  stream: boolean,
): Pick<ListTree, 'limit' | 'fetch' | 'offset'> {
  const wanted = parseCount(named.get('limit'), 'limit')
  const offset = parseCount(named.get('offset'), 'offset')
  // A stream without a limit ends at the row cap, or at the end of the table if rows are not capped.
  const fallback = stream ? Number.MAX_SAFE_INTEGER - 1 : limits.defaultLimit
  const limit = effectiveLimit(wanted, fallback, limits.maxResultRows)
  // One extra row shows whether there is a next page; a stream has no pages.
  const rows = stream || limit === 0 ? limit : limit + 1
  const fetch = limitOf(limit, rows, values)
  if (offset === undefined) return { limit, fetch, offset: null }
  return { limit, fetch, offset: { value: offset, parameter: values.add(String(offset)) } }
}

function refuseCombinations(
  cursor: ListTree['cursor'],
  offset: ListTree['offset'],
  distinct: string | null,
  hasFields: boolean,
): void {
  if (cursor !== null && offset !== null) {
    throw new GatewayError('PARSE_ERROR', 'cursor and offset both set the start of the page; use only one of them')
  }
  if (distinct !== null && hasFields) {
    throw new GatewayError('PARSE_ERROR', 'distinct returns one column; it cannot be combined with select or expand')
  }
}
