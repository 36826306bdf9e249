/** The methods of each resource; any other is answered 405 with `Allow` (docs/reference/rest-api.md#routes). */
import type { Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Incoming } from '../exchange.ts'
import type { Route } from './path.ts'

/** Of each route; where there is GET, there is HEAD. Of a function's, GET is for those that change nothing. */
export const METHODS_OF = {
  list: ['GET', 'POST', 'PATCH', 'DELETE'],
  one: ['GET', 'PATCH', 'DELETE'],
  children: ['GET'],
  aggregate: ['GET'],
  explain: ['GET'],
  query: ['POST'],
  rpc: ['GET', 'POST'],
  contracts: ['GET'],
  schema: ['GET'],
  openapi: ['GET'],
} as const

export const READING: readonly string[] = ['GET', 'HEAD']

const ALL_METHODS_OF: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries(METHODS_OF).map(([kind, methods]) => [
    kind,
    methods.flatMap((method: string) => (method === 'GET' ? READING : [method])),
  ]),
)

export function methodsOf(kind: Route['kind']): readonly string[] {
  return ALL_METHODS_OF.get(kind) ?? []
}

/** Of these rows: a view, or a foreign table, may take some ways of writing and not others. */
export function methodsAt(kind: 'list' | 'one', { writable }: Pick<Table, 'writable'>): readonly string[] {
  return methodsOf(kind).filter(method => !isWriting(method) || writable[NEEDS[method]])
}

/** What of a table each way of writing needs. */
export const NEEDS = { POST: 'insert', PATCH: 'update', DELETE: 'delete' } as const

function isWriting(method: string): method is keyof typeof NEEDS {
  return method in NEEDS
}

/** `METHOD_NOT_ALLOWED`, with what is allowed. */
export function methodNotAllowed({ method, path }: Incoming, allowed: readonly string[], hint?: string): GatewayError {
  const list = allowed.join(', ')
  return new GatewayError('METHOD_NOT_ALLOWED', `${method} is not possible on ${path.slice(0, 200)}; use ${list}`, {
    headers: { Allow: list },
    ...(hint === undefined ? {} : { hint }),
  })
}

/** What other APIs call PUT. */
export const INSTEAD_OF_PUT =
  'to change columns of a row, send PATCH /api/{table}/{id}; to create or replace one, send POST /api/{table} with X-Upsert: true'
