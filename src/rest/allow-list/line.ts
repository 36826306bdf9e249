/**
 * Prints the line of a request (docs/guides/allow-list.md#requests): method, route and parameters without
 * values that are data, in canonical form, sorted by name and then by operator. Lines are printed from
 * requests, from lines of the list, and for the access log. No names are looked up.
 */
import type { QueryShape } from '../../access/list/pattern.ts'
import { GatewayError } from '../../errors.ts'
import { shorten } from '../../text/shorten.ts'
import { type ColumnPath, INDEX } from '../parameters/column-path.ts'
import { type FilterTest, type FilterTree, isFlagSet } from '../parameters/filter-notation.ts'
import { OPERAND_OF } from '../parameters/operators.ts'
import { filterOf, type OwnParameter, type RelatedParameter } from '../parameters/request-parameters.ts'
import { type ResourceRoute, ROUTE_PATTERN } from '../path.ts'
import { type DataRoute, isData, parametersIn, type WrittenRequest } from '../request.ts'

/** A parameter of a line. */
export type LineParameter =
  | { readonly kind: 'filter'; readonly filter: FilterTree }
  /** An argument of a function. */
  | { readonly kind: 'argument'; readonly name: string }
  /** A named parameter. A null value matches any value; an undefined one is never compared. */
  | { readonly kind: 'named'; readonly name: string; readonly value: string | null | undefined }
  /** A filter or the sort of an expanded relation; `path` leads to the relation. */
  | { readonly kind: 'related'; readonly path: readonly string[]; readonly parameter: LineParameter }

/**
 * The shape of a request.
 * @throws {GatewayError} `PARSE_ERROR` if its parameters cannot be read.
 */
export function printLine(written: WrittenRequest): QueryShape {
  return printParameters(written.method, written.route, [...parametersOf(written), ...headersOf(written)])
}

/** The shape of a request or of a line of the list, by which the two are compared. */
export function printParameters(method: string, route: DataRoute, parameters: readonly LineParameter[]): QueryShape {
  return joinParts(`${method} ${printRoute(route)}`, parameters.map(partOf))
}

/** Limit on the logged length of a masked path. */
const MASKED_MAX = 1_000

/**
 * The path and query of a request for the access log. Names and operators are kept; ids, filter values,
 * search terms, cursors and page numbers are removed. `written` is null if the request failed before its
 * parameters were read. An unreadable query string is omitted.
 */
export function maskedPath(route: ResourceRoute, written: WrittenRequest | null): string {
  return isData(route) ? shorten(maskedRequest(route, written), MASKED_MAX) : ROUTE_PATTERN[route.kind]
}

function maskedRequest(route: DataRoute, written: WrittenRequest | null): string {
  if (written === null || written.mistake !== null) return printRoute(route)
  try {
    const { line } = printParameters(written.method, route, parametersOf(written))
    return line().replace(/^\S+ /, '')
  } catch (error) {
    if (error instanceof GatewayError) return printRoute(route)
    throw error
  }
}

/** Parameters that choose the page and its format. They are not part of a request shape. */
export const PAGING_PARAMETERS: ReadonlySet<string> = new Set(['limit', 'offset', 'cursor', 'stream'])

/**
 * Parameters whose value is data. The values of other named parameters are names of columns, relations or
 * functions.
 */
export const DATA_PARAMETERS: ReadonlySet<string> = new Set(['search'])

function parametersOf(written: WrittenRequest): readonly LineParameter[] {
  const argumentsSeen = new Set<string>()
  return parametersIn(written).flatMap((parameter): readonly LineParameter[] => {
    const { name, value } = parameter
    if (parameter.kind === 'related') return relatedOf(parameter)
    if (parameter.kind === 'named') {
      return PAGING_PARAMETERS.has(name)
        ? []
        : [{ kind: 'named', name, value: DATA_PARAMETERS.has(name) ? undefined : value }]
    }
    if (!takesArguments(written) || !isArgument(parameter)) return [{ kind: 'filter', filter: filterOf(parameter) }]
    // An array argument can be repeated; the line lists it once.
    if (argumentsSeen.has(name)) return []
    argumentsSeen.add(name)
    return [{ kind: 'argument', name }]
  })
}

function relatedOf({ path, parameter }: RelatedParameter): readonly LineParameter[] {
  if (parameter.kind !== 'named') {
    return [{ kind: 'related', path, parameter: { kind: 'filter', filter: filterOf(parameter) } }]
  }
  return PAGING_PARAMETERS.has(parameter.name)
    ? []
    : [{ kind: 'related', path, parameter: named(parameter.name, parameter.value) }]
}

/**
 * Reports whether the query string also has arguments: in a GET of a function they are mixed with filters on
 * its rows.
 */
export function takesArguments({ method, route }: Pick<WrittenRequest, 'method' | 'route'>): boolean {
  return route.kind === 'rpc' && method === 'GET'
}

/**
 * Reports whether a parameter is an argument. A parameter in filter notation is a filter. The function
 * decides about other names, but the result never depends on the value.
 */
function isArgument(parameter: OwnParameter): boolean {
  if (parameter.kind !== 'filter') return true
  const { filter, name, value } = parameter
  return filter.kind === 'test' && filter.operand === value && filter.path.column === name
}

/** The header that makes an insert an upsert, as a line spells it. */
export const UPSERT = 'X-Upsert'
/** The header that names the conflict target, as a line spells it. */
export const ON_CONFLICT = 'X-On-Conflict'

/**
 * The headers that change the meaning of a request: an upsert changes existing rows, and a delete can return
 * the deleted rows.
 */
function headersOf({ method, route, headers, parameters }: WrittenRequest): readonly LineParameter[] {
  if (route.kind === 'rpc') return []
  const { upsert, target, prefer } = headers
  if (method === 'POST') {
    return [
      ...(upsert === undefined || upsert === 'false' ? [] : [named(UPSERT, upsert)]),
      ...(target === undefined ? [] : [named(ON_CONFLICT, target)]),
    ]
  }
  const wantsRows = method === 'DELETE' && prefer.returned === 'representation'
  return wantsRows && !parameters.some(({ name }) => name === 'returning') ? [named('returning', '*')] : []
}

function named(name: string, value: string): LineParameter {
  return { kind: 'named', name, value }
}

// ---- text -------------------------------------------------------------------------------------------------

/** Prints the path of a route with `{id}` for the id of a row. */
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

/** A printed parameter, without its value if that is data. */
interface Part {
  /** The key that parts are sorted by. */
  readonly name: string
  readonly text: string
  /** The value; null matches any value in a line, undefined is never compared. */
  readonly value: string | null | undefined
}

/**
 * Joins the method and route, `target`, with its sorted parameters. At most one part of each name can have a
 * value.
 */
function joinParts(target: string, parts: readonly Part[]): QueryShape {
  const sorted = [...parts].sort((a, b) => compare(a.name, b.name) || compare(a.text, b.text))
  const join = (texts: readonly string[]) => (texts.length === 0 ? target : `${target}?${texts.join('&')}`)
  return {
    key: join(sorted.map(({ text }) => text)),
    values: sorted.flatMap(({ value }) => (value === undefined ? [] : [value])),
    line: () =>
      join(sorted.map(({ text, value }) => (typeof value === 'string' ? `${text}=${encodeName(value)}` : text))),
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function partOf(parameter: LineParameter): Part {
  switch (parameter.kind) {
    case 'filter':
      return printFilter(parameter.filter)
    case 'argument':
      return { name: parameter.name, text: encodeName(parameter.name), value: undefined }
    case 'named':
      return valuePart(parameter.name, parameter.value)
    case 'related': {
      const path = parameter.path.map(name => `${encodeName(printName(name, false))}.`).join('')
      const part = partOf(parameter.parameter)
      return { ...part, name: path + part.name, text: path + part.text }
    }
  }
}

function valuePart(name: string, value: string | null | undefined): Part {
  return { name, text: encodeName(name), value: name === 'sort' && value ? canonicalSort(value) : value }
}

/** Writes `created_at:desc` as `-created_at`. Sorts with quotes or paths are unchanged. */
function canonicalSort(text: string): string {
  if (/"|->/.test(text)) return text
  return text
    .split(',')
    .map(item => item.replace(/^([^-:][^:]*):(asc|desc)$/, (_, column, way) => (way === 'asc' ? column : `-${column}`)))
    .join(',')
}

/** Prints `status.eq`, `total.not.in` or `or=(a.eq,and(b.gt,c.lt))`. */
function printFilter(filter: FilterTree): Part {
  if (filter.kind === 'test') {
    return { name: encodeName(printPath(filter.path)), text: encodeName(printTest(filter)), value: undefined }
  }
  return { name: filter.name, text: `${filter.name}=${encodeName(printItems(filter))}`, value: undefined }
}

function printItems({ items }: FilterTree & { kind: 'group' }): string {
  const texts = items.map(item => (item.kind === 'test' ? printTest(item) : `${item.name}${printItems(item)}`))
  return `(${texts.sort(compare).join(',')})`
}

function printTest(test: FilterTest): string {
  return `${printPath(test.path)}.${test.negated ? 'not.' : ''}${operatorOf(test)}`
}

/** The canonical name among operators with the same meaning. */
function operatorOf(test: FilterTest): string {
  const { operator } = test
  if (operator === 'neq') return 'ne'
  if (OPERAND_OF[operator] !== 'flag' || isFlagSet(test)) return operator
  return operator === 'is_null' ? 'is_not_null' : 'is_null'
}

function printPath({ column, steps }: ColumnPath): string {
  const keys = steps.map(
    ({ operator, key, index }) => operator + (index || !INDEX.test(key) ? printName(key, index) : quote(key)),
  )
  return printName(column, false) + keys.join('')
}

function printName(name: string, bare: boolean): string {
  return bare || PLAIN.test(name) ? name : quote(name)
}

function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** Matches names that need no quotes. */
const PLAIN = /^[\p{L}\p{N}_$]+$/u

/** Percent-encodes characters that would end a name, a parameter or a line, and invisible characters. */
function encodeName(name: string): string {
  // Most names contain none of them.
  return HARMLESS.test(name) ? name : name.replace(/[%#?&=+{}/\s\p{C}]/gu, encodeURIComponent)
}

const HARMLESS = /^[\w.,:<>()-]*$/
