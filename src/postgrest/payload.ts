/** Reads the rows of a body: JSON, CSV or a form. All become JSON, which PostgreSQL expands. */
import { GatewayError } from '../errors.ts'
import type { Incoming } from '../exchange.ts'
import { type JsonArray, type ObjectOutline, parseJsonBody, partBytes } from '../json/json-body.ts'
import { isObject, parseJson as parseValue, printJson } from '../json/text/values.ts'
import { mediaTypeOf } from '../rest/body/body.ts'
import { jsonPieces } from './body-json.ts'
import { invalidBody } from './errors.ts'
import { convertedBody } from './large-body.ts'

/** The rows of a body. */
export type Payload = JsonArray | ObjectOutline

/**
 * Parses the body of a write. `itemsMax`: limit on its rows.
 * @throws {PostgrestError} `PGRST102` for a body of another type, or one that does not parse.
 */
export function readPayload(incoming: Incoming, itemsMax: number): Payload {
  const { type } = mediaTypeOf(incoming.headers)
  const body = parseJson(jsonOf(incoming, type, itemsMax), itemsMax)
  if (body.kind === 'object' || body.kind === 'array') return body
  throw invalidBody('Empty or invalid json')
}

function jsonOf(incoming: Incoming, type: string, itemsMax: number): Buffer {
  const { body, headers } = incoming
  switch (type) {
    case '':
    case 'application/json':
    case 'application/vnd.pgrst.array+json':
    case 'application/vnd.pgrst.object+json':
      return body
    default: {
      const ready = convertedBody(incoming)
      if (ready !== undefined) return ready
      const pieces = jsonPieces(type, body, itemsMax)
      if (pieces === null) throw invalidBody(`Content-Type not acceptable: ${headers['content-type'] ?? type}`)
      return Buffer.from([...pieces].join(''))
    }
  }
}

/** @throws {PostgrestError} `PGRST102` for a text that is not JSON. */
export function assertJson(bytes: Buffer): void {
  parseJson(bytes, Number.POSITIVE_INFINITY)
}

function parseJson(bytes: Buffer, itemsMax: number): ReturnType<typeof parseJsonBody> {
  try {
    return parseJsonBody(bytes, itemsMax, null, 'in values')
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'PARSE_ERROR') throw invalidBody('Empty or invalid json')
    throw error
  }
}

/**
 * The keys of the rows.
 * @throws {PostgrestError} `PGRST102` for rows with different keys, or items that are not objects.
 */
export function keysOf(payload: Payload): readonly string[] {
  if (payload.kind === 'object') return payload.members.map(({ key }) => key)
  const [first] = payload.items
  if (first === undefined) return []
  const keys = new Set(first.keys)
  for (const item of payload.items) {
    const isSame = item.keys === first.keys || (item.keys.length === keys.size && item.keys.every(key => keys.has(key)))
    if (item.type !== 'object' || !isSame) throw invalidBody('All object keys must match')
  }
  return first.keys
}

/** The first rows, each as JSON. */
export function rowsOf(payload: Payload, max: number = Number.POSITIVE_INFINITY): readonly Buffer[] {
  return payload.kind === 'array' ? payload.items.slice(0, max).map(item => partBytes(payload, item)) : [payload.bytes]
}

/** The values of a row as texts; null if it is not an object. */
export function readObject(row: Buffer): ReadonlyMap<string, string> | null {
  const value = parseValue(row.toString())
  if (!isObject(value)) return null
  return new Map([...value].map(([key, member]) => [key, typeof member === 'string' ? member : printJson(member)]))
}
