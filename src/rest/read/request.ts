/**
 * A read request, parsed: what was asked for, with the shape's key and the values apart from it. No names are looked up here, so it is done for
 * every request; what follows (`tree.ts`, the check, the printer) only for a shape not seen before.
 */
import { unknownColumn } from '../../access/refusals.ts'
import type { View } from '../../access/rights.ts'
import type { Table } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import type { Expression, Field, Order, Parameter } from '../../language/tree/ast.ts'

import { nearest } from '../../text/nearest.ts'
import { shorten } from '../../text/shorten.ts'
import { type ColumnPath, parseColumnPath } from '../parameters/column-path.ts'
import { type FilterLimits, parseFilters } from '../parameters/filters.ts'
import { parseNameList } from '../parameters/names.ts'
import { effectiveLimit, type Limit, limitOf, parseBoolean, parseCount } from '../parameters/page.ts'
import type { QueryParameter } from '../parameters/query-string.ts'
import { parseSelect } from '../parameters/select.ts'
import { parseSort } from '../parameters/sort.ts'
import { misspelt, sortOut } from '../parameters/sort-out.ts'
import type { Preferences } from '../prefer.ts'
import type { Shape } from '../shape.ts'
import { type CursorCodec, invalidCursor } from './cursor.ts'
import { type Expansion, parseExpand } from './expand.ts'

export interface ReadLimits extends FilterLimits {
  readonly defaultLimit: number
  readonly maxResultRows: number
  readonly maxExpandDepth: number
}

/** `GET /api/{table}/{id}`. */
export interface OneRequest {
  readonly fields: readonly Field[]
  readonly expand: readonly Expansion[]
}

/** `GET /api/{table}` and `GET /api/{table}/{id}/{child}`. */
export interface ListRequest extends OneRequest {
  readonly filter: Expression | null
  readonly search: Search | null
  readonly sort: readonly Order[]
  /** What the sort was, word for word: a cursor belongs to it. */
  readonly sortText: string
  readonly distinct: ColumnPath | null
  /** Rows at most in the answer. */
  readonly limit: number
  /** The number that LIMIT gets, in the text or as a parameter. */
  readonly fetch: Limit
  readonly offset: { readonly value: number; readonly parameter: Parameter } | null
  readonly cursor: ReceivedCursor | null
  readonly stream: boolean
  /** `Prefer: count=exact`. */
  readonly total: boolean
}

export interface Search {
  readonly words: Parameter
  /** Null: every text column. */
  readonly columns: readonly string[] | null
}

export interface ReceivedCursor {
  readonly digest: string
  readonly values: readonly (string | null)[]
  /** A parameter for each value that is not null. */
  readonly parameters: readonly (Parameter | null)[]
}

export const ONE_PARAMETERS = ['select', 'expand'] as const
export const LIST_PARAMETERS = [
  'select',
  'expand',
  'sort',
  'limit',
  'offset',
  'cursor',
  'distinct',
  'search',
  'search_columns',
  'stream',
] as const

type ListParameter = (typeof LIST_PARAMETERS)[number]

export function parseOneRequest(parameters: readonly QueryParameter[], shape: Shape, limits: ReadLimits): OneRequest {
  const { named, others } = sortOut<ListParameter>(parameters, ONE_PARAMETERS)
  const [unknown] = others
  if (unknown !== undefined) throw unknownParameter(unknown.name)
  return {
    fields: parseSelect(named.get('select'), shape),
    expand: parseExpand(named.get('expand'), shape, limits.maxExpandDepth),
  }
}

function unknownParameter(name: string): GatewayError {
  const near = nearest(name, ONE_PARAMETERS)
  const hint = near === null ? 'a single row takes select and expand' : `did you mean "${near}"?`
  return new GatewayError('PARSE_ERROR', `a single row takes no parameter "${shorten(name)}"; ${hint}`)
}

export function parseListRequest(
  parameters: readonly QueryParameter[],
  shape: Shape,
  limits: ReadLimits,
  codec: CursorCodec,
  preferences: Preferences,
): ListRequest {
  const { named, others } = sortOut<ListParameter>(parameters, LIST_PARAMETERS)
  const filter = parseFilters(others, shape, limits)
  const stream = parseBoolean(named.get('stream'), 'stream')
  const request: ListRequest = {
    filter,
    search: parseSearch(named, shape),
    fields: parseSelect(named.get('select'), shape),
    expand: parseExpand(named.get('expand'), shape, limits.maxExpandDepth),
    sort: parseSort(named.get('sort'), shape),
    sortText: named.get('sort') ?? '',
    distinct: parseDistinct(named.get('distinct'), shape),
    cursor: parseCursor(named.get('cursor'), shape, codec),
    ...parsePage(named, shape, limits, stream),
    stream,
    total: !stream && preferences.total,
  }
  // A page's statement answers sort keys besides the rows, a stream's does not; the total is a statement more.
  shape.add(stream ? 'stream' : request.total ? 'total' : 'page')
  refuseCombinations(request)
  return request
}

/** Names `table` and the nearest of its columns and of `ours`, the parameters that the request takes. */
export function refuseMisspelt(
  parameters: readonly QueryParameter[],
  table: Table,
  { rights }: View,
  ours: readonly string[],
): void {
  const name = misspelt(parameters, known => ours.includes(known) || table.columnByName.has(known))
  if (name === undefined) return
  const instead = FOREIGN_PARAMETERS.get(name.toLowerCase())
  if (instead === undefined || !ours.includes(instead)) throw unknownColumn(name, table, rights, ours)
  throw new GatewayError('PARSE_ERROR', `there is no parameter "${name}"; did you mean "${instead}"?`, {
    hint: HINTS[instead],
  })
}

/** What other APIs call these. */
const FOREIGN_PARAMETERS: ReadonlyMap<string, keyof typeof HINTS> = new Map([
  ...(['order', 'order_by', 'orderby', 'sort_by'] as const).map(name => [name, 'sort'] as const),
  ...(['fields', 'columns'] as const).map(name => [name, 'select'] as const),
  ...(['include', 'embed', 'with'] as const).map(name => [name, 'expand'] as const),
])

const HINTS = {
  sort: 'write sort=name for ascending order, sort=-name or sort=name:desc for descending order',
  select: 'write select=id,name',
  expand:
    'write expand=customer for the row that a key of this table points to, expand=nested:items for rows that point here',
} as const

/** `select=a,rel(*)`, as PostgREST embeds rows: names in parentheses are no columns. */
export function refuseEmbedded(parameters: readonly QueryParameter[], table: Table): void {
  const text = parameters.find(({ name }) => name === 'select')?.value ?? ''
  const [, written = '', name = ''] = EMBEDDED.exec(text) ?? []
  if (name === '' || table.columns.some(column => column.name.includes('('))) return
  throw new GatewayError(
    'PARSE_ERROR',
    `select has "${shorten(written)}(…)"; select takes columns, and expand joins rows`,
    {
      hint: `write expand=${shorten(name)} for the row that a key of this table points to, expand=nested:${shorten(name)} for rows that point here`,
    },
  )
}

/** An item of a list that opens a parenthesis: `rel(`, `alias:rel(`, `rel!hint(`. */
const EMBEDDED = /(?:^|,)\s*((?:[^",():]+:)?([^",():!]+)(?:![^",():!]+)?)\(/

export function parseSearch(
  named: Pick<ReadonlyMap<'search' | 'search_columns', string>, 'get'>,
  shape: Shape,
): Search | null {
  const words = named.get('search')
  const columns = named.get('search_columns')
  if (words === undefined) {
    if (columns !== undefined)
      throw new GatewayError('PARSE_ERROR', 'search_columns restricts search; give search=words too')
    return null
  }
  const names = columns === undefined ? null : parseNameList(columns, 'search_columns')
  shape.add(`search ${names?.length ?? 'all'}`)
  for (const name of names ?? []) shape.add(name)
  return { words: shape.value(words), columns: names }
}

function parseDistinct(text: string | undefined, shape: Shape): ColumnPath | null {
  if (text === undefined) return null
  const path = parseColumnPath(text)
  if (path.steps.length > 0)
    throw new GatewayError('PARSE_ERROR', `distinct "${shorten(text)}" is no column; distinct takes one column's name`)
  shape.add('distinct')
  shape.add(path.column)
  return path
}

function parseCursor(text: string | undefined, shape: Shape, codec: CursorCodec): ReceivedCursor | null {
  if (text === undefined) return null
  if (text === '') throw invalidCursor()
  const { digest, values } = codec.decode(text)
  shape.add(`cursor ${values.map(value => (value === null ? 'n' : 'v')).join('')}`)
  return { digest, values, parameters: values.map(value => (value === null ? null : shape.value(value))) }
}

function parsePage(
  named: ReadonlyMap<ListParameter, string>,
  shape: Shape,
  limits: ReadLimits,
  stream: boolean,
): Pick<ListRequest, 'limit' | 'fetch' | 'offset'> {
  const wanted = parseCount(named.get('limit'), 'limit')
  const offset = parseCount(named.get('offset'), 'offset')
  // A stream without a limit goes on to the row cap; without a cap, to the end of the table.
  const fallback = stream ? Number.MAX_SAFE_INTEGER - 1 : limits.defaultLimit
  const limit = effectiveLimit(wanted, fallback, limits.maxResultRows)
  // One row more tells whether there is a next page; a stream has no pages.
  const rows = stream || limit === 0 ? limit : limit + 1
  const fetch = limitOf(limit, rows, shape)
  if (offset === undefined) return { limit, fetch, offset: null }
  shape.add('offset')
  return { limit, fetch, offset: { value: offset, parameter: shape.value(String(offset)) } }
}

function refuseCombinations(request: ListRequest): void {
  const { cursor, offset, distinct, fields, expand } = request
  if (cursor !== null && offset !== null) {
    throw new GatewayError('PARSE_ERROR', 'cursor and offset both say where to begin; give one of them')
  }
  if (distinct !== null && (fields.length > 0 || expand.length > 0)) {
    throw new GatewayError('PARSE_ERROR', 'distinct answers one column; it cannot be combined with select or expand')
  }
}
