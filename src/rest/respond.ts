/** Makes answers of rows. PostgreSQL wrote their JSON; here it is only put together, byte by byte, never parsed (design 4). */

import { errorBody } from '../envelope.ts'
import { GatewayError } from '../errors.ts'
import type { Answer, Incoming } from '../http/types.ts'
import type { Row } from '../run/run.ts'

const JSON_HEADERS = { 'Content-Type': 'application/json; charset=utf-8', 'X-Cache': 'MISS' }
const NDJSON_HEADERS = { 'Content-Type': 'application/x-ndjson; charset=utf-8', 'X-Cache': 'MISS' }

const ROW_START = Buffer.from('{"data":')
const ROW_END = Buffer.from('}')
const LIST_START = Buffer.from('{"data":[')
const COMMA = 0x2c
const NEWLINE = 0x0a

export function respondRow(row: Buffer): Answer {
  return { status: 200, headers: JSON_HEADERS, body: Buffer.concat([ROW_START, row, ROW_END]) }
}

export interface ListOutcome {
  /** One more than `limit` when there is a next page. */
  readonly rows: readonly Row[]
  readonly limit: number
  readonly offset: number
  /** `{"count":n}` as PostgreSQL wrote it, when the total was asked for. */
  readonly total: Buffer | null
  /** The cursor after a row; null when it would be too long. */
  nextCursor(last: Row): string | null
}

/** `{"data":[…],"count":n,"limit":n,"offset":n,"next_cursor":…}` and `"total"` (decisions 3). */
export function respondList(outcome: ListOutcome): Answer {
  const { rows, limit, offset, total } = outcome
  const count = Math.min(rows.length, limit)
  const last = rows.length > limit && limit > 0 ? rows[limit - 1] : undefined
  const cursor = last === undefined ? null : outcome.nextCursor(last)
  const page = `],"count":${count},"limit":${limit},"offset":${offset},"next_cursor":${JSON.stringify(cursor)}`
  const end = total === null ? `${page}}` : `${page},"total":${String(JSON.parse(total.toString()).count)}}`
  return { status: 200, headers: JSON_HEADERS, body: joinRows(rows, count, end) }
}

/** Measures first and copies once. */
function joinRows(rows: readonly Row[], count: number, end: string): Buffer {
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

/**
 * NDJSON, a line a row. The first batch is awaited before the status is sent, so an error up to there is an ordinary error answer; a later one
 * ends the body with a line `{"error": …}` and the connection is then aborted (decisions 3).
 */
export async function respondStream(
  batches: AsyncIterableIterator<readonly Row[]>,
  incoming: Incoming,
): Promise<Answer> {
  incoming.onAbort(() => void batches.return?.())
  const first = await batches.next()
  // Nobody will read the rows, and the connection would wait for somebody who does.
  if (incoming.method === 'HEAD') {
    await batches.return?.()
    return { status: 200, headers: NDJSON_HEADERS, body: null }
  }
  return { status: 200, headers: NDJSON_HEADERS, body: lines(first, batches, incoming.requestId) }
}

async function* lines(
  first: IteratorResult<readonly Row[]>,
  batches: AsyncIterableIterator<readonly Row[]>,
  requestId: string,
): AsyncGenerator<Buffer> {
  let next = first
  try {
    while (next.done !== true) {
      if (next.value.length > 0) yield joinLines(next.value)
      next = await batches.next()
    }
  } catch (error) {
    yield Buffer.concat([errorBody(error, requestId), Buffer.from('\n')])
    throw error instanceof GatewayError ? error : new GatewayError('INTERNAL', 'the stream broke off', { cause: error })
  } finally {
    await batches.return?.()
  }
}

function joinLines(rows: readonly Row[]): Buffer {
  let size = rows.length
  for (const row of rows) size += row[0]?.length ?? 0
  const chunk = Buffer.allocUnsafe(size)
  let at = 0
  for (const row of rows) {
    at += row[0]?.copy(chunk, at) ?? 0
    chunk[at++] = NEWLINE
  }
  return chunk
}
