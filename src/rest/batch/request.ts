/** Reads the body of `POST /api/_batch` (docs/reference/batches.md) into operations. */
import { GatewayError } from '../../errors.ts'
import type { Incoming } from '../../exchange.ts'
import { type JsonValue, type KnownKeys, type ObjectOutline, parseJsonBody, partOf } from '../../json/json-body.ts'
import { LIMIT_NAMES } from '../../statement-limits.ts'
import { shorten } from '../../text/shorten.ts'
import { REFUSED_ITEMS_MAX, readJsonBody } from '../body/body.ts'
import { parsePath, type ResourceRoute } from '../path.ts'
import { parseAddress, parseValue, type ReferringOperation, type Template } from './references.ts'

/** A batch of operations. */
export interface BatchRequest {
  readonly operations: readonly BatchOperation[]
  readonly atomic: boolean
  /** Null for the default of the database; the batch is then not run again after a conflict. */
  readonly isolation: BatchIsolation | null
}

/** An operation, parsed but not checked. */
export interface BatchOperation {
  readonly id: string | null
  readonly method: string
  /** Path and query. */
  readonly address: Template
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Null without a body. */
  readonly body: OperationBody | null
}

/** A JSON value with references, or the text of a body of another type. */
export type OperationBody =
  | { readonly kind: 'json'; readonly value: Template }
  | { readonly kind: 'text'; readonly text: string }

const ISOLATIONS = ['read committed', 'repeatable read', 'serializable'] as const

/** The isolation levels of a batch. */
export type BatchIsolation = (typeof ISOLATIONS)[number]

/** Limit on the path and headers of one operation, equal to that of a request. */
export const ADDRESS_BYTES_MAX: number = 64 * 1024

const ID_MAX = 100

/** Limits on a batch; 0 means no limit. */
export interface BatchLimits {
  readonly maxBatchOperations: number
  /** References of all operations together. */
  readonly maxBatchReferences: number
}

/**
 * Reads a batch.
 * @throws {GatewayError} `PARSE_ERROR` or `PAYLOAD_TOO_LARGE`.
 */
export function readBatch(incoming: Incoming, limits: BatchLimits): BatchRequest {
  if (incoming.query !== '') throw new GatewayError('PARSE_ERROR', '_batch takes no parameters in the URL')
  const body = readJsonBody(incoming, REFUSED_ITEMS_MAX, accepting(BATCH_KEYS, 'a batch'))
  const given = body.kind === 'object' ? memberOf(body, 'operations') : undefined
  if (body.kind !== 'object' || given?.type !== 'array') {
    throw new GatewayError('PARSE_ERROR', 'the body must be {"operations": [{"method": …, "path": …}, …]}')
  }
  const items = itemsOf(given, limits.maxBatchOperations)
  if (items.length === 0) throw new GatewayError('PARSE_ERROR', 'operations is empty; send at least one operation')
  const atomic = readAtomic(memberOf(body, 'atomic'))
  const isolation = readIsolation(memberOf(body, 'isolation'))
  if (!atomic && isolation !== null) {
    throw new GatewayError('PARSE_ERROR', 'isolation needs one transaction; leave it out, or leave out "atomic": false')
  }
  return { operations: readOperations(items, limits), atomic, isolation }
}

const BATCH_KEYS = ['operations', 'atomic', 'isolation']
const REQUEST_KEYS = ['id', 'method', 'path', 'headers', 'body']
const QUERY_KEYS = ['id', 'query', 'parameters']

function accepting(keys: readonly string[], what: string): KnownKeys {
  return {
    inItems: false,
    has: key => keys.includes(key),
    refuse(key) {
      throw new GatewayError('PARSE_ERROR', `${what} has no "${shorten(key)}"; it has ${keys.join(', ')}`)
    },
  }
}

function memberOf(body: ObjectOutline, name: string): JsonValue | undefined {
  const member = body.members.find(({ key }) => key === name)
  return member === undefined ? undefined : partOf(body, member)
}

function itemsOf({ bytes }: JsonValue, max: number): readonly JsonValue[] {
  const array = parseJsonBody(bytes, Number.POSITIVE_INFINITY)
  if (array.kind !== 'array') throw new Error('operations must be an array')
  if (max > 0 && array.items.length > max) {
    const limit = LIMIT_NAMES.maxBatchOperations
    throw new GatewayError(
      'PAYLOAD_TOO_LARGE',
      `the batch has ${array.items.length} operations; ${limit} is ${max}. Send fewer at a time`,
      { limit },
    )
  }
  return array.items.map(item => partOf(array, item))
}

function readAtomic(given: JsonValue | undefined): boolean {
  if (given === undefined) return true
  if (given.type === 'boolean') return given.bytes.toString() === 'true'
  throw new GatewayError('PARSE_ERROR', 'atomic must be true or false')
}

function readIsolation(given: JsonValue | undefined): BatchIsolation | null {
  if (given === undefined || given.type === 'null') return null
  const text = given.type === 'string' ? stringOf(given) : ''
  const found = ISOLATIONS.find(level => level === text)
  if (found !== undefined) return found
  throw new GatewayError('PARSE_ERROR', `isolation must be one of ${ISOLATIONS.join(', ')}`)
}

function stringOf({ bytes }: JsonValue): string {
  return JSON.parse(bytes.toString()) as string
}

function readOperations(
  items: readonly JsonValue[],
  { maxBatchReferences: max }: BatchLimits,
): readonly BatchOperation[] {
  const positions = new Map<string, number>()
  let references = 0
  const count = (): void => {
    references += 1
    if (max === 0 || references <= max) return
    const limit = LIMIT_NAMES.maxBatchReferences
    throw new GatewayError(
      'PAYLOAD_TOO_LARGE',
      `the batch has too many references to earlier results; ${limit} is ${max}. Send fewer at a time`,
      { limit },
    )
  }
  return items.map((item, index) => {
    try {
      const operation = readOperation(item, { own: index, find: id => positions.get(id), count })
      if (operation.id !== null) {
        if (positions.has(operation.id)) throw new GatewayError('PARSE_ERROR', `the id "${operation.id}" is used twice`)
        positions.set(operation.id, index)
      }
      return operation
    } catch (error) {
      throw ofOperation(error, index)
    }
  })
}

/** Adds the position of the operation to an error. */
export function ofOperation(error: unknown, operation: number): GatewayError {
  if (!(error instanceof GatewayError)) {
    const message = 'an unexpected error occurred; the log has it under this request_id'
    return new GatewayError('INTERNAL', message, { details: { operation }, cause: error })
  }
  const { code, message, details, hint, headers, cause, limit, span } = error
  return new GatewayError(code, message, {
    details: { ...(details !== null && typeof details === 'object' ? details : {}), operation },
    ...{ headers, cause },
    ...(hint === undefined ? {} : { hint }),
    ...(limit === undefined ? {} : { limit }),
    ...(span === undefined ? {} : { span }),
  })
}

function readOperation(item: JsonValue, by: ReferringOperation): BatchOperation {
  const body = item.type === 'object' ? parseJsonBody(item.bytes, REFUSED_ITEMS_MAX) : null
  if (body?.kind !== 'object') throw new GatewayError('PARSE_ERROR', 'an operation must be an object')
  const isQuery = body.members.some(({ key }) => key === 'query')
  const keys = accepting(isQuery ? QUERY_KEYS : REQUEST_KEYS, 'an operation')
  for (const { key } of body.members) if (!keys.has(key)) keys.refuse(key)
  const id = readId(memberOf(body, 'id'))
  return isQuery ? { id, ...readQuery(body, by) } : { id, ...readRequest(body, by) }
}

function readId(given: JsonValue | undefined): string | null {
  if (given === undefined || given.type === 'null') return null
  const id = given.type === 'string' ? stringOf(given) : ''
  if (id !== '' && id.length <= ID_MAX && !id.includes('.')) return id
  throw new GatewayError('PARSE_ERROR', `id must be a string of 1 to ${ID_MAX} characters without "."`)
}

/** A query text, as in the body of `POST /api/_query`. Only its parameters can contain references. */
function readQuery(body: ObjectOutline, by: ReferringOperation): Omit<BatchOperation, 'id'> {
  const query = memberOf(body, 'query') as JsonValue
  const parameters = memberOf(body, 'parameters')
  const given = parameters === undefined ? [] : [', "parameters": ', ...parseValue(parameters.bytes, by)]
  return {
    ...{ method: 'POST', address: ['/api/_query'], headers: JSON_BODY },
    body: { kind: 'json', value: [`{"query": ${query.bytes.toString()}`, ...given, '}'] },
  }
}

const JSON_BODY = { 'content-type': 'application/json' }

function readRequest(body: ObjectOutline, by: ReferringOperation): Omit<BatchOperation, 'id'> {
  const method = textMember(body, 'method')
  const path = textMember(body, 'path')
  if (!/^[A-Z]{1,20}$/.test(method))
    throw new GatewayError('PARSE_ERROR', 'method must be an HTTP method such as GET or POST')
  const address = parseAddress(path, by)
  refuseRoute(path)
  const headers = readHeaders(memberOf(body, 'headers'))
  return { method, address, ...readBody(memberOf(body, 'body'), headers, by) }
}

function textMember(body: ObjectOutline, name: string): string {
  const given = memberOf(body, name)
  if (given?.type === 'string') return stringOf(given)
  throw new GatewayError('PARSE_ERROR', `an operation needs "${name}", a string; or "query", a query text`)
}

/** The routes that a batch can contain. */
const REFUSED: readonly ResourceRoute['kind'][] = ['batch', 'inspect', 'progress', 'schema', 'openapi', 'contracts']

/** @throws {GatewayError} `PARSE_ERROR` for a path that is not one of a table, a function or a query. */
export function refuseRoute(path: string): void {
  const route = path.startsWith('/api/') ? parsePath(path.split('?', 1)[0] ?? '') : null
  if (path.startsWith('/api/') && (route === null || !REFUSED.includes(route.kind))) return
  throw new GatewayError(
    'PARSE_ERROR',
    `"${shorten(path)}" cannot be an operation; use the paths of tables, /api/rpc/{function} and /api/_query`,
  )
}

/** Headers that belong to the request itself: they identify the caller, or describe the connection. */
const REFUSED_HEADERS: ReadonlySet<string> = new Set([
  ...['authorization', 'cookie', 'x-tenant-id', 'x-user-id', 'x-user-role', 'x-request-id', 'idempotency-key'],
  ...['host', 'connection', 'content-length', 'transfer-encoding', 'upgrade', 'forwarded', 'x-forwarded-for'],
  ...['proxy-authorization', 'x-forwarded-host', 'x-forwarded-proto'],
])

const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\u{10ffff}]*$/u

function readHeaders(given: JsonValue | undefined): Readonly<Record<string, string>> {
  if (given === undefined || given.type === 'null') return {}
  const object = parseJsonBody(given.bytes, REFUSED_ITEMS_MAX)
  if (object.kind !== 'object') throw new GatewayError('PARSE_ERROR', 'headers must be an object with string values')
  const headers: Record<string, string> = Object.create(null)
  for (const member of object.members) {
    const name = member.key.toLowerCase()
    const value = partOf(object, member)
    const text = value.type === 'string' ? stringOf(value) : null
    if (text === null || !HEADER_NAME.test(name) || !HEADER_VALUE.test(text)) {
      throw new GatewayError(
        'PARSE_ERROR',
        `the header "${shorten(member.key)}" must have a valid name and a string as its value`,
      )
    }
    if (REFUSED_HEADERS.has(name)) {
      throw new GatewayError('PARSE_ERROR', `an operation cannot have the header "${name}"; send it with the batch`)
    }
    // As a server receives it.
    headers[name] = Buffer.from(text.trim()).toString('latin1')
  }
  return headers
}

function readBody(
  given: JsonValue | undefined,
  headers: Readonly<Record<string, string>>,
  by: ReferringOperation,
): Pick<BatchOperation, 'headers' | 'body'> {
  if (given === undefined) return { headers, body: null }
  const type = headers['content-type']
  if (type !== undefined && given.type === 'string' && !/json/i.test(type)) {
    return { headers, body: { kind: 'text', text: stringOf(given) } }
  }
  const value = parseValue(given.bytes, by)
  return { headers: type === undefined ? { ...headers, ...JSON_BODY } : headers, body: { kind: 'json', value } }
}
