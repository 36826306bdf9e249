/**
 * Parses an allow-list line that is a request (docs/guides/allow-list.md#requests, decision 0013): the shape
 * of requests, written by an operator or recorded.
 *
 * line = method path [ "?" parameter { "&" parameter } ]
 * parameter = column [ [ ".not" ] "." operator ] | group "=(" … ")" | name [ "=" value ]
 *
 * The path is as sent, with {id} for the id of a row. Filters and groups have no values. A named parameter
 * such as `select` without a value matches any value.
 */
import type { QueryPattern } from '../../access/list/pattern.ts'
import { GatewayError } from '../../errors.ts'
import { shorten } from '../../text/shorten.ts'
import {
  type FilterTest,
  GROUP_PARAMETERS,
  isParenthesised,
  readFilterKey,
  readGroup,
} from '../parameters/filter-notation.ts'
import { decodeComponent } from '../parameters/query-string.ts'
import {
  RELATED_PARAMETERS,
  type RelatedName,
  type Splitter,
  splitAnyName,
  splitterFor,
} from '../parameters/related.ts'
import { parsePath } from '../path.ts'
import { type DataRoute, parametersOf } from '../request.ts'
import {
  DATA_PARAMETERS,
  type LineParameter,
  ON_CONFLICT,
  PAGING_PARAMETERS,
  printParameters,
  takesArguments,
  UPSERT,
} from './line.ts'

/** A parsed line; no names have been looked up. */
export interface RequestLine {
  readonly method: string
  readonly route: DataRoute
  readonly parameters: readonly LineParameter[]
}

/**
 * Parses a line to the pattern that requests are compared with.
 * @throws {GatewayError} `PARSE_ERROR` for a line that no request can match.
 */
export function parseRequestPattern(line: string): QueryPattern {
  const { method, route, parameters } = readRequestLine(line)
  const { key, values } = printParameters(method, route, parameters)
  return { key, values }
}

/**
 * Parses a line to its parts.
 * @throws {GatewayError} `PARSE_ERROR` for a line that no request can match.
 */
export function readRequestLine(line: string): RequestLine {
  const [, written = '', target = '', rest] = /^(\S+)\s+(\S+)(\s.*)?$/s.exec(line) ?? []
  if (rest !== undefined) refuse(`"${shorten(rest.trim())}" follows the request; write a blank in a name as %20`)
  const method = written.toUpperCase()
  const mark = target.indexOf('?')
  const path = mark < 0 ? target : target.slice(0, mark)
  const route = readRoute(path)
  if (!METHODS[route.kind].includes(method)) {
    refuse(`${path} does not accept ${method}; it accepts ${METHODS[route.kind].join(', ')} (GET includes HEAD)`)
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
  // `{table}` would be parsed as the name of a table and match nothing.
  const placeholder = path.split('/').find(segment => /[{}]/.test(segment) && segment !== '{id}')
  if (placeholder !== undefined) {
    refuse(
      `"${shorten(placeholder)}" is not a name; {id} is the only placeholder, write the names of tables and functions`,
    )
  }
  const route = parsePath(path)
  if (route === null) {
    return refuse(`"${shorten(path)}" is not a path of the API; expected /api/{table} with the table's name`)
  }
  switch (route.kind) {
    case 'schema':
    case 'contracts':
    case 'openapi':
    case 'progress':
      return refuse(`${path} is always allowed; leave it out`)
    case 'batch':
      return refuse('each operation of a batch has its own line; write the lines of the operations')
    case 'inspect':
      return refuse('an inspected request has the line of the request; write that line')
    case 'query':
      return refuse('a query text is its own shape; write the query, with ? for its values')
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
  const pieces = query
    .split('&')
    .filter(piece => piece !== '')
    .map(readPiece)
  const split = splitterOf(pieces, parametersOf(method, route))
  return pieces.flatMap(({ piece, name, value }): readonly LineParameter[] => {
    const ours = ourName(name, method, route)
    const related = ours === null ? split(name) : null
    if (related !== null) return readRelated(related, value, piece, given)
    if (ours === null) return [readOther(name, value, takesArguments({ method, route }))]
    if (value !== null && PAGING_PARAMETERS.has(ours)) {
      refuse(`${ours} is not part of a request shape, so "${shorten(piece)}" would have no effect; leave it out`)
    }
    if (PAGING_PARAMETERS.has(ours)) return []
    if (value !== null && DATA_PARAMETERS.has(ours)) refuse(`a line has no search words; write ${ours}`)
    if (given.has(ours)) refuse(`"${ours}" appears twice; join its items with a comma`)
    given.add(ours)
    if (ours === UPSERT) return [{ kind: 'named', name: ours, value: value === null ? null : readMode(value) }]
    return [{ kind: 'named', name: ours, value: DATA_PARAMETERS.has(ours) ? undefined : value }]
  })
}

/** One parameter of a line, as written and decoded. */
interface Piece {
  readonly piece: string
  readonly name: string
  readonly value: string | null
}

function readPiece(piece: string): Piece {
  const equals = piece.indexOf('=')
  return {
    piece,
    name: decodeComponent(equals < 0 ? piece : piece.slice(0, equals)),
    value: equals < 0 ? null : decodeComponent(piece.slice(equals + 1)),
  }
}

/** A line whose `expand` has no value matches any relations, so it does not tell which names are theirs. */
function splitterOf(pieces: readonly Piece[], names: readonly string[]): Splitter {
  const expand = names.includes('expand') ? pieces.find(({ name }) => name === 'expand') : undefined
  return expand?.value === null ? splitAnyName : splitterFor(expand?.value)
}

function readRelated(
  { path, name }: RelatedName,
  value: string | null,
  piece: string,
  given: Set<string>,
): readonly LineParameter[] {
  if (!RELATED_PARAMETERS.includes(name)) return [{ kind: 'related', path, parameter: readOther(name, value, false) }]
  if (PAGING_PARAMETERS.has(name)) {
    return value === null ? [] : refuse(`${name} is not part of a request shape; leave out "${shorten(piece)}"`)
  }
  const key = [...path, name].join('.')
  if (given.has(key)) refuse(`"${shorten(key)}" appears twice; join its items with a comma`)
  given.add(key)
  return [{ kind: 'related', path, parameter: { kind: 'named', name, value } }]
}

/**
 * The canonical name of a named parameter, or of a header that counts as one, or null for other parameters.
 * Header names are case-insensitive.
 */
function ourName(name: string, method: string, route: DataRoute): string | null {
  if (parametersOf(method, route).includes(name)) return name
  if (method !== 'POST' || route.kind !== 'list') return null
  return [UPSERT, ON_CONFLICT].find(header => header.toLowerCase() === name.toLowerCase()) ?? null
}

/** Parses the value of `X-Upsert`. It is case-insensitive; requests with other values are always rejected. */
function readMode(value: string): string {
  const mode = value.toLowerCase()
  return mode === 'true' || mode === 'ignore'
    ? mode
    : refuse(`${UPSERT}=${shorten(value)} is not valid; use true or ignore`)
}

function readOther(name: string, value: string | null, isArgumentTaken: boolean): LineParameter {
  if (value !== null && GROUP_PARAMETERS.has(name) && isParenthesised(value)) {
    return { kind: 'filter', filter: readGroup(name, value.slice(1, -1), `${name}=${value}`, readItem) }
  }
  const key = readFilterKey(name)
  if (value === null && key !== null) return { kind: 'filter', filter: testOf(key, name) }
  if (value === null && isArgumentTaken) return { kind: 'argument', name }
  // As in a request, a column without an operator means eq. A name with a dot is more likely a misspelt
  // operator.
  const isBare = value === null && !name.includes('.') && !GROUP_PARAMETERS.has(name)
  const equal = isBare ? readFilterKey(`${name}.eq`) : null
  if (equal !== null) return { kind: 'filter', filter: testOf(equal, name) }
  return refuse(
    `"${shorten(value === null ? name : `${name}=${value}`)}" is not part of a request shape; ` +
      'write a filter as column and operator without a value, e.g. status.eq',
  )
}

function readItem(item: string, shown: string): FilterTest {
  const key = readFilterKey(item)
  if (key !== null) return testOf(key, item)
  return refuse(
    `"${shorten(item)}" in "${shorten(shown)}" is not part of a request shape; write column.operator without a value`,
  )
}

/** The filter of a key. A flag without a value is set. */
function testOf(key: Pick<FilterTest, 'path' | 'operator' | 'negated'>, shown: string): FilterTest {
  return { kind: 'test', ...key, operand: '', shown }
}

function refuse(message: string): never {
  throw new GatewayError('PARSE_ERROR', message)
}
