/** Sends requests: token, deadline, retries, and errors with the gateway's code. */
import { ClientError, errorOf } from './error.ts'
import { isOffline, onReturn, pauseMs, randomKey } from './platform.ts'
import type { Tokens } from './tokens.ts'

/** Options of one request. */
export interface RequestOptions {
  /** Aborts the request. The promise is rejected with the signal's reason. */
  readonly signal?: AbortSignal
  /** Limit on one attempt, in milliseconds, instead of the client's. */
  readonly timeoutMs?: number
  /** Additional request headers. */
  readonly headers?: Readonly<Record<string, string>>
}

/** A request to the gateway, before it is sent. */
export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** The path and the query string, with a leading slash. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  /** A body that is sent unchanged, in one attempt, and without the client's deadline. */
  readonly upload?: Upload
  /** True if the request can be repeated without a further effect. A GET always can. */
  readonly safe?: boolean
}

/** The body of an import. A platform whose `fetch` cannot send streams refuses a `ReadableStream`. */
export type Upload = string | Blob | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>

/** The status, headers and parsed body of a response. */
export interface ClientResponse {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: JSON of many shapes
  readonly body: any
  readonly headers: { get(name: string): string | null }
}

export interface HttpOptions {
  /** The URL of the gateway, without a trailing slash. */
  readonly base: string
  readonly tokens: Tokens
  readonly fetch: typeof globalThis.fetch
  readonly timeoutMs: number
  readonly retries: number
  readonly idempotencyKeys: boolean
  readonly parse: (text: string) => unknown
}

export interface Http {
  send(operation: ApiRequest, options?: RequestOptions): Promise<ClientResponse>
  /** The body of a response that is not JSON. */
  text(operation: ApiRequest, options?: RequestOptions): Promise<string>
  /** The lines of an NDJSON response, as they arrive. */
  lines(operation: ApiRequest, options?: RequestOptions): AsyncGenerator<unknown, void, undefined>
}

/** Statuses after which a repeated request can succeed. */
const PASSING: ReadonlySet<number> = new Set([429, 502, 503, 504])
/** After a longer `Retry-After`, the request fails, and the application decides. */
const RETRY_AFTER_MS_MAX = 30_000

export function createHttp(options: HttpOptions): Http {
  const { base, tokens, retries, parse } = options

  async function attempt(operation: ApiRequest, token: string | null, request: RequestOptions): Promise<Opened> {
    const { upload } = operation
    const { signal, timeoutMs = upload === undefined ? options.timeoutMs : null } = request
    const ended = new AbortController()
    const abort = (): void => ended.abort(signal?.reason)
    if (signal?.aborted === true) abort()
    signal?.addEventListener('abort', abort)
    let late = false
    const expire = (): void => {
      late = true
      ended.abort()
    }
    const timer = timeoutMs === null ? undefined : setTimeout(expire, timeoutMs)
    const done = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
    }
    const failed = (cause: unknown): unknown => {
      if (signal?.aborted === true) return signal.reason
      const what = `${operation.method} ${operation.path.split('?')[0]}`
      if (late) return new ClientError('CLIENT_TIMEOUT', `${what} was not answered within ${timeoutMs} ms`)
      return new ClientError('NETWORK', `${what} was not answered: ${(cause as Error)?.message ?? cause}`, { cause })
    }
    try {
      const response = await options.fetch(base + operation.path, {
        method: operation.method,
        headers: headersOf(operation, token, request),
        ...(operation.body === undefined ? {} : { body: jsonText(operation.body) }),
        ...(upload === undefined ? {} : { body: upload }),
        // Required for a stream, and not yet in all type declarations.
        ...(isStream(upload) ? { duplex: 'half' } : {}),
        signal: ended.signal,
      })
      return { response, failed, done, arrived: () => clearTimeout(timer) }
    } catch (cause) {
      done()
      throw failed(cause)
    }
  }

  /** Sends a request, with retries, and returns the successful response. */
  async function open(operation: ApiRequest, request: RequestOptions): Promise<Opened> {
    const keyed = options.idempotencyKeys && operation.method !== 'GET' && operation.upload === undefined
    const keys = keyed && operation.headers?.[KEY] === undefined ? { [KEY]: randomKey() } : {}
    const sent = { ...operation, headers: { ...operation.headers, ...keys } }
    const repeatable = operation.method === 'GET' || operation.safe === true || keyed
    let token = await tokens.get()
    let refreshed = false
    for (let failures = 0; ; failures++) {
      let opened: Opened | null = null
      let error: unknown
      try {
        opened = await attempt(sent, token, request)
        if (opened.response.ok) return opened
        error = await refusalOf(opened, parse)
      } catch (problem) {
        error = problem
      } finally {
        if (opened?.response.ok !== true) opened?.done()
      }
      if (!(error instanceof ClientError)) throw error
      if (error.status === 401 && !refreshed && !isStream(operation.upload)) {
        refreshed = true
        const other = await tokens.replace(token, 'refused')
        if (other === null) throw error
        token = other
        continue
      }
      const passing = error.code === 'NETWORK' || (error.status !== null && PASSING.has(error.status))
      if (!repeatable || !passing || failures >= retries) throw error
      const ms = error.retryAfterMs ?? pauseMs(failures)
      if (ms > RETRY_AFTER_MS_MAX) throw error
      await pause(ms, request)
    }
  }

  /** Without a network, waits until it returns, but no longer than for one attempt. */
  function pause(ms: number, { signal, timeoutMs = options.timeoutMs }: RequestOptions): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer)
        forget()
        signal?.removeEventListener('abort', abort)
        resolve()
      }
      const abort = (): void => {
        end()
        reject(signal?.reason)
      }
      const forget = isOffline() ? onReturn(end) : () => {}
      const timer = setTimeout(end, isOffline() ? timeoutMs : ms)
      signal?.addEventListener('abort', abort)
      if (signal?.aborted === true) abort()
    })
  }

  return {
    async send(operation, request = {}) {
      const { response, failed, done } = await open(operation, request)
      try {
        const text = await response.text().catch(cause => {
          throw failed(cause)
        })
        return {
          status: response.status,
          headers: response.headers,
          body: text === '' ? null : parsed(text, response.status),
        }
      } finally {
        done()
      }
    },
    async text(operation, request = {}) {
      const { response, failed, done } = await open(operation, request)
      try {
        return await response.text().catch(cause => {
          throw failed(cause)
        })
      } finally {
        done()
      }
    },
    async *lines(operation, request = {}) {
      const { response, failed, done, arrived } = await open(operation, request)
      // The deadline applies to the response's headers; a stream takes as long as its reader.
      arrived()
      let held: ClientError | null = null
      try {
        for await (const line of linesOf(response)) {
          const row = parsed(line, response.status)
          held = isFailure(row) ? errorOf(row, response.status) : null
          // An error is always the last line of a stream. Every other line is a row.
          if (held === null) yield row
        }
        if (held !== null) throw held
      } catch (cause) {
        throw held ?? (cause instanceof ClientError ? cause : failed(cause))
      } finally {
        done()
        await response.body?.cancel().catch(() => {})
      }
    },
  }

  function parsed(text: string, status: number): unknown {
    try {
      return parse(text)
    } catch (cause) {
      throw new ClientError('INVALID_ANSWER', 'the answer is not JSON: is this the URL of a gateway?', {
        status,
        cause,
      })
    }
  }
}

/** A value as JSON. A `bigint` becomes a string, which keeps all its digits. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, (_, one) => (typeof one === 'bigint' ? String(one) : one))
}

/** A stream can be sent only once. */
function isStream(upload: Upload | undefined): boolean {
  return typeof upload === 'object' && 'getReader' in upload
}

const KEY = 'Idempotency-Key'

interface Opened {
  readonly response: Response
  /** The error for a failure while the body is read. */
  readonly failed: (cause: unknown) => unknown
  readonly done: () => void
  readonly arrived: () => void
}

function headersOf(operation: ApiRequest, token: string | null, request: RequestOptions): Record<string, string> {
  return {
    ...(token === null ? {} : { Authorization: `Bearer ${token}` }),
    ...(operation.body === undefined ? {} : { 'Content-Type': 'application/json' }),
    ...operation.headers,
    ...request.headers,
  }
}

async function refusalOf({ response, failed }: Opened, parse: (text: string) => unknown): Promise<unknown> {
  const text = await response.text().catch(failed)
  if (typeof text !== 'string') return text
  let body: unknown = null
  try {
    body = parse(text)
  } catch {
    // The response came from a proxy.
  }
  return errorOf(body, response.status, response.headers.get('retry-after'))
}

function isFailure(row: unknown): boolean {
  if (typeof row !== 'object' || row === null) return false
  const { error } = row as { readonly error?: { readonly code?: unknown; readonly message?: unknown } | null }
  return Object.keys(row).length === 1 && typeof error?.code === 'string' && typeof error.message === 'string'
}

/** Limit on one line, larger than the largest row that a gateway sends. */
const LINE_LENGTH_MAX = 64 * 1024 * 1024

/** On a platform without streams, the lines are delivered when the whole response has arrived. */
async function* linesOf(response: Response): AsyncGenerator<string, void, undefined> {
  const reader = response.body?.getReader()
  if (reader === undefined) {
    yield* (await response.text()).split('\n').filter(line => line !== '')
    return
  }
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      rest += done ? decoder.decode() : decoder.decode(value as Uint8Array, { stream: true })
      const lines = rest.split('\n')
      rest = done ? '' : (lines.pop() ?? '')
      for (const line of lines) if (line !== '') yield line
      if (rest.length > LINE_LENGTH_MAX) throw new ClientError('INVALID_ANSWER', 'a line of the stream is too long')
      if (done) return
    }
  } finally {
    await reader.cancel().catch(() => {})
    reader.releaseLock()
  }
}
