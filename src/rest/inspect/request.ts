/** Reads the body of `POST /api/_inspect` (docs/reference/inspect.md): a request, or a query text. */
import { GatewayError } from '../../errors.ts'
import type { Incoming } from '../../exchange.ts'
import { type KnownKeys, partBytes } from '../../json/json-body.ts'
import { shorten } from '../../text/shorten.ts'
import { REFUSED_ITEMS_MAX, readJsonBody } from '../body/body.ts'
import { NEEDS, READING } from '../method.ts'
import { parsePath } from '../path.ts'
import { type DataRoute, isData } from '../request.ts'

/** The request to inspect. */
export type InspectedRequest = InspectedLine | InspectedText

/** A request of the REST interface, as it would be sent. */
export interface InspectedLine {
  readonly kind: 'line'
  readonly method: string
  readonly path: string
  readonly query: string
  /** JSON; empty without one. */
  readonly body: Buffer
  /** The media type of the body. */
  readonly contentType: string
  /** True if a write is executed, and rolled back. */
  readonly runs: boolean
}

/** A text of the query language. */
export interface InspectedText {
  readonly kind: 'text'
  readonly text: string
  /** The body as `POST /api/_query` takes it. */
  readonly body: Buffer
  readonly runs: boolean
}

/** Limit on the characters of an inspected request line, which is that of a line sent over HTTP. */
export const INSPECTED_CHARACTERS_MAX: number = 16 * 1024

const KEYS = ['request', 'body', 'content_type', 'query', 'parameters', 'run']

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
  const bytesOf = (name: string): Buffer | null => {
    const member = body.members.find(({ key }) => key === name)
    return member === undefined ? null : partBytes(body, member)
  }
  const request = textOf('request')
  const query = textOf('query')
  const contentType = textOf('content_type')
  const runs = readRun(bytesOf('run'))
  if (query !== null && request === null && bytesOf('body') === null && contentType === null) {
    return { kind: 'text', text: query, body: queryBody(query, bytesOf('parameters')), runs }
  }
  if (request === null || query !== null || bytesOf('parameters') !== null) {
    throw new GatewayError(
      'PARSE_ERROR',
      `the body has ${request === null ? 'no request' : 'more than a request'}; ${EXPECTED}`,
    )
  }
  return {
    ...parseRequestLine(request),
    ...{ body: bytesOf('body') ?? NO_BODY, contentType: contentType ?? 'application/json', runs },
  }
}

const NO_BODY = Buffer.alloc(0)

function readRun(value: Buffer | null): boolean {
  const text = value?.toString() ?? 'false'
  if (text !== 'true' && text !== 'false') {
    throw new GatewayError('PARSE_ERROR', `"run" must be true or false, not ${shorten(text)}`)
  }
  return text === 'true'
}

function queryBody(query: string, parameters: Buffer | null): Buffer {
  const text = JSON.stringify({ query })
  if (parameters === null) return Buffer.from(text)
  return Buffer.concat([Buffer.from(`${text.slice(0, -1)},"parameters":`), parameters, Buffer.from('}')])
}

const EXPECTED =
  'send {"request": "GET /api/…"}, {"request": "POST /api/…", "body": …}, or {"query": "get …", "parameters": …}'

const KNOWN: KnownKeys = {
  inItems: false,
  has: key => KEYS.includes(key),
  refuse(key) {
    throw new GatewayError('PARSE_ERROR', `the body has "${shorten(key)}"; ${EXPECTED}`)
  },
}

/** line = [ method " " ] path [ "?" query ] */
function parseRequestLine(line: string): Pick<InspectedLine, 'kind' | 'method' | 'path' | 'query'> {
  if (line.length > INSPECTED_CHARACTERS_MAX) {
    const size = `${line.length} characters; a request line has at most ${INSPECTED_CHARACTERS_MAX}`
    throw new GatewayError('PARSE_ERROR', `the request has ${size}`)
  }
  const [, method = 'GET', target = ''] = /^(?:([A-Za-z]+) +)?(\/[\x21-\x7e]*)$/.exec(line) ?? []
  const mark = target.indexOf('?')
  const path = mark < 0 ? target : target.slice(0, mark)
  const route = parsePath(path)
  const known = method.toUpperCase()
  if (route === null || !isData(route) || EXCLUDED.includes(route.kind) || !isAccepted(known, route)) {
    throw new GatewayError(
      'PARSE_ERROR',
      `"${shorten(line)}" cannot be inspected; expected a read or write of a table, such as ` +
        'GET /api/{table}?status=paid, percent-encoded',
    )
  }
  return { kind: 'line', method: known, path, query: mark < 0 ? '' : target.slice(mark + 1) }
}

const EXCLUDED: readonly string[] = ['rpc', 'explain']

/** Another method is answered as if the request had been sent, except that nothing else can be inspected. */
function isAccepted(method: string, { kind }: DataRoute): boolean {
  return READING.includes(method) || (method in NEEDS && (kind === 'list' || kind === 'one'))
}
