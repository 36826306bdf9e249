/** Requests with a body, for tests. */
import type { AskOptions, Reply, TestGateway } from './gateway.ts'

/** `body`: text goes as it is, anything else as its JSON; undefined: none. */
export type Send = (path: string, body?: unknown, options?: Omit<AskOptions, 'method' | 'body'>) => Promise<Reply>

/** A request of this method; a body is announced as JSON. */
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
