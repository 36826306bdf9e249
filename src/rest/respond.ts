/**
 * Builds responses from rows. PostgreSQL produces the JSON; here buffers are joined but never parsed, which
 * keeps reads cheap.
 */
import type { Table } from '../catalog/model.ts'
import type { BoundStatement, ExplainStatement } from '../compile/statement.ts'
import { errorBody } from '../envelope.ts'
import { GatewayError } from '../errors.ts'
import type { Answer, Incoming, Latin1 } from '../exchange.ts'
import { withoutFigures } from '../run/explain-figures.ts'
import type { ResultRow, RunningRead, WriteResult } from '../run/run.ts'
import { pageForm, pageTag } from './etag.ts'
import { parsePath, printId } from './path.ts'
import type { Preferences } from './prefer.ts'
import { joinRecords, printHeader } from './read/csv.ts'

/** The value of the `X-Cache` header (docs/reference/reading.md#headers). */
export type CacheUse = 'HIT' | 'MISS'

/** Reports whether a read was answered from the cache. */
export function cacheUseOf({ kept }: Pick<RunningRead, 'kept'>): CacheUse {
  return kept === undefined ? 'MISS' : 'HIT'
}

const JSON_TYPE = 'application/json; charset=utf-8'
const CSV_TYPE = 'text/csv; charset=utf-8'
const JSON_HEADERS: Readonly<Record<CacheUse, Answer['headers']>> = {
  HIT: { 'Content-Type': JSON_TYPE, 'X-Cache': 'HIT' },
  MISS: { 'Content-Type': JSON_TYPE, 'X-Cache': 'MISS' },
}

const DATA_START = Buffer.from('{"data":')
const ROW_END = Buffer.from('}')
const LIST_START = Buffer.from('{"data":[')
const COMMA = 0x2c
const NEWLINE = 0x0a
const LINE_ENDINGS = [NEWLINE, 0x0d]
const SPACE = 0x20

/** The headers of a read with an entity tag. A literal, because copying the other headers costs more. */
function taggedHeaders(use: CacheUse, tag: string): Answer['headers'] {
  return { 'Content-Type': JSON_TYPE, 'X-Cache': use, ETag: tag }
}

/** `{"data":{…}}`: the response to the read of one row. */
export function respondReadRow(row: Buffer, use: CacheUse, tag?: string): Answer {
  const headers = tag === undefined ? JSON_HEADERS[use] : taggedHeaders(use, tag)
  return { status: 200, headers, rows: 1, body: wholeRow(row) }
}

/** Larger values are copied as bytes, because a conversion to text would copy them twice. */
const TEXT_BYTES_MAX = 16 * 1024

function wholeRow(row: Buffer): Buffer | Latin1 {
  return wholeValue(row, '}')
}

/** Joins `{"data":`, a value and `end`. Every character of `end` is one byte. */
export function wholeValue(value: Buffer, end: string): Buffer | Latin1 {
  if (value.length > TEXT_BYTES_MAX) return Buffer.concat([DATA_START, value, Buffer.from(end, 'latin1')])
  return { latin1: `{"data":${value.toString('latin1')}${end}` }
}

/** Adds an entity tag to a response. */
export function withTag(answer: Answer, tag: string): Answer {
  return { ...answer, headers: { ETag: tag, ...answer.headers } }
}

/** The parts of the response to a list. */
export interface ListOutcome {
  /** The rows of the page, plus one more if there is a next page. */
  readonly rows: readonly ResultRow[]
  readonly limit: number
  readonly offset: number
  /** The number of rows on all pages, or null if it was not requested. */
  readonly total: string | null
  /** The header of CSV; null for JSON. */
  readonly names: readonly string[] | null
  /** The cursor of a row, or null if it would be too long. */
  readonly nextCursor: (last: ResultRow) => string | null
  readonly use: CacheUse
}

/** `{"data":[…],"count":n,"limit":n,"offset":n,"next_cursor":…}`, with `"total"` if requested. */
export function respondList(outcome: ListOutcome): Answer {
  const { rows, limit, offset, total } = outcome
  const count = Math.min(rows.length, limit)
  const page = `],"count":${count},"limit":${limit},"offset":${offset}`
  const cursor = JSON.stringify(cursorAfter(outcome))
  const end = `${page},"next_cursor":${cursor}${total === null ? '' : `,"total":${total}`}}`
  const body = joinRows(rows, count, end)
  const joined = [body.subarray(LIST_START.length, body.length - end.length)]
  return { status: 200, headers: listHeaders(JSON_TYPE, outcome, joined), rows: count, body }
}

/** The rows of a list as CSV. The cursor and the total are headers. */
export function respondCsv(outcome: ListOutcome, names: readonly string[]): Answer {
  const { rows, limit, total } = outcome
  const count = Math.min(rows.length, limit)
  const cursor = cursorAfter(outcome)
  const body = joinRecords(printHeader(names), rows, count)
  const records = rows.slice(0, count).flatMap(([row], index) => (index === 0 ? [row] : [SEPARATOR, row]))
  const headers = {
    ...listHeaders(CSV_TYPE, outcome, records.filter(isBuffer)),
    ...(cursor === null ? {} : { 'X-Next-Cursor': cursor }),
    ...(total === null ? {} : { 'X-Total-Count': total }),
  }
  return { status: 200, headers, rows: count, body }
}

const SEPARATOR = Buffer.from(',')

function isBuffer(value: Buffer | null | undefined): value is Buffer {
  return value !== null && value !== undefined
}

/**
 * The headers of a list. `Vary`, because caches must not return CSV for JSON or the other way round.
 * `joined`: the rows, separated by commas.
 */
function listHeaders(type: string, outcome: ListOutcome, joined: readonly Buffer[]): Answer['headers'] {
  const { rows, limit, offset, names, total, use } = outcome
  const last = rows.length > limit ? (rows[limit - 1]?.slice(1) ?? []) : null
  const tag = pageTag({ rows: joined, last, form: pageForm(limit, offset, names), total })
  return { 'Content-Type': type, 'X-Cache': use, ETag: tag, Vary: 'Accept' }
}

/** The cursor of the last row; null on the last page. */
function cursorAfter({ rows, limit, nextCursor }: ListOutcome): string | null {
  const last = rows.length > limit && limit > 0 ? rows[limit - 1] : undefined
  return last === undefined ? null : nextCursor(last)
}

/** 304 for the row that the client has according to PostgreSQL. `condition`: its `If-None-Match`, one tag. */
export function respondKnownRow(condition: string, isStrong: boolean): Answer {
  const tag = isStrong ? opaqueTag(condition) : `W/${opaqueTag(condition)}`
  return { status: 304, headers: taggedHeaders('MISS', tag), rows: 0, body: null }
}

/** 304 for the list that the client has according to PostgreSQL. */
export function respondKnownList(condition: string): Answer {
  const headers = { ...taggedHeaders('MISS', `W/${opaqueTag(condition)}`), Vary: 'Accept' }
  return { status: 304, headers, rows: 0, body: null }
}

function opaqueTag(condition: string): string {
  return condition.trim().replace(/^W\//, '')
}

/**
 * Joins `{"data":[…` and `end`, every character of which is one byte. Computes the size first, so rows are
 * copied once.
 */
export function joinRows(rows: readonly ResultRow[], count: number, end: string): Buffer {
  let size = LIST_START.length + Math.max(count - 1, 0) + end.length
  for (let i = 0; i < count; i++) size += rows[i]?.[0]?.length ?? 0
  const body = Buffer.allocUnsafe(size)
  let at = LIST_START.copy(body)
  for (let i = 0; i < count; i++) {
    if (i > 0) body[at++] = COMMA
    at += rows[i]?.[0]?.copy(body, at) ?? 0
  }
  body.write(end, at, 'latin1')
  return body
}

/** `{"data":[…],"count":n}`: all rows that a query returned. */
export function respondReadRows(rows: readonly ResultRow[], use: CacheUse): Answer {
  const body = joinRows(rows, rows.length, `],"count":${rows.length}}`)
  return { status: 200, headers: JSON_HEADERS[use], rows: rows.length, body }
}

/** `{"data":[…]}`: one row for each group of an aggregate. */
export function respondGroups(rows: readonly ResultRow[], use: CacheUse): Answer {
  return { status: 200, headers: JSON_HEADERS[use], rows: rows.length, body: joinRows(rows, rows.length, ']}') }
}

/**
 * `{"query":…,"parameters":[…],"plan":…}` with the execution plan as PostgreSQL printed it. If `figures` is
 * false, estimates and counts are removed.
 */
export function respondExplained(
  { statement, values }: BoundStatement<ExplainStatement>,
  answered: Buffer,
  figures: boolean,
): Answer {
  const plan = figures ? answered : withoutFigures(answered)
  const asked = JSON.stringify({
    query: statement.runs?.text,
    parameters: values.map(value => value?.toString() ?? null),
  })
  const body = Buffer.concat([Buffer.from(`${asked.slice(0, -1)},"plan":`), plan, ROW_END])
  return { status: 200, headers: JSON_HEADERS.MISS, body }
}

// ---- writes -----------------------------------------------------------------------------------------------

const WRITE_HEADERS = { 'Content-Type': JSON_TYPE }

/** Confirms that the response has no body because the client requested that (RFC 7240, 3). */
const MINIMAL = 'return=minimal'
const MINIMAL_HEADERS = { 'Preference-Applied': MINIMAL }

/**
 * Adds the transaction number of the write, by which a subscribed client recognizes its own change (`txid` of
 * a `notification` message).
 */
export function withTxid(answer: Answer, written: WriteResult | null): Answer {
  return written === null ? answer : { ...answer, headers: { 'X-Svc-Txid': written.txid, ...answer.headers } }
}

/** The parts of the response to an insert of one row. */
export interface CreatedOutcome {
  readonly table: Table
  /**
   * Zero or one row: the row unless `minimal`, then `created` for an upsert, then the key values if they are
   * known.
   */
  readonly rows: readonly ResultRow[]
  /** The number of rows written: 0 if a trigger prevented the write or an existing row was kept. */
  readonly count: number
  readonly minimal: boolean
  readonly upsert: boolean
  /** True if the version of the row follows its key. */
  readonly hasVersion: boolean
  /** The entity tag of the row with this key, as it was written; null: it has none. */
  tagOf(key: readonly string[], version: string | null): string | null
}

/**
 * 201 for a created row, 200 for an existing row that was updated; null for an existing row that was kept
 * (docs/reference/writing.md#upsert).
 */
export function respondCreatedRow({ table, rows, count, minimal, upsert, hasVersion, tagOf }: CreatedOutcome): Answer {
  const [row] = rows
  if (row === undefined && !minimal)
    return { status: 200, headers: WRITE_HEADERS, rows: 0, body: Buffer.from('{"data":null}') }
  const beside = minimal ? (row ?? []) : (row ?? []).slice(1)
  const created = count > 0 && (!upsert || beside[0]?.toString() === 't')
  const known = upsert ? beside.slice(1) : beside
  const key = hasVersion ? known.slice(0, -1) : known
  const location = created && key.length > 0 ? locationOf(table, key) : null
  const version = hasVersion ? (known.at(-1)?.toString() ?? null) : null
  const tag = count === 0 || key.length === 0 ? null : tagOf(key.map(textOf), version)
  // A property added to a copy costs more than everything else here (Node 20).
  const headers: Record<string, string> = minimal ? { 'Preference-Applied': MINIMAL } : { 'Content-Type': JSON_TYPE }
  if (location !== null) headers.Location = location
  if (tag !== null) headers.ETag = tag
  const status = created ? 201 : 200
  if (minimal) return { status, headers, rows: count, body: null }
  return { status, headers, rows: 1, body: wholeRow(row?.[0] ?? NULL) }
}

const NULL = Buffer.from('null')

const textOf = (value: ResultRow[number]): string => value?.toString() ?? ''

/**
 * The `Location` of a row, or null if no client could follow it, because the path belongs to another route or
 * has a segment that URL resolution removes.
 */
function locationOf(table: Table, key: ResultRow): string | null {
  const values = key.map(textOf)
  const path = `${rowsOf(table)}${printId(values)}`
  const [only = ''] = values
  const leads = values.length === 1 && NUMBER_OR_UUID.test(only) ? leadsByNumber(table) : leadsToRow(path)
  return leads ? path : null
}

const NUMBER_OR_UUID = /^[0-9][0-9a-f-]*$/

function rowsOf({ resource }: Table): string {
  return `/api/${encodeURIComponent(resource)}/`
}

function leadsToRow(path: string): boolean {
  return parsePath(path)?.kind === 'one' && !DOTS.test(path)
}

const byNumber = new WeakMap<Table, boolean>()

/** Numeric keys never collide with a reserved name, so every row has a valid location. */
function leadsByNumber(table: Table): boolean {
  const known = byNumber.get(table)
  if (known !== undefined) return known
  const leads = leadsToRow(`${rowsOf(table)}1`)
  byNumber.set(table, leads)
  return leads
}

/** Dot segments, which URL resolution removes even when percent-encoded (RFC 3986, 5.2.4). */
const DOTS = /\/\.\.?(?:\/|$)/

/**
 * A response without rows. `returned` is the requested preference; otherwise null; `count` is the
 * number of rows written.
 */
export function respondNothing(status: 200 | 201 | 204, returned: Preferences['returned'], count: number): Answer {
  return { status, headers: returned === 'minimal' ? MINIMAL_HEADERS : {}, rows: count, body: null }
}

/** `{"data":{…}}`: the row after the write, or the row that was deleted. */
export function respondWrittenRow(row: Buffer): Answer {
  return { status: 200, headers: WRITE_HEADERS, rows: 1, body: wholeRow(row) }
}

/**
 * `{"data":[…],"count":n}`: the rows that a write returns. `count` is the number of rows written, which can
 * be higher.
 */
export function respondWrittenRows(status: 200 | 201, rows: readonly ResultRow[], count: number = rows.length): Answer {
  return { status, headers: WRITE_HEADERS, rows: count, body: joinRows(rows, rows.length, `],"count":${count}}`) }
}

// ---- streams ----------------------------------------------------------------------------------------------

/** The form of a stream. */
export interface LineFormat {
  readonly type: string
  /** Bytes before the rows. */
  readonly head: Buffer
  join(rows: readonly ResultRow[]): Buffer
  /** The last line after an error; null if the format has none. */
  fail(error: unknown, incoming: Pick<Incoming, 'requestId' | 'usage'>): Buffer | null
}

const NDJSON: LineFormat = {
  type: 'application/x-ndjson; charset=utf-8',
  head: Buffer.alloc(0),
  join: joinLines,
  fail: (error, { requestId, usage }) =>
    Buffer.concat([errorBody(error, requestId, usage.worked.trace), Buffer.from('\n')]),
}

/** CSV with these columns. A client notices an error only by the connection, which is aborted. */
export function csvLines(names: readonly string[]): LineFormat {
  const head = printHeader(names)
  return { type: CSV_TYPE, head, join: rows => joinRecords(NOTHING, rows, rows.length), fail: () => null }
}

const NOTHING = Buffer.alloc(0)

/**
 * One line for each row, as NDJSON or CSV. The first batch is awaited before the status is sent, so an error
 * up to that point gets an ordinary error response. A later error ends the body with a line `{"error": …}`,
 * and the connection is then aborted (docs/reference/reading.md#streams).
 */
export async function respondStream(
  batches: AsyncIterableIterator<readonly ResultRow[]>,
  incoming: Incoming,
  format: LineFormat = NDJSON,
): Promise<Answer> {
  const { usage } = incoming
  incoming.onAbort(() => void batches.return?.())
  usage.waits()
  const first = await batches.next()
  usage.answered()
  // No client reads the rows of a HEAD response, so the connection would wait forever.
  const headers = { 'Content-Type': format.type, 'X-Cache': 'MISS', Vary: 'Accept' }
  if (incoming.method === 'HEAD') {
    await batches.return?.()
    return { status: 200, headers, body: null }
  }
  return { status: 200, headers, body: lines(first, batches, incoming, format) }
}

async function* lines(
  first: IteratorResult<readonly ResultRow[]>,
  batches: AsyncIterableIterator<readonly ResultRow[]>,
  incoming: Incoming,
  format: LineFormat,
): AsyncGenerator<Buffer> {
  const { usage } = incoming
  let next = first
  usage.rows = 0
  try {
    if (format.head.length > 0) yield format.head
    while (next.done !== true) {
      usage.rows += next.value.length
      if (next.value.length > 0) yield format.join(next.value)
      usage.waits()
      next = await batches.next()
      usage.answered()
    }
  } catch (error) {
    const line = format.fail(error, incoming)
    if (line !== null) yield line
    throw error instanceof GatewayError ? error : new GatewayError('INTERNAL', 'the stream broke off', { cause: error })
  } finally {
    await batches.return?.()
  }
}

function joinLines(rows: readonly ResultRow[]): Buffer {
  let size = rows.length
  for (const row of rows) size += row[0]?.length ?? 0
  const chunk = Buffer.allocUnsafe(size)
  let at = 0
  for (const [row] of rows) {
    if (row !== null && row !== undefined) {
      row.copy(chunk, at)
      joinUp(row, chunk, at)
      at += row.length
    }
    chunk[at++] = NEWLINE
  }
  return chunk
}

/** Replaces the line breaks that a `json` column keeps with spaces; in JSON they can only be white space. */
function joinUp(row: Buffer, chunk: Buffer, start: number): void {
  for (const ending of LINE_ENDINGS) {
    for (let at = row.indexOf(ending); at >= 0; at = row.indexOf(ending, at + 1)) chunk[start + at] = SPACE
  }
}
