/**
 * A line of the allow-list that is a request (docs/guides/allow-list.md#requests, decision 0013): the shape of requests, written by a person or recorded.
 *
 *   line      = method path [ "?" parameter { "&" parameter } ]          path: as sent, with {id} for the id of a row
 *   parameter = column [ [ ".not" ] "." operator ] | group "=(" … ")"        filters, without values
 *             | name [ "=" value ]                                       select, sort, expand …: without a value, any
 */
import type { QueryPattern } from '../../access/list/pattern.ts'
import { GatewayError } from '../../errors.ts'
import { shorten } from '../../text/shorten.ts'
import {
  GROUP_PARAMETERS,
  isParenthesised,
  readFilterKey,
  readGroup,
  type Test,
} from '../parameters/filter-notation.ts'
import { decodeComponent } from '../parameters/query-string.ts'
import { parsePath } from '../path.ts'
import { type DataRoute, parametersOf } from '../request.ts'
import { LEFT_OUT, type LineParameter, ON_CONFLICT, printParameters, takesArguments, UPSERT, VALUES } from './line.ts'

/** A line, read without looking anything up. */
export interface RequestLine {
  readonly method: string
  readonly route: DataRoute
  readonly parameters: readonly LineParameter[]
}

/** Throws `GatewayError` for a line that no request could have as its shape. */
export function parseRequestPattern(line: string): QueryPattern {
  const { method, route, parameters } = readRequestLine(line)
  const { key, values } = printParameters(method, route, parameters)
  return { key, values }
}

/** Throws `GatewayError` as `parseRequestPattern` does. */
export function readRequestLine(line: string): RequestLine {
  const [, written = '', target = '', rest] = /^(\S+)\s+(\S+)(\s.*)?$/s.exec(line) ?? []
  if (rest !== undefined)
    refuse(`"${shorten(rest.trim())}" goes on after the request; a blank in a name is written %20`)
  const method = written.toUpperCase()
  const mark = target.indexOf('?')
  const path = mark < 0 ? target : target.slice(0, mark)
  const route = readRoute(path)
  if (!METHODS[route.kind].includes(method)) {
    refuse(`${method} is no method of ${path}; there is ${METHODS[route.kind].join(', ')}, and GET is HEAD as well`)
  }
  return { method, route, parameters: mark < 0 ? [] : readParameters(target.slice(mark + 1), method, route) }
}

const METHODS: Readonly<Record<DataRoute['kind'], readonly string[]>> = {
  list: ['GET', 'POST', 'PATCH', 'DELETE'],
  one: ['GET', 'PATCH', 'DELETE'],
  children: ['GET'],
  aggregate: ['GET'],
  explain: ['GET'],
  rpc: ['GET', 'POST'],
}

function readRoute(path: string): DataRoute {
  // {table} would be taken for the name of a table, and stand for nothing.
  const placeholder = path.split('/').find(segment => /[{}]/.test(segment) && segment !== '{id}')
  if (placeholder !== undefined) {
    refuse(`"${shorten(placeholder)}" is no name; only {id} stands for anything, tables and functions are written out`)
  }
  const route = parsePath(path)
  if (route === null) {
    return refuse(`"${shorten(path)}" is no path of the API; expected /api/{table} with the table's name`)
  }
  switch (route.kind) {
    case 'schema':
    case 'contracts':
    case 'openapi':
      return refuse(`${path} is answered to everybody who is let in; leave it out`)
    case 'query':
      return refuse('a text of the query language is its own shape; write the query, with ? for its values')
    case 'one':
    case 'children':
      if (route.id !== '{id}') refuse(`"${shorten(route.id)}" is the id of one row; write {id} in its place`)
      return route
    default:
      return route
  }
}

function readParameters(query: string, method: string, route: DataRoute): readonly LineParameter[] {
  const given = new Set<string>()
  return query.split('&').flatMap((piece): readonly LineParameter[] => {
    if (piece === '') return []
    const equals = piece.indexOf('=')
    const name = decodeComponent(equals < 0 ? piece : piece.slice(0, equals))
    const value = equals < 0 ? null : decodeComponent(piece.slice(equals + 1))
    const ours = ourName(name, method, route)
    if (ours === null) return [readOther(name, value, takesArguments({ method, route }))]
    if (value !== null && LEFT_OUT.has(ours)) {
      refuse(`${ours} is no part of a shape, so "${shorten(piece)}" would not be kept to; leave it out`)
    }
    if (LEFT_OUT.has(ours)) return []
    if (value !== null && VALUES.has(ours)) refuse(`the words of a search are left out; write ${ours}`)
    if (given.has(ours)) refuse(`"${ours}" is there twice; join its items with a comma`)
    given.add(ours)
    if (ours === UPSERT) return [{ kind: 'named', name: ours, value: value === null ? null : readMode(value) }]
    return [{ kind: 'named', name: ours, value: VALUES.has(ours) ? undefined : value }]
  })
}

/** A parameter that is no filter, or a header that counts as one, in whatever letter case. */
function ourName(name: string, method: string, route: DataRoute): string | null {
  if (parametersOf(method, route).includes(name)) return name
  if (method !== 'POST' || route.kind !== 'list') return null
  return [UPSERT, ON_CONFLICT].find(header => header.toLowerCase() === name.toLowerCase()) ?? null
}

/** The header's letter case does not matter; any other mode would be refused whatever the list says. */
function readMode(value: string): string {
  const mode = value.toLowerCase()
  return mode === 'true' || mode === 'ignore' ? mode : refuse(`${UPSERT}=${shorten(value)} is neither true nor ignore`)
}

function readOther(name: string, value: string | null, isArgumentTaken: boolean): LineParameter {
  if (value !== null && GROUP_PARAMETERS.has(name) && isParenthesised(value)) {
    return { kind: 'filter', filter: readGroup(name, value.slice(1, -1), `${name}=${value}`, readItem) }
  }
  const key = readFilterKey(name)
  if (value === null && key !== null) return { kind: 'filter', filter: testOf(key, name) }
  if (value === null && isArgumentTaken) return { kind: 'argument', name }
  // As in a request, a column without an operator is compared with eq; one with a dot is more likely a misspelt operator.
  const isBare = value === null && !name.includes('.') && !GROUP_PARAMETERS.has(name)
  const equal = isBare ? readFilterKey(`${name}.eq`) : null
  if (equal !== null) return { kind: 'filter', filter: testOf(equal, name) }
  return refuse(
    `"${shorten(value === null ? name : `${name}=${value}`)}" is no part of a shape; a filter is its column and operator without a value, e.g. status.eq`,
  )
}

function readItem(item: string, shown: string): Test {
  const key = readFilterKey(item)
  if (key !== null) return testOf(key, item)
  return refuse(
    `"${shorten(item)}" in "${shorten(shown)}" is no part of a shape; write column.operator without a value`,
  )
}

/** A flag without a value is set. */
function testOf(key: Pick<Test, 'path' | 'operator' | 'negated'>, shown: string): Test {
  return { kind: 'test', ...key, operand: '', shown }
}

function refuse(message: string): never {
  throw new GatewayError('PARSE_ERROR', message)
}
