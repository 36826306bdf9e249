/**
 * A data request as it was written: route, parameters, and the headers that change its meaning. It is read
 * once. `read/request.ts`, `write/request.ts` and `rpc/result-request.ts` parse it further, and the lines of
 * the allow-list and of the access log are printed from it. No names have been looked up yet.
 */
import { GatewayError } from '../errors.ts'
import type { Incoming } from '../exchange.ts'
import { prefersCsv } from './accept.ts'
import { headerOf } from './header.ts'
import { parseQueryString } from './parameters/query-string.ts'
import { parseParameters, type WrittenParameter } from './parameters/request-parameters.ts'
import type { ResourceRoute } from './path.ts'
import { type Preferences, preferencesOf } from './prefer.ts'

/**
 * The routes that read or write data. The allow-list applies to them and to the query language, whose text is
 * its own shape.
 */
export type DataRoute = Exclude<
  ResourceRoute,
  { readonly kind: 'schema' | 'contracts' | 'openapi' | 'query' | 'batch' | 'inspect' | 'progress' }
>

/** Tells data routes from routes that describe the API. */
export function isData(route: ResourceRoute): route is DataRoute {
  return !['schema', 'contracts', 'openapi', 'query', 'batch', 'inspect', 'progress'].includes(route.kind)
}

/** A data request, split into its parts but not interpreted. */
export interface WrittenRequest {
  /** The method; HEAD is recorded as GET. */
  readonly method: string
  readonly route: DataRoute
  readonly parameters: readonly WrittenParameter[]
  /** The error of a query string that cannot be read, or null if it was read. */
  readonly mistake: GatewayError | null
  readonly headers: WrittenHeaders
}

/** The headers that change the meaning of a request; undefined if not sent. */
export interface WrittenHeaders {
  readonly prefer: Preferences
  /** `X-Upsert` in lower case. */
  readonly upsert: string | undefined
  /** `X-On-Conflict`. */
  readonly target: string | undefined
  /** `X-Max-Affected`. */
  readonly rowsMax: string | undefined
  /** `If-Match` of a change. */
  readonly ifMatch: string | undefined
  /** True if `Accept` prefers the rows of a list as CSV. */
  readonly csv: boolean
}

/** The named parameters of `GET /api/{table}/{id}`. */
export const ONE_PARAMETERS = ['select', 'expand'] as const
/** The named parameters of `GET /api/{table}`. */
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
/** The named parameters of `GET /api/{table}/aggregate`. */
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
/** The named parameters that apply to the rows a function returns. */
export const RESULT_PARAMETERS = ['select', 'sort', 'limit', 'offset'] as const
/** The named parameters of a deletion. */
export const DELETE_PARAMETERS = ['returning'] as const
/** The named parameters of a creation or a change. */
export const WRITE_PARAMETERS = ['returning', 'expand'] as const

/** The parameters that are not filters. */
export function parametersOf(method: string, { kind }: DataRoute): readonly string[] {
  switch (kind) {
    case 'rpc':
      return RESULT_PARAMETERS
    case 'aggregate':
      return AGGREGATE_PARAMETERS
    case 'one':
      return method === 'GET' ? ONE_PARAMETERS : writeParametersOf(method)
    default:
      return method === 'GET' ? LIST_PARAMETERS : writeParametersOf(method)
  }
}

/** The named parameters of a write. */
export function writeParametersOf(method: string): typeof DELETE_PARAMETERS | typeof WRITE_PARAMETERS {
  return method === 'DELETE' ? DELETE_PARAMETERS : WRITE_PARAMETERS
}

/** Limits on every request. */
export interface RequestLimits {
  /** Limit on the parameters of a query string; 0 means no limit. */
  readonly maxQueryParameters: number
}

/**
 * Splits a request into its parts. An unreadable query string is recorded as `mistake`, so that errors of the
 * path take precedence.
 */
export function readRequest(
  sent: Pick<Incoming, 'method' | 'query' | 'headers'>,
  route: DataRoute,
  { maxQueryParameters }: RequestLimits,
): WrittenRequest {
  const method = sent.method === 'HEAD' ? 'GET' : sent.method
  const headers = readHeaders(sent.headers, method, route)
  try {
    const parameters = parseParameters(parseQueryString(sent.query, maxQueryParameters), parametersOf(method, route))
    return { method, route, parameters, mistake: null, headers }
  } catch (error) {
    if (error instanceof GatewayError) return { method, route, parameters: [], mistake: error, headers }
    throw error
  }
}

/** Reads the headers. Only `Prefer` and `Accept` apply to reads. */
function readHeaders(headers: Incoming['headers'], method: string, { kind }: DataRoute): WrittenHeaders {
  const prefer = preferencesOf(headers)
  if (method === 'GET') {
    const csv = (kind === 'list' || kind === 'children') && prefersCsv(headers.accept)
    return { prefer, upsert: undefined, target: undefined, rowsMax: undefined, ifMatch: undefined, csv }
  }
  return {
    prefer,
    upsert: headerOf(headers, 'x-upsert')?.trim().toLowerCase(),
    target: headerOf(headers, 'x-on-conflict'),
    rowsMax: headerOf(headers, 'x-max-affected'),
    ifMatch: headerOf(headers, 'if-match'),
    csv: false,
  }
}

/**
 * The parameters of a request.
 * @throws {GatewayError} the recorded error if the query string could not be read.
 */
export function parametersIn({ parameters, mistake }: WrittenRequest): readonly WrittenParameter[] {
  if (mistake !== null) throw mistake
  return parameters
}
