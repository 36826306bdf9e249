/** Parses the query string of a shape request (docs/reference/shapes.md#parameters). */
import type { TextRows } from '../realtime/subscription-plan.ts'
import { parseQueryString } from '../rest/parameters/query-string.ts'
import type { RequestLimits } from '../rest/request.ts'
import { isOffset } from './position.ts'
import type { WrittenName } from './shape-names.ts'
import { ShapeProblem } from './shape-problem.ts'
import { type ShapeSubset, subsetIn, subsetInBody } from './shape-subset.ts'
import { parseSqlCondition } from './sql-condition.ts'

/** The columns that updates and deletes contain. */
export type ReplicaMode = 'default' | 'full'

/** The part of a database that a client replicates. */
export interface ShapeDefinition extends ShapeParts<string> {}

/** The definition of a shape, with names as the client writes them. */
export interface WrittenShape extends ShapeParts<WrittenName> {}

interface ShapeParts<Name> {
  readonly schema: Name | null
  readonly table: Name
  readonly where: string | null
  /** The values of `$1 …` in `where`, by number. */
  readonly params: ReadonlyMap<number, string>
  /** The columns; null for all that the caller can read. */
  readonly columns: readonly Name[] | null
  /** The columns that `columns` and subsets can name; null for all. */
  readonly queryable: readonly Name[] | null
  readonly replica: ReplicaMode
}

/** A parsed shape request. */
export interface ShapeRequest {
  readonly shape: WrittenShape
  /** `-1`, `now`, or a position. */
  readonly offset: string
  readonly handle: string | null
  /** A handle that the client has discarded, because it was asked to start again; null for none. */
  readonly expiredHandle: string | null
  readonly live: 'no' | 'long poll' | 'events'
  /** False if the client wants changes only. */
  readonly hasRows: boolean
  readonly cursor: string | null
  /** The part of the rows that is requested instead of the shape; null for the shape. */
  readonly subset: ShapeSubset | null
}

const VALUE_MISSING = "can't be blank"

/**
 * Parses a request; the body of a POST is a subset. Unknown parameters are ignored: clients send some that
 * are meant for caches.
 * @throws ShapeProblem for an invalid parameter.
 */
export function parseShapeRequest(
  query: string,
  body: Buffer | null,
  { maxQueryParameters }: RequestLimits,
): ShapeRequest {
  const given = namedIn(query, maxQueryParameters)
  const live = flagIn(given, 'live')
  const events = flagIn(given, 'live_sse') || flagIn(given, 'experimental_live_sse')
  const subset = body === null ? subsetIn(given) : subsetInBody(body)
  const offset = given.get('offset')
  if (offset === undefined) throw new ShapeProblem('offset', VALUE_MISSING)
  const isStart = offset === '-1' || offset === 'now'
  if (!isStart && !isOffset(offset)) throw new ShapeProblem('offset', 'has invalid format')
  const handle = given.get('handle') ?? null
  if (!isStart && handle === null) throw new ShapeProblem('handle', "can't be blank when offset != -1")
  if (isStart && live)
    throw new ShapeProblem('live', `can't be true when offset ${offset === 'now' ? "is 'now'" : '== -1'}`)
  if (subset !== null && live) throw new ShapeProblem('live', "can't be true for a subset")
  if (events && !live) throw new ShapeProblem('live_sse', "can't be true unless live is also true")
  return {
    ...{ shape: definitionIn(given), offset, handle: isStart ? null : handle },
    expiredHandle: given.get('expired_handle') ?? null,
    live: live ? (events ? 'events' : 'long poll') : 'no',
    hasRows: choiceIn(given, 'log', ['full', 'changes_only']) === 'full',
    cursor: given.get('cursor') ?? null,
    subset,
  }
}

/** The handle that a DELETE names, and the definition of the shape. */
export function parseShapeDeletion(
  query: string,
  { maxQueryParameters }: RequestLimits,
): Pick<ShapeRequest, 'shape' | 'handle'> {
  const given = namedIn(query, maxQueryParameters)
  return { shape: definitionIn(given), handle: given.get('handle') ?? null }
}

/** The rows of a shape, for the plan of its subscription. */
export function requestedRows({ table, where, params, columns }: ShapeDefinition, maxInValues: number): TextRows {
  return {
    key: JSON.stringify([columns, where, [...params]]),
    columns,
    condition: (values, alias) =>
      where === null ? null : parseSqlCondition(where, { table, alias, values, params, maxInValues, queryable: null }),
  }
}

/**
 * Parameters by name; the last one of a name counts. An empty one is ignored, unless `where` refers to it.
 */
function namedIn(query: string, max: number): ReadonlyMap<string, string> {
  const given = new Map(parseQueryString(query, max).map(({ name, value }) => [name, value]))
  return new Map([...given].filter(([name, value]) => value !== '' || name.startsWith('params[')))
}

function flagIn(given: ReadonlyMap<string, string>, name: string): boolean {
  const value = given.get(name)
  if (value === undefined || value === 'false' || value === '0') return false
  if (value === 'true' || value === '1') return true
  throw new ShapeProblem(name, 'is invalid')
}

function choiceIn<const T extends string>(
  given: ReadonlyMap<string, string>,
  name: string,
  all: readonly [T, ...T[]],
): T {
  const value = given.get(name) ?? all[0]
  const found = all.find(each => each === value)
  if (found === undefined) throw new ShapeProblem(name, 'is invalid')
  return found
}

function definitionIn(given: ReadonlyMap<string, string>): WrittenShape {
  const { schema, table } = tableIn(given.get('table') ?? '')
  const columnsIn = (parameter: string): readonly WrittenName[] | null => {
    const names = given.get(parameter)
    return names === undefined ? null : namesIn(names, parameter, ',')
  }
  return {
    ...{ schema, table, where: given.get('where') ?? null, params: paramsIn(given) },
    ...{ columns: columnsIn('columns'), queryable: columnsIn('queryable_columns') },
    replica: choiceIn(given, 'replica', ['default', 'full']),
  }
}

/** `table` or `schema.table`; each part can be quoted. */
function tableIn(text: string): Pick<WrittenShape, 'schema' | 'table'> {
  if (text === '') throw new ShapeProblem('table', VALUE_MISSING)
  const names = namesIn(text, 'table', '.')
  const [table, schema = null] = names.toReversed()
  if (table === undefined || names.length > 2) throw new ShapeProblem('table', 'expected table or schema.table')
  return { schema, table }
}

/** Names that are separated by commas or dots, with quotes around those that contain one. */
function namesIn(text: string, parameter: string, separator: ',' | '.'): readonly WrittenName[] {
  const name = /\s*(?:"((?:[^"]|"")+)"|([^",.\s][^",.]*?))\s*(?=([,.]|$))/y
  const names: WrittenName[] = []
  for (let at = 0; at <= text.length; at = name.lastIndex + 1) {
    name.lastIndex = at
    const [, quoted, plain, end] = name.exec(text) ?? []
    const found = quoted?.replaceAll('""', '"') ?? plain
    if (found === undefined || (end !== '' && end !== separator)) throw new ShapeProblem(parameter, 'Invalid name')
    names.push({ text: found, isQuoted: quoted !== undefined })
  }
  return names
}

/** `params[1]=…`, or `params={"1": "…"}`. */
function paramsIn(given: ReadonlyMap<string, string>): ReadonlyMap<number, string> {
  const whole = given.get('params')
  const pairs = whole === undefined ? [] : Object.entries(objectIn(whole))
  const numbered = [...given].flatMap(([name, value]) => {
    const [, number] = /^params\[(.*)\]$/.exec(name) ?? []
    return number === undefined ? [] : [[number, value] as const]
  })
  const params = new Map([...pairs, ...numbered].map(([number, value]) => [paramNumber(number), value]))
  for (let number = 1; number <= params.size; number++) {
    if (!params.has(number))
      throw new ShapeProblem('params', 'Parameters must be numbered sequentially, starting from 1')
  }
  return params
}

function objectIn(text: string): Readonly<Record<string, string>> {
  try {
    const value: unknown = JSON.parse(text)
    if (Array.isArray(value)) return Object.fromEntries(value.map((item, index) => [String(index + 1), String(item)]))
    if (typeof value === 'object' && value !== null)
      return Object.fromEntries(Object.entries(value).map(([number, item]) => [number, String(item)]))
  } catch {
    // Reported below.
  }
  throw new ShapeProblem('params', 'must be a JSON object, or params[1]=…')
}

function paramNumber(text: string): number {
  if (!/^[1-9]\d{0,4}$/.test(text)) throw new ShapeProblem('params', 'Parameters can only use numbers as keys')
  return Number(text)
}
