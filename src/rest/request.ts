/**
 * A request for data as it was written: route, parameters, and the headers that make another query of it. It is read once; what it means is parsed from this
 * (`read/request.ts`, `write/request.ts`, `rpc/result-request.ts`), and the line of the allow-list and of the access log are printed from it. No name has been looked up.
 */
import { GatewayError } from '../errors.ts'
import type { Incoming } from '../exchange.ts'
import { headerOf } from './header.ts'
import { parseQueryString } from './parameters/query-string.ts'
import { readParameters, type WrittenParameter } from './parameters/written.ts'
import type { Route } from './path.ts'
import { type Preferences, preferencesOf } from './prefer.ts'

/** The routes that ask for data: those an allow-list is about, but for the query language, whose text is its own shape. */
export type DataRoute = Exclude<Route, { readonly kind: 'schema' | 'contracts' | 'openapi' | 'query' }>

export function isData(route: Route): route is DataRoute {
  return !['schema', 'contracts', 'openapi', 'query'].includes(route.kind)
}

export interface WrittenRequest {
  /** HEAD is GET. */
  readonly method: string
  readonly route: DataRoute
  readonly parameters: readonly WrittenParameter[]
  /** Why the query string cannot be read at all, where it cannot. */
  readonly mistake: GatewayError | null
  readonly headers: WrittenHeaders
}

/** Undefined where they were not sent. */
export interface WrittenHeaders {
  readonly prefer: Preferences
  /** `X-Upsert`, in lower case. */
  readonly upsert: string | undefined
  /** `X-On-Conflict`. */
  readonly target: string | undefined
  /** `X-Max-Affected`. */
  readonly rowsMax: string | undefined
}

export const ONE_PARAMETERS = ['select', 'expand'] as const
export const LIST_PARAMETERS = [
  'select',
  'expand',
  'sort',
  'limit',
  'offset',
  'cursor',
  'distinct',
  'search',
  'search_columns',
  'stream',
] as const
export const AGGREGATE_PARAMETERS = [
  'fn',
  'column',
  'group_by',
  'search',
  'search_columns',
  'sort',
  'limit',
  'offset',
] as const
export const RESULT_PARAMETERS = ['select', 'sort', 'limit', 'offset'] as const
export const WRITE_PARAMETERS = ['returning'] as const

/** The parameters that are no filters. */
export function parametersOf(method: string, { kind }: DataRoute): readonly string[] {
  switch (kind) {
    case 'rpc':
      return RESULT_PARAMETERS
    case 'aggregate':
      return AGGREGATE_PARAMETERS
    case 'one':
      return method === 'GET' ? ONE_PARAMETERS : WRITE_PARAMETERS
    default:
      return method === 'GET' ? LIST_PARAMETERS : WRITE_PARAMETERS
  }
}

export function readRequest(sent: Pick<Incoming, 'method' | 'query' | 'headers'>, route: DataRoute): WrittenRequest {
  const method = sent.method === 'HEAD' ? 'GET' : sent.method
  const headers = readHeaders(sent.headers, method)
  try {
    const parameters = readParameters(parseQueryString(sent.query), parametersOf(method, route))
    return { method, route, parameters, mistake: null, headers }
  } catch (error) {
    if (error instanceof GatewayError) return { method, route, parameters: [], mistake: error, headers }
    throw error
  }
}

/** Of a read, the others mean nothing. */
function readHeaders(headers: Incoming['headers'], method: string): WrittenHeaders {
  const prefer = preferencesOf(headers)
  if (method === 'GET') return { prefer, upsert: undefined, target: undefined, rowsMax: undefined }
  return {
    prefer,
    upsert: headerOf(headers, 'x-upsert')?.trim().toLowerCase(),
    target: headerOf(headers, 'x-on-conflict'),
    rowsMax: headerOf(headers, 'x-max-affected'),
  }
}

/** Throws where the query string could not be read. */
export function parametersIn({ parameters, mistake }: WrittenRequest): readonly WrittenParameter[] {
  if (mistake !== null) throw mistake
  return parameters
}
