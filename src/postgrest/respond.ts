/** Builds responses: bodies from rows, and the headers and status that the statements of a request set. */
import type { Answer, Latin1 } from '../exchange.ts'
import type { ResultRow } from '../run/run.ts'
import { printCsv } from './csv.ts'
import { isFraming, isHeaderName, isHeaderValue } from './error-response.ts'
import { invalidResponseHeaders, invalidResponseStatus, notSingular } from './errors.ts'
import type { ResponseMediaType } from './media-types.ts'
import type { SessionReply } from './session.ts'

/**
 * The body for rows of this media type. `names`: the columns of a CSV.
 * @throws {PostgrestError} `PGRST116` if one object was requested and there is not exactly one row.
 */
export function printResponseBody(
  rows: readonly ResultRow[],
  { form }: ResponseMediaType,
  names: readonly string[],
): Buffer | Latin1 {
  switch (form) {
    case 'array':
      return joinRows(rows)
    case 'object': {
      const [only] = rows
      if (rows.length !== 1 || only === undefined) throw notSingular(rows.length)
      return only[0] ?? Buffer.from('null')
    }
    case 'csv':
      return printCsv(names, rows)
    case 'raw':
      throw new Error('a raw value is returned as the database made it, and never built from rows')
  }
}

const COMMA = 0x2c

/** `[…]`. Computes the size first, so rows are copied once. */
function joinRows(rows: readonly ResultRow[]): Buffer {
  let size = 2 + Math.max(rows.length - 1, 0)
  for (const row of rows) size += row[0]?.length ?? 4
  const body = Buffer.allocUnsafe(size)
  let at = body.write('[', 0, 'latin1')
  for (const [index, [row]] of rows.entries()) {
    if (index > 0) body[at++] = COMMA
    at += row?.copy(body, at) ?? body.write('null', at, 'latin1')
  }
  body.write(']', at, 'latin1')
  return body
}

/**
 * Applies `response.headers` and `response.status`, which statements can set.
 * @throws {PostgrestError} `PGRST111` or `PGRST112` if they are not valid.
 */
export function withReply(answer: Answer, { headers, status }: SessionReply): Answer {
  if (headers === null && status === null) return answer
  const added = parseHeaders(headers).filter(([name]) => !isFraming(name))
  const chosen = parseStatus(status)
  if (added.length === 0 && chosen === null) return answer
  const cookies = added.filter(isCookie).map(([, value]) => value)
  const others = added.filter(header => !isCookie(header))
  const replaced = new Set(others.map(([name]) => name.toLowerCase()))
  const kept = Object.entries(answer.headers).filter(([name]) => !replaced.has(name.toLowerCase()))
  return {
    ...answer,
    status: chosen ?? answer.status,
    headers: Object.fromEntries([...kept, ...joined(others)]),
    ...(cookies.length === 0 ? {} : { cookies }),
  }
}

function isCookie([name]: readonly [string, string]): boolean {
  return name.toLowerCase() === 'set-cookie'
}

/** Joins several headers of one name (RFC 9110, 5.3). */
function joined(headers: readonly (readonly [string, string])[]): readonly (readonly [string, string])[] {
  const byName = new Map<string, readonly [string, string]>()
  for (const [name, value] of headers) {
    const before = byName.get(name.toLowerCase())
    byName.set(name.toLowerCase(), before === undefined ? [name, value] : [before[0], `${before[1]}, ${value}`])
  }
  return [...byName.values()]
}

function parseHeaders(text: string | null): readonly (readonly [string, string])[] {
  if (text === null || text === '') return []
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    throw invalidResponseHeaders()
  }
  if (!Array.isArray(parsed)) throw invalidResponseHeaders()
  return parsed.map(item => {
    const entries = typeof item === 'object' && item !== null ? Object.entries(item as object) : []
    const [entry] = entries
    if (entries.length !== 1 || entry === undefined || !isHeaderName(entry[0]) || !isHeaderValue(entry[1])) {
      throw invalidResponseHeaders()
    }
    return [entry[0], entry[1]] as const
  })
}

function parseStatus(text: string | null): number | null {
  if (text === null || text === '') return null
  const status = /^\d{3}/.exec(text)?.[0]
  if (status === undefined || Number(status) < 200 || Number(status) > 599) throw invalidResponseStatus()
  return Number(status)
}
