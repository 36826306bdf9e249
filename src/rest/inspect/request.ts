/** Reads the body of `POST /api/_inspect` (docs/reference/inspect.md): a read, or a query text. */
import { GatewayError } from '../../errors.ts'
import type { Incoming } from '../../exchange.ts'
import { type KnownKeys, partBytes } from '../../json/json-body.ts'
import { shorten } from '../../text/shorten.ts'
import { REFUSED_ITEMS_MAX, readJsonBody } from '../body/body.ts'
import { READING } from '../method.ts'
import { parsePath } from '../path.ts'
import { isData } from '../request.ts'

/** The request to inspect. */
export type InspectedRequest = InspectedRead | { readonly kind: 'query'; readonly text: string }

/** A read, as it would be sent. */
export interface InspectedRead {
  readonly kind: 'read'
  readonly path: string
  readonly query: string
}

/** Limit on the characters of an inspected request line, which is that of a line sent over HTTP. */
export const INSPECTED_CHARACTERS_MAX: number = 16 * 1024

const KEYS = ['request', 'query', 'parameters']

/**
 * Reads the body. A text of the query language is read again by its own handler.
 * @throws {GatewayError} `PARSE_ERROR` for a body of another form.
 */
export function readInspectBody(incoming: Incoming): InspectedRequest {
  if (incoming.query !== '')
    throw new GatewayError('PARSE_ERROR', `_inspect takes no parameters in the URL; ${EXPECTED}`)
  const body = readJsonBody(incoming, REFUSED_ITEMS_MAX, KNOWN)
  if (body.kind !== 'object') throw new GatewayError('PARSE_ERROR', `the body must be an object; ${EXPECTED}`)
  const textOf = (name: string): string | null => {
    const member = body.members.find(({ key }) => key === name)
    if (member === undefined) return null
    if (member.type !== 'string') throw new GatewayError('PARSE_ERROR', `"${name}" must be a string; ${EXPECTED}`)
    return JSON.parse(partBytes(body, member).toString()) as string
  }
  const request = textOf('request')
  const query = textOf('query')
  if (query !== null && request === null) return { kind: 'query', text: query }
  if (request === null || body.members.length > 1) {
    throw new GatewayError(
      'PARSE_ERROR',
      `the body has ${request === null ? 'no request' : 'more than a request'}; ${EXPECTED}`,
    )
  }
  return parseRequestLine(request)
}

const EXPECTED = 'send {"request": "GET /api/…"}, or {"query": "get …", "parameters": …}'

const KNOWN: KnownKeys = {
  inItems: false,
  has: key => KEYS.includes(key),
  refuse(key) {
    throw new GatewayError('PARSE_ERROR', `the body has "${shorten(key)}"; ${EXPECTED}`)
  },
}

/** line = [ method " " ] path [ "?" query ] */
function parseRequestLine(line: string): InspectedRead {
  if (line.length > INSPECTED_CHARACTERS_MAX) {
    const size = `${line.length} characters; a request line has at most ${INSPECTED_CHARACTERS_MAX}`
    throw new GatewayError('PARSE_ERROR', `the request has ${size}`)
  }
  const [, method = 'GET', target = ''] = /^(?:([A-Za-z]+) +)?(\/[\x21-\x7e]*)$/.exec(line) ?? []
  const mark = target.indexOf('?')
  const path = mark < 0 ? target : target.slice(0, mark)
  const route = parsePath(path)
  if (!READING.includes(method.toUpperCase()) || route === null || !isData(route) || EXCLUDED.includes(route.kind)) {
    throw new GatewayError(
      'PARSE_ERROR',
      `"${shorten(line)}" cannot be inspected; expected a read such as GET /api/{table}?status=paid, percent-encoded`,
    )
  }
  return { kind: 'read', path, query: mark < 0 ? '' : target.slice(mark + 1) }
}

const EXCLUDED: readonly string[] = ['rpc', 'explain']
