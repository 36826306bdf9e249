/** Parses the path below `/api/`: which resource, row and child (docs/reference/rest-api.md#routes). */
import { GatewayError } from '../errors.ts'
import { decodePercent } from './parameters/query-string.ts'

/** A parsed path below `/api/`. */
export type ResourceRoute =
  | { readonly kind: 'schema' }
  | { readonly kind: 'openapi' }
  | { readonly kind: 'query' }
  | { readonly kind: 'batch' }
  | { readonly kind: 'inspect' }
  | { readonly kind: 'progress'; readonly id: string }
  | { readonly kind: 'contracts' }
  | { readonly kind: 'rpc'; readonly function: string }
  | { readonly kind: 'list'; readonly table: string }
  | { readonly kind: 'aggregate'; readonly table: string }
  | { readonly kind: 'explain'; readonly table: string }
  | { readonly kind: 'one'; readonly table: string; readonly id: string }
  | { readonly kind: 'children'; readonly table: string; readonly id: string; readonly child: string }

/**
 * The route with placeholders for its variable parts, for logs and metrics, whose number of labels must not
 * grow with the data.
 */
export const ROUTE_PATTERN: Readonly<Record<ResourceRoute['kind'], string>> = {
  schema: '/api/_schema',
  openapi: '/api/_openapi',
  query: '/api/_query',
  batch: '/api/_batch',
  inspect: '/api/_inspect',
  progress: '/api/_imports/{id}',
  contracts: '/api/_rpc/contracts',
  rpc: '/api/rpc/{function}',
  list: '/api/{table}',
  aggregate: '/api/{table}/aggregate',
  explain: '/api/{table}/_explain',
  one: '/api/{table}/{id}',
  children: '/api/{table}/{id}/{child}',
}

/** Reserved names directly below `/api/`. A table with one of these names cannot be reached. */
const FIXED: ReadonlyMap<string, ResourceRoute> = new Map([
  ['_schema', { kind: 'schema' }],
  ['_openapi', { kind: 'openapi' }],
  ['_query', { kind: 'query' }],
  ['_batch', { kind: 'batch' }],
  ['_inspect', { kind: 'inspect' }],
])

/** Reserved names below a table. A row whose key is one of them can be read with a filter on the key. */
const BELOW_TABLES: ReadonlyMap<string, 'aggregate' | 'explain'> = new Map([
  ['aggregate', 'aggregate'],
  ['_aggregate', 'aggregate'],
  ['_explain', 'explain'],
])

/**
 * Parses `path`, which is percent-encoded as sent. Null if no route of the API has this form.
 * @throws {GatewayError} `PARSE_ERROR` for invalid percent-encoding.
 */
export function parsePath(path: string): ResourceRoute | null {
  if (!path.startsWith(API)) return null
  // table, id?, child?
  const tableEnd = endOfSegment(path, API.length)
  const idEnd = endOfSegment(path, tableEnd + 1)
  const childEnd = endOfSegment(path, idEnd + 1)
  if (childEnd < path.length || path.includes('//') || path.endsWith('/')) return null
  const table = decodePercent(path.slice(API.length, tableEnd), 'path')
  const id = tableEnd === path.length ? null : decodePercent(path.slice(tableEnd + 1, idEnd), 'path')
  if (id === null) return FIXED.get(table) ?? { kind: 'list', table }
  if (idEnd < path.length) {
    const child = decodePercent(path.slice(idEnd + 1), 'path')
    return { kind: 'children', table, id, child }
  }
  if (table === 'rpc') return { kind: 'rpc', function: id }
  if (table === '_rpc' && id === 'contracts') return { kind: 'contracts' }
  if (table === '_imports') return { kind: 'progress', id }
  const below = BELOW_TABLES.get(id)
  return below === undefined ? { kind: 'one', table, id } : { kind: below, table }
}

const API = '/api/'

/** The end of the segment that starts at `start`: the next slash, or the end of the path. */
function endOfSegment(path: string, start: number): number {
  const slash = path.indexOf('/', start)
  return slash < 0 ? path.length : slash
}

/**
 * The values of a primary key from an `{id}` that was percent-decoded once (docs/reference/reading.md#names).
 * A key of one column takes the whole text. A composite key is split at its commas; a comma inside a value
 * was encoded twice and arrives here as `%2C`, and a percent sign that could be mistaken for an escape
 * arrives as `%25`.
 * @throws {GatewayError} `PARSE_ERROR` if the number of values is wrong.
 */
export function parseId(id: string, keyColumns: readonly string[]): readonly string[] {
  if (keyColumns.length === 1) return [id]
  const values = id.split(',')
  if (values.length !== keyColumns.length) {
    throw new GatewayError(
      'PARSE_ERROR',
      `the id has ${values.length} of the key's ${keyColumns.length} values; ` +
        `write ${keyColumns.map(name => `{${name}}`).join(',')}`,
    )
  }
  return values.map(value => value.replace(/%(2C|25)/gi, match => (match === '%25' ? '%' : ',')))
}

/** Prints the `{id}` segment of a row, percent-encoded for a path; the inverse of `parseId`. */
export function printId(values: readonly string[]): string {
  const [only] = values
  if (values.length === 1 && only !== undefined) return encodeURIComponent(only)
  return values.map(value => encodeURIComponent(partOfId(value))).join(',')
}

/** Encodes one value of a composite key as it appears in an `{id}` after percent-decoding. */
export function partOfId(value: string): string {
  return value.replaceAll('%', '%25').replaceAll(',', '%2C')
}
