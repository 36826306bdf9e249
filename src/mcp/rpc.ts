/**
 * JSON-RPC 2.0 as the tool server takes it: one message at a time, bytes to a narrow type and back (decision
 * 0014, https://modelcontextprotocol.io/specification/2025-06-18/basic).
 */

/** Limit on one message, over any transport. */
export const RPC_MESSAGE_BYTES_MAX: number = 128 * 1024

/** The error codes of JSON-RPC 2.0. */
export const RPC = {
  parseError: -32_700,
  invalidRequest: -32_600,
  methodNotFound: -32_601,
  invalidParams: -32_602,
  internalError: -32_603,
  /** Defined by MCP, not by JSON-RPC. */
  resourceNotFound: -32_002,
  /** Refused before the message was read; the HTTP status gives the reason. */
  refused: -32_000,
} as const

/** An error code of JSON-RPC 2.0. */
export type RpcCode = (typeof RPC)[keyof typeof RPC]

/**
 * Fractions are refused, because they could be returned as another number, and null, which is the id of
 * errors that belong to no request.
 */
export type RequestId = string | number

/** The parameters of a request. */
export type Params = Readonly<Record<string, unknown>>

/** A decoded message. */
export type Message = Request | { readonly kind: 'notification' }

/** A request, which expects a response. */
export interface Request {
  readonly kind: 'request'
  readonly id: RequestId
  readonly method: string
  readonly params: Params
}

/** A response to a request. */
export type RpcResponse =
  | { readonly jsonrpc: '2.0'; readonly id: RequestId; readonly result: object }
  | {
      readonly jsonrpc: '2.0'
      readonly id: RequestId | null
      readonly error: { readonly code: RpcCode; readonly message: string; readonly data?: object }
    }

/**
 * An error of the caller: what failed and what was expected. `id` is that of the request, if it could be
 * read.
 */
export class RpcError extends Error {
  readonly code: RpcCode
  readonly data: object | null
  readonly id: RequestId | null

  constructor(code: RpcCode, message: string, data: object | null = null, id: RequestId | null = null) {
    super(message)
    this.name = 'RpcError'
    this.code = code
    this.data = data
    this.id = id
  }
}

/** A parameter or argument that is not what it should be, by its name. */
export function invalid(name: string, problem: string): RpcError {
  return new RpcError(RPC.invalidParams, `${name}: ${problem}`, { argument: name })
}

const STRICT_UTF8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Decodes a message.
 * @throws RpcError. A response of the client is accepted too, although this server sends no requests.
 */
export function decodeMessage(bytes: Uint8Array): Message {
  const value = parseJson(bytes)
  if (Array.isArray(value)) {
    throw new RpcError(RPC.invalidRequest, 'batches are not supported; send each message separately')
  }
  if (!isJsonObject(value)) {
    throw new RpcError(RPC.invalidRequest, `a message is a JSON object, not ${kindOf(value)}`)
  }
  const hasId = Object.hasOwn(value, 'id')
  const id = hasId ? ownMember(value, 'id') : undefined
  const known = isRequestId(id) ? id : null
  const refuse = (problem: string): RpcError => new RpcError(RPC.invalidRequest, problem, null, known)
  if (ownMember(value, 'jsonrpc') !== '2.0') throw refuse('jsonrpc: expected "2.0"')
  const method = ownMember(value, 'method')
  if (method === undefined && (Object.hasOwn(value, 'result') || Object.hasOwn(value, 'error'))) {
    return { kind: 'notification' }
  }
  if (typeof method !== 'string') throw refuse(`method: expected a string, not ${kindOf(method)}`)
  if (!hasId) return { kind: 'notification' }
  if (known === null) throw refuse(`id: expected a string or an integer, not ${kindOf(id)}`)
  const params = ownMember(value, 'params') ?? {}
  if (!isJsonObject(params) || Array.isArray(params)) {
    throw new RpcError(RPC.invalidParams, `params: expected an object, not ${kindOf(params)}`, null, known)
  }
  return { kind: 'request', id: known, method, params }
}

/** Creates a response with a result. */
export function rpcResult(id: RequestId, result: object): RpcResponse {
  return { jsonrpc: '2.0', id, result }
}

/** An error that is not an `RpcError` is a defect, and reveals nothing. */
export function rpcError(error: unknown, id: RequestId | null): RpcResponse {
  const { code, message, data } =
    error instanceof RpcError ? error : new RpcError(RPC.internalError, 'an unexpected error occurred')
  return { jsonrpc: '2.0', id, error: { code, message, ...(data === null ? {} : { data }) } }
}

function parseJson(bytes: Uint8Array): unknown {
  let text: string
  try {
    text = STRICT_UTF8.decode(bytes)
  } catch {
    throw new RpcError(RPC.parseError, 'the message is not valid UTF-8')
  }
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new RpcError(RPC.parseError, `the message is not valid JSON: ${(error as Error).message.slice(0, 200)}`)
  }
}

/** Reports whether a value is a JSON object. */
export function isJsonObject(value: unknown): value is Params {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A member that the sender wrote: never what every object inherits. */
export function ownMember(object: Params, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined
}

function isRequestId(id: unknown): id is RequestId {
  return typeof id === 'string' || Number.isSafeInteger(id)
}

/** For messages. */
export function kindOf(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  switch (typeof value) {
    case 'object':
      return 'an object'
    case 'number':
      return `the number ${value}`
    case 'boolean':
      return String(value)
    default:
      return `a ${typeof value}`
  }
}
