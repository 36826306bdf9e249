/** Requests with a body, for tests. */
import type { AskOptions, Reply, TestGateway } from './gateway.ts'

/** `body`: strings are sent unchanged, other values as JSON; undefined sends no body. */
export type Send = (path: string, body?: unknown, options?: Omit<AskOptions, 'method' | 'body'>) => Promise<Reply>

/** Builds a request with this method. A body is declared as JSON. */
export function sender(gateway: () => TestGateway, method: 'POST' | 'PATCH' | 'DELETE'): Send {
  return (path, body, options = {}) => {
    if (body === undefined) return gateway().get(path, { ...options, method })
    const headers = { 'Content-Type': 'application/json', ...options.headers }
    return gateway().get(path, {
      ...options,
      method,
      headers,
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
  }
}
