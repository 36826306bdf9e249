/**
 * The methods that each resource accepts; any other is answered with 405 and `Allow`
 * (docs/reference/rest-api.md#routes).
 */
import type { Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Incoming } from '../exchange.ts'
import type { ResourceRoute } from './path.ts'

/**
 * The methods of each route. HEAD is accepted wherever GET is. For functions, GET is limited to those that do
 * not change data.
 */
export const METHODS_OF = {
  list: ['GET', 'POST', 'PATCH', 'DELETE'],
  one: ['GET', 'PATCH', 'DELETE'],
  children: ['GET'],
  aggregate: ['GET'],
  explain: ['GET'],
  query: ['POST'],
  batch: ['POST'],
  inspect: ['POST'],
  progress: ['GET'],
  rpc: ['GET', 'POST'],
  contracts: ['GET'],
  schema: ['GET'],
  openapi: ['GET'],
} as const

/** Methods that read and never write. */
export const READING: readonly string[] = ['GET', 'HEAD']

const ALL_METHODS_OF: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries(METHODS_OF).map(([kind, methods]) => [
    kind,
    methods.flatMap((method: string) => (method === 'GET' ? READING : [method])),
  ]),
)

/** The methods of a route, HEAD included. */
export function methodsOf(kind: ResourceRoute['kind']): readonly string[] {
  return ALL_METHODS_OF.get(kind) ?? []
}

/**
 * The methods of a list or row of this table. A view or a foreign table can accept some kinds of write and
 * not others.
 */
export function methodsAt(kind: 'list' | 'one', { writable }: Pick<Table, 'writable'>): readonly string[] {
  return methodsOf(kind).filter(method => !isWriting(method) || writable[NEEDS[method]])
}

/** The kind of write on a table that each method requires. */
export const NEEDS = { POST: 'insert', PATCH: 'update', DELETE: 'delete' } as const

function isWriting(method: string): method is keyof typeof NEEDS {
  return method in NEEDS
}

/** Creates the `METHOD_NOT_ALLOWED` error that lists the accepted methods. */
export function methodNotAllowed({ method, path }: Incoming, allowed: readonly string[], hint?: string): GatewayError {
  const list = allowed.join(', ')
  return new GatewayError('METHOD_NOT_ALLOWED', `${method} is not possible on ${path.slice(0, 200)}; use ${list}`, {
    headers: { Allow: list },
    ...(hint === undefined ? {} : { hint }),
  })
}

/** Hint for clients that send PUT, as they would to other APIs. */
export const INSTEAD_OF_PUT: string =
  'to change columns of a row, send PATCH /api/{table}/{id}; ' +
  'to create or replace one, send POST /api/{table} with X-Upsert: true'
