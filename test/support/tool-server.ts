/** The tool server in this process, on a separate port, serving the repository's current documents. */
import { createAnswerer } from '../../src/mcp/answer.ts'
import { startToolServer, type ToolServer, type ToolServerOptions } from '../../src/mcp/http.ts'
import { collectLibrary } from '../../src/mcp/library/collect.ts'
import { type Library, openLibrary } from '../../src/mcp/library/library.ts'
import { ROOT } from '../tidy/tree.ts'

let collected: Library | null = null

export function repositoryLibrary(): Library {
  collected ??= openLibrary(JSON.parse(JSON.stringify(collectLibrary(ROOT))))
  return collected
}

export interface TestToolServer extends ToolServer {
  /** Errors that indicate a defect. */
  readonly reported: readonly unknown[]
}

/** Requests are not limited unless a limit is given. */
export async function testToolServer(options: Partial<ToolServerOptions> = {}): Promise<TestToolServer> {
  const reported: unknown[] = []
  const server = await startToolServer({
    host: '127.0.0.1',
    port: 0,
    allowedHosts: [],
    trustedProxies: [],
    answerer: createAnswerer({ library: repositoryLibrary(), report: error => reported.push(error) }),
    rateLimit: { burst: 0, rate: 0 },
    now: () => performance.now(),
    seed: 1,
    ...options,
  })
  return { ...server, reported }
}

export interface Answered {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: responses of many shapes
  readonly body: any
}

/**
 * Posts with `Content-Type` as the only header, which is all that a client needs. Strings and bytes are sent
 * unchanged.
 */
export async function post(url: string, message: unknown, headers: Record<string, string> = {}): Promise<Answered> {
  const body = typeof message === 'string' || message instanceof Uint8Array ? message : JSON.stringify(message)
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: body as string,
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text === '' ? null : JSON.parse(text) }
}

export function request(method: string, params?: unknown, id: unknown = 1): object {
  return { jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) }
}

/** The response's result or error. */
export async function ask(url: string, method: string, params?: unknown): Promise<Answered['body']> {
  const { body } = await post(url, request(method, params))
  return body.result ?? body.error
}

/** The result of a tool call. */
export function call(url: string, name: string, given: object = {}): Promise<Answered['body']> {
  return ask(url, 'tools/call', { name, arguments: given })
}
