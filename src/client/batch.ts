/** Several requests as one: `POST /api/_batch` (docs/reference/batches.md). */
import { errorOf } from './error.ts'
import type { ApiRequest, ClientResponse, Http, RequestOptions } from './http.ts'

/** Options of a batch. */
export interface BatchOptions extends RequestOptions {
  /** If false, each operation is a transaction. By default, all of them are one transaction. */
  readonly atomic?: boolean
  /** The isolation level. A batch that then fails because of a concurrent transaction is run again. */
  readonly isolation?: 'read committed' | 'repeatable read' | 'serializable'
}

/** A value in the result of an earlier operation. */
export class Reference {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** Collects the operations of a batch, and sends them as one request. */
export interface OperationCollector {
  readonly http: Pick<Http, 'send'>
  /** Sends the operations that were collected, and settles their promises. */
  send(http: Http, options: BatchOptions): Promise<void>
  ref(operation: number, ...path: readonly (string | number)[]): Reference
}

interface Waiting {
  readonly operation: ApiRequest
  readonly resolve: (answer: ClientResponse) => void
  readonly reject: (error: unknown) => void
}

const NAME = /^[A-Za-z0-9_]+$/

/** Collects operations instead of sending them. */
export function collect(): OperationCollector {
  const waiting: Waiting[] = []
  let sent = false
  return {
    http: {
      send(operation, request = {}) {
        if (sent)
          throw new TypeError('the batch has been sent; all operations must be made before the function returns')
        if (request.signal !== undefined || request.timeoutMs !== undefined) {
          throw new TypeError('signal and timeoutMs are options of the batch, not of its operations')
        }
        const headers = { ...operation.headers, ...request.headers }
        return new Promise((resolve, reject) => {
          waiting.push({ operation: { ...operation, headers }, resolve, reject })
        })
      },
    },
    ref(operation, ...path) {
      if (path.some(name => !NAME.test(String(name)))) throw new TypeError(`${path.join('.')} is not a path of names`)
      return new Reference(`$${operation}.${['data', ...path].join('.')}`)
    },
    async send(http, { atomic = true, isolation, ...request }) {
      sent = true
      if (waiting.length === 0) return
      const operations = waiting.map(({ operation: { method, path, headers, body } }) => ({
        ...{ method, path, headers },
        ...(body === undefined ? {} : { body: escaped(body) }),
      }))
      const body = { operations, atomic, ...(isolation === undefined ? {} : { isolation }) }
      try {
        const answer = await http.send({ method: 'POST', path: '/api/_batch', body }, request)
        const results = answer.body.results as readonly { status: number; headers: object; body: unknown }[]
        results.forEach(({ status, headers, body }, at) => {
          const found = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]))
          const one = { status, body, headers: { get: (name: string) => found.get(name.toLowerCase()) ?? null } }
          if (status >= 400) waiting[at]?.reject(errorOf(body, status))
          else waiting[at]?.resolve(one)
        })
      } catch (error) {
        for (const { reject } of waiting) reject(error)
      }
    },
  }
}

/** Escapes strings of the application that look like a reference. */
function escaped(value: unknown): unknown {
  if (value instanceof Reference) return value.text
  if (typeof value === 'string') return /^\$+\d+\.[A-Za-z_]/.test(value) ? `$${value}` : value
  if (Array.isArray(value)) return value.map(escaped)
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  const entries = Object.entries(value)
  if (entries.length === 1 && entries[0]?.[0] === '$ref' && typeof entries[0][1] === 'string') {
    throw new TypeError('a batch cannot contain the value {"$ref": …}: it would be a reference')
  }
  return Object.fromEntries(entries.map(([name, one]) => [name, escaped(one)]))
}
