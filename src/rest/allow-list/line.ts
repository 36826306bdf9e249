/**
 * The line of a request (docs/guides/allow-list.md#requests): method, route and parameters without the values that are data, its parts in canonical form, sorted by
 * name and then by operator. Printed of requests as they were written, of lines of the list, and for the access log. No names are looked up.
 */
import type { QueryShape } from '../../access/list/pattern.ts'
import { GatewayError } from '../../errors.ts'
import { shorten } from '../../text/shorten.ts'
import { type ColumnPath, INDEX } from '../parameters/column-path.ts'
import { type Filter, isFlagSet, type Test } from '../parameters/filter-notation.ts'
import { OPERAND_OF } from '../parameters/operators.ts'
import { filterOf, type WrittenParameter } from '../parameters/written.ts'
import { ROUTE_PATTERN, type Route } from '../path.ts'
import { type DataRoute, isData, parametersIn, type WrittenRequest } from '../request.ts'

/** A parameter of a line. */
export type LineParameter =
  | { readonly kind: 'filter'; readonly filter: Filter }
  /** An argument of a function. */
  | { readonly kind: 'argument'; readonly name: string }
  /** `value`: null stands for any; undefined where no value is ever compared. */
  | { readonly kind: 'named'; readonly name: string; readonly value: string | null | undefined }

/** Throws for a request whose parameters cannot be read. */
export function printLine(written: WrittenRequest): QueryShape {
  return printParameters(written.method, written.route, [...parametersOf(written), ...headersOf(written)])
}

/** What approves: of a request, or of a line that was written. */
export function printParameters(method: string, route: DataRoute, parameters: readonly LineParameter[]): QueryShape {
  return joinParts(`${method} ${printRoute(route)}`, parameters.map(partOf))
}

/** Characters of a masked path that are logged. */
const MASKED_MAX = 1_000

/**
 * The path and query of a request for the access log: names and operators stay; ids, filter values, search terms, cursors and page numbers do not. `written`: null
 * where the request came to nothing before it was read. A query string that cannot be read is left out.
 */
export function maskedPath(route: Route, written: WrittenRequest | null): string {
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

/** Which page, and how it is sent, is no part of a shape. */
export const LEFT_OUT: ReadonlySet<string> = new Set(['limit', 'offset', 'cursor', 'stream'])

/** Of these the value is data; of the other parameters it names columns, relations or functions. */
export const VALUES: ReadonlySet<string> = new Set(['search'])

function parametersOf(written: WrittenRequest): readonly LineParameter[] {
  const argumentsSeen = new Set<string>()
  return parametersIn(written).flatMap((parameter): readonly LineParameter[] => {
    const { name, value } = parameter
    if (parameter.kind === 'named') {
      return LEFT_OUT.has(name) ? [] : [{ kind: 'named', name, value: VALUES.has(name) ? undefined : value }]
    }
    if (!takesArguments(written) || !isArgument(parameter)) return [{ kind: 'filter', filter: filterOf(parameter) }]
    // An array is its argument several times.
    if (argumentsSeen.has(name)) return []
    argumentsSeen.add(name)
    return [{ kind: 'argument', name }]
  })
}

/** In a GET the arguments of a function stand among the filters of its rows. */
export function takesArguments({ method, route }: Pick<WrittenRequest, 'method' | 'route'>): boolean {
  return route.kind === 'rpc' && method === 'GET'
}

/** What is written as a filter is one; which other names are arguments is for the function to say, and the same for every value. */
function isArgument(parameter: WrittenParameter): boolean {
  if (parameter.kind !== 'filter') return true
  const { filter, name, value } = parameter
  return filter.kind === 'test' && filter.operand === value && filter.path.column === name
}

export const UPSERT = 'X-Upsert'
export const ON_CONFLICT = 'X-On-Conflict'

/** Headers that make another query of it: an upsert changes rows that are there, and a deletion can be asked for the rows. */
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

// ---- text --------------------------------------------------------------------------------------------------

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

/** A parameter without its value, if that is data. */
interface Part {
  /** To sort by. */
  readonly name: string
  readonly text: string
  /** What it names; null: anything, in a line. Undefined for parts of which no value is ever compared. */
  readonly value: string | null | undefined
}

/** `target`: method and route. At most one part of a name may have a value. */
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
  }
}

function valuePart(name: string, value: string | null | undefined): Part {
  return { name, text: encodeName(name), value: name === 'sort' && value ? canonicalSort(value) : value }
}

/** `created_at:desc` is `-created_at`. What has quotes or paths stays as it is written. */
function canonicalSort(text: string): string {
  if (/"|->/.test(text)) return text
  return text
    .split(',')
    .map(item => item.replace(/^([^-:][^:]*):(asc|desc)$/, (_, column, way) => (way === 'asc' ? column : `-${column}`)))
    .join(',')
}

/** `status.eq`, `total.not.in`, `or=(a.eq,and(b.gt,c.lt))`. */
function printFilter(filter: Filter): Part {
  if (filter.kind === 'test') {
    return { name: encodeName(printPath(filter.path)), text: encodeName(printTest(filter)), value: undefined }
  }
  return { name: filter.name, text: `${filter.name}=${encodeName(printItems(filter))}`, value: undefined }
}

function printItems({ items }: Filter & { kind: 'group' }): string {
  const texts = items.map(item => (item.kind === 'test' ? printTest(item) : `${item.name}${printItems(item)}`))
  return `(${texts.sort(compare).join(',')})`
}

function printTest(test: Test): string {
  return `${printPath(test.path)}.${test.negated ? 'not.' : ''}${operatorOf(test)}`
}

/** One name for each meaning. */
function operatorOf(test: Test): string {
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

/** Names that mean themselves wherever they stand. */
const PLAIN = /^[\p{L}\p{N}_$]+$/u

/** What would end a name, a parameter or a line, and what nobody sees, is percent-encoded. */
function encodeName(name: string): string {
  // Nearly every name has nothing of that.
  return HARMLESS.test(name) ? name : name.replace(/[%#?&=+{}/\s\p{C}]/gu, encodeURIComponent)
}

const HARMLESS = /^[\w.,:<>()-]*$/
