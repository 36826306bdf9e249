/** The shape of a request (docs/guides/allow-list.md#requests): method, route, and the parameters without their values. No names are looked up. */
import type { QueryShape } from '../../access/list/pattern.ts'
import { GatewayError } from '../../errors.ts'
import type { Incoming } from '../../exchange.ts'
import { shorten } from '../../text/shorten.ts'
import { headerOf } from '../header.ts'
import { readFilter } from '../parameters/filter-notation.ts'
import { parseQueryString, type QueryParameter } from '../parameters/query-string.ts'
import { ROUTE_PATTERN, type Route } from '../path.ts'
import { preferencesOf } from '../prefer.ts'
import { AGGREGATE_PARAMETERS } from '../read/aggregate.ts'
import { LIST_PARAMETERS, ONE_PARAMETERS } from '../read/request.ts'
import { RESULT_PARAMETERS } from '../rpc/result-request.ts'
import { encodeName, joinParts, type Part, printFilter, valuePart } from './shape-parts.ts'

/** The routes that ask for data: those an allow-list is about, but for the query language, whose text is its own shape. */
export type DataRoute = Exclude<Route, { readonly kind: 'schema' | 'contracts' | 'openapi' | 'query' }>

/** What of a request makes its shape. */
export type Shaped = Pick<Incoming, 'method' | 'query' | 'headers'>

export function shapeOfRequest(incoming: Shaped, route: DataRoute): QueryShape {
  const method = incoming.method === 'HEAD' ? 'GET' : incoming.method
  const ours = parametersOf(method, route)
  const parts: Part[] = []
  const argumentsSeen = new Set<string>()
  for (const parameter of parseQueryString(incoming.query)) {
    const { name, value } = parameter
    if (ours.includes(name)) {
      if (!LEFT_OUT.has(name)) parts.push(valuePart(name, VALUES.has(name) ? undefined : value))
    } else if (takesArguments(method, route) && isArgument(parameter)) {
      // An array is its argument several times.
      if (!argumentsSeen.has(name)) parts.push(argumentPart(name))
      argumentsSeen.add(name)
    } else parts.push(printFilter(readFilter(parameter)))
  }
  return joinParts(`${method} ${printRoute(route)}`, [
    ...parts,
    ...partsOfHeaders(method, route, incoming.headers, parts),
  ])
}

/** Characters of a masked path that are logged. */
const MASKED_MAX = 1_000

/**
 * The path and query of a request for the access log: names and operators stay; ids, filter values, search terms, cursors and page numbers do not. A query
 * string that cannot be read is left out.
 */
export function maskedPath(incoming: Shaped, route: Route): string {
  return route.kind === 'schema' || route.kind === 'openapi' || route.kind === 'query' || route.kind === 'contracts'
    ? ROUTE_PATTERN[route.kind]
    : shorten(maskedRequest(incoming, route), MASKED_MAX)
}

function maskedRequest(incoming: Shaped, route: DataRoute): string {
  if (incoming.query === '') return printRoute(route)
  try {
    const { line } = shapeOfRequest({ ...incoming, headers: {} }, route)
    return line().replace(/^\S+ /, '')
  } catch (error) {
    if (error instanceof GatewayError) return printRoute(route)
    throw error
  }
}

/** Which page, and how it is sent, is no part of a shape. */
export const LEFT_OUT: ReadonlySet<string> = new Set(['limit', 'offset', 'cursor', 'stream'])

/** Of these the value is data; of the other parameters it names columns, relations or functions. */
export const VALUES: ReadonlySet<string> = new Set(['search'])

const WRITE_PARAMETERS = ['returning'] as const

/** The parameters that are no filters. */
export function parametersOf(method: string, route: DataRoute): readonly string[] {
  switch (route.kind) {
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

export function printRoute(route: DataRoute): string {
  switch (route.kind) {
    case 'rpc':
      return `/api/rpc/${encodeName(route.function)}`
    case 'list':
      return `/api/${encodeName(route.table)}`
    case 'one':
      return `/api/${encodeName(route.table)}/{id}`
    case 'children':
      return `/api/${encodeName(route.table)}/{id}/${encodeName(route.child)}`
    case 'aggregate':
      return `/api/${encodeName(route.table)}/aggregate`
    case 'explain':
      return `/api/${encodeName(route.table)}/_explain`
  }
}

/** In a GET the arguments of a function stand among the filters of its rows. */
export function takesArguments(method: string, route: DataRoute): boolean {
  return route.kind === 'rpc' && method === 'GET'
}

/** What is written as a filter is one; which other names are arguments is for the function to say, and the same for every value. */
function isArgument(parameter: QueryParameter): boolean {
  try {
    const filter = readFilter(parameter)
    return filter.kind === 'test' && filter.operand === parameter.value && filter.path.column === parameter.name
  } catch (error) {
    if (error instanceof GatewayError) return true
    throw error
  }
}

/** An argument, or a filter by `eq` without the operator. */
export function argumentPart(name: string): Part {
  return { name, text: encodeName(name), value: undefined }
}

export const UPSERT = 'X-Upsert'
export const ON_CONFLICT = 'X-On-Conflict'

/** Headers that make another query of it: an upsert changes rows that are there, and a deletion can be asked for the rows. */
function partsOfHeaders(
  method: string,
  route: DataRoute,
  headers: Incoming['headers'],
  parts: readonly Part[],
): readonly Part[] {
  if (route.kind === 'rpc') return []
  if (method === 'POST') {
    const mode = headerOf(headers, 'x-upsert')?.trim().toLowerCase()
    const target = headerOf(headers, 'x-on-conflict')
    return [
      ...(mode === undefined || mode === 'false' ? [] : [valuePart(UPSERT, mode)]),
      ...(target === undefined ? [] : [valuePart(ON_CONFLICT, target)]),
    ]
  }
  const wantsRows = method === 'DELETE' && preferencesOf(headers).returned === 'representation'
  return wantsRows && !parts.some(({ name }) => name === 'returning') ? [valuePart('returning', '*')] : []
}
