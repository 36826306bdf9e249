/**
 * Parses the query string into a tree of levels: the relation itself, and below it the relations that
 * `select` embeds, each with its columns, filters, order and range. No name is looked up here.
 */
import { decodeLenient } from './decode.ts'
import { invalidParameter, notEmbedded } from './errors.ts'
import { type GrammarError, parseText, type TextParser } from './grammar/combinators.ts'
import {
  beginsWithOperator,
  type LogicTree,
  logicPath,
  logicTree,
  operation,
  simpleOperation,
  simpleOperatorLength,
} from './grammar/filter.ts'
import { columnList, treePath } from './grammar/names.ts'
import { type OrderTerm, orderTerms } from './grammar/order.ts'
import { type SelectedField, type SelectedRelation, type Selection, selection } from './grammar/select.ts'
import { createKept, KEPT_CHARACTERS_MAX, type Keep } from './kept.ts'
import type { RowRange } from './range.ts'
import { rangeOf } from './range.ts'

/** The relation of a request, or an embedded one. */
export interface Level {
  /** How it is embedded; null for the relation of the request. */
  readonly embedding: SelectedRelation | null
  readonly fields: readonly SelectedField[]
  readonly embedded: readonly Level[]
  readonly where: readonly LogicTree[]
  readonly order: readonly OrderTerm[]
  readonly range: RowRange
}

/** A relation that has an alias, and the name that a parameter has used in place of it. */
export interface LegacyName {
  readonly name: string
  readonly alias: string
}

/** Shared by requests whose parameters differ only in the values of usual filters, such as `id=eq.`. */
export interface SharedParameters {
  /** With the values of the first of these requests. */
  readonly root: Level
  /** Parameters that are not filters, for functions. */
  readonly arguments: readonly (readonly [name: string, value: string])[]
  readonly columns: readonly string[] | null
  readonly onConflict: readonly string[] | null
  /** Aliased relations that parameters name by their own name. */
  readonly legacyNames: readonly LegacyName[]
  /** The positions in `root.where` of the filters whose values differ. */
  readonly positions: readonly number[]
}

/** The parameters of a request. Parts that most requests do not need are made when they are read. */
export class QueryParameters {
  readonly shared: SharedParameters
  /** The values of usual filters, in the order of `shared.positions`. */
  readonly operands: readonly string[]
  readonly #sorted: QueryShape['sorted']
  #root: Level | null = null

  constructor({ shared, sorted }: Omit<QueryShape, 'parts'>, operands: readonly string[]) {
    this.shared = shared
    this.operands = operands
    this.#sorted = sorted
  }

  get root(): Level {
    const { shared, operands } = this
    this.#root ??= operands.length === 0 ? shared.root : { ...shared.root, where: whereWith(shared, operands) }
    return this.#root
  }

  get range(): RowRange {
    return this.shared.root.range
  }

  /** All parameters, sorted and encoded, for `Content-Location`. */
  get canonical(): string {
    let printed = ''
    for (const { encoded, operand } of this.#sorted) {
      printed += `${printed === '' ? '' : '&'}${encoded}${operand === null ? '' : encode(this.operands[operand] ?? '')}`
    }
    return printed
  }
}

/** Shared by requests with the same parameters. */
interface QueryShape {
  readonly shared: SharedParameters
  readonly parts: readonly QueryPart[]
  /** By name; none for functions, whose responses have no `Content-Location`. */
  readonly sorted: readonly QueryPart[]
}

/** A parameter, up to the value if it is that of a usual filter. */
interface QueryPart {
  readonly name: string
  readonly text: string
  readonly encoded: string
  /** The index of the value; null for none. */
  readonly operand: number | null
}

/** Limits on the parameters of one request. */
export interface ParameterLimits {
  /** Limit on the parameters of a query string (`max_query_parameters`); 0 means no limit. */
  readonly maxQueryParameters: number
  /** Limit on the conditions of one request (`max_filters`). */
  readonly maxFilters: number
  /** Limit on the values of one list (`max_in_values`). */
  readonly maxInValues: number
  /** Limit on the levels of embedded relations (`max_expand_depth`). */
  readonly maxExpandDepth: number
  /** True if parameters can name an aliased relation by its own name as well. */
  readonly legacyTargetNames?: boolean
}

/** Limit on the nesting of parentheses, which bounds the recursion of the parsers. */
const NESTING_MAX = 64

/** Parameters that are not filters, at every level. */
const AT_EACH_LEVEL: ReadonlySet<string> = new Set(['order', 'limit', 'offset', 'and', 'or'])

/** Parameters of the whole request. */
const OF_REQUEST: ReadonlySet<string> = new Set(['select', 'columns', 'on_conflict'])

/** The shape of the last query, if its text is the same decoded. */
export interface QuerySlot {
  query: QueryShape | null
}

/**
 * Parses a query string. `hasArguments`: parameters that are not filters are arguments of a function. `slot`
 * is kept by the caller for a later query with the same limits.
 * @throws {PostgrestError} `PGRST100` for a parameter that does not parse, `PGRST108` for one of a relation
 * that is not embedded.
 */
export function parseQueryParameters(
  query: string,
  hasArguments: boolean,
  limits: ParameterLimits,
  slot: QuerySlot = { query: null },
): QueryParameters {
  // The arguments of a function have no operator, so they are not told from filters by their text alone.
  if (hasArguments) {
    const pairs = splitQuery(query, limits.maxQueryParameters)
    return new QueryParameters({ shared: parsePairs(pairs, true, limits), sorted: [] }, [])
  }
  const last = slot.query
  const known = last === null ? null : operandsLike(last, query)
  if (last !== null && known !== null) return new QueryParameters(last, known)
  const pairs = splitQuery(query, limits.maxQueryParameters)
  const { key, operands, parts } = shapeOf(pairs)
  const shape = keptShapes(limits)(key, () => {
    return { shared: parsePairs(pairs, false, limits), parts, sorted: parts.toSorted(byName) }
  })
  slot.query = isRepeatable(query) ? shape : null
  return new QueryParameters(shape, operands)
}

/** Texts that decoding changes or refuses. */
const ENCODED = /[%+\0]/

function isRepeatable(query: string): boolean {
  return query.length <= KEPT_CHARACTERS_MAX && !ENCODED.test(query) && !/^&|&&|&$/.test(query)
}

/** The values of a query that differs from another one in nothing else; null for any other query. */
function operandsLike({ parts }: QueryShape, query: string): readonly string[] | null {
  const operands: string[] = []
  let at = parts.length === 0 ? 1 : 0
  for (const { text, operand } of parts) {
    if (!query.startsWith(text, at)) return null
    const start = at + text.length
    const found = operand === null ? start : query.indexOf('&', start)
    const end = found < 0 ? query.length : found
    if (end < query.length && query[end] !== '&') return null
    if (operand !== null) operands.push(query.slice(start, end))
    at = end + 1
  }
  return at === query.length + 1 && !ENCODED.test(query) ? operands : null
}

const shapesByLimits = new WeakMap<ParameterLimits, Keep<QueryShape>>()

/** Parameters of a shape were within the limits when it was kept, so the shapes belong to them. */
function keptShapes(limits: ParameterLimits): Keep<QueryShape> {
  const found = shapesByLimits.get(limits)
  if (found !== undefined) return found
  const made = createKept<QueryShape>()
  shapesByLimits.set(limits, made)
  return made
}

/** A name that is a column of the relation itself. */
const COLUMN_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

/** Reports whether a parameter is a filter on a column of the relation itself, with a usual operator. */
function operatorLength(name: string, value: string): number {
  if (OF_REQUEST.has(name) || AT_EACH_LEVEL.has(name) || !COLUMN_NAME.test(name)) return 0
  return simpleOperatorLength(value)
}

/** Names and values contain no NUL, so different shapes have different keys. */
function shapeOf(pairs: readonly Pair[]): Pick<QueryShape, 'parts'> & { key: string; operands: readonly string[] } {
  const operands: string[] = []
  let key = ''
  const parts = pairs.map(([name, value]): QueryPart => {
    const length = value === null ? 0 : operatorLength(name, value)
    const isFilter = value !== null && length > 0
    const written = isFilter ? value.slice(0, length) : value
    key += written === null ? `name\0${name}\0` : `${isFilter ? 'filter' : 'whole'}\0${name}\0${written}\0`
    const text = written === null ? name : `${name}=${written}`
    const encoded = `${encode(name)}=${encode(written ?? '')}`
    return { name, text, encoded, operand: isFilter ? operands.push(value.slice(length)) - 1 : null }
  })
  return { key, operands, parts }
}

function byName({ name: a }: QueryPart, { name: b }: QueryPart): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function whereWith({ root, positions }: SharedParameters, operands: readonly string[]): readonly LogicTree[] {
  const where = [...root.where]
  for (const [index, at] of positions.entries()) {
    const filter = where[at]
    const value = operands[index]
    if (filter?.kind !== 'filter' || value === undefined) throw new Error('a filter of the shape has no value')
    const { test } = filter
    if (test.kind !== 'quantified' && test.kind !== 'simple') throw new Error(`${test.kind} is not a usual filter`)
    where[at] = { ...filter, test: { ...test, value } }
  }
  return where
}

function parsePairs(pairs: readonly Pair[], hasArguments: boolean, limits: ParameterLimits): SharedParameters {
  const given = pairs.flatMap(([name, value]) => (value === null ? [] : [[name, value] as const]))
  const single = (wanted: string): string | undefined => given.find(([name]) => name === wanted)?.[1]
  const select = single('select')
  const columns = single('columns')
  const onConflict = single('on_conflict')
  const levels = new LevelBuilder(parseShape(selection, select || '*', 'select parameter'), limits)
  const passed: (readonly [string, string])[] = []
  const positions: number[] = []
  for (const [name, value] of given) {
    if (OF_REQUEST.has(name)) continue
    const last = name.slice(name.lastIndexOf('.') + 1)
    if (AT_EACH_LEVEL.has(last)) levels.addPart(name, last, value)
    else if (hasArguments && !name.includes('.') && !beginsWithOperator(value)) passed.push([name, value])
    else {
      if (operatorLength(name, value) > 0) positions.push(levels.conditions)
      levels.addFilter(name, value)
    }
  }
  return {
    root: levels.finish(),
    arguments: passed,
    columns: columns === undefined ? null : [...new Set(parseShape(columnList, columns, 'columns parameter'))],
    onConflict: onConflict === undefined ? null : parseShape(columnList, onConflict, 'on_conflict parameter'),
    legacyNames: levels.legacyNames,
    positions,
  }
}

type Pair = readonly [name: string, value: string | null]

function splitQuery(query: string, max: number): readonly Pair[] {
  if (query === '') return []
  const parts = query.split('&').filter(part => part !== '')
  if (max > 0 && parts.length > max) {
    throw invalidParameter(`the query string has more than ${max} parameters (max_query_parameters)`, null)
  }
  return parts.map(part => {
    const equals = part.indexOf('=')
    return equals < 0
      ? [decodeLenient(part), null]
      : [decodeLenient(part.slice(0, equals)), decodeLenient(part.slice(equals + 1))]
  })
}

/** A text that is the same encoded. */
const UNRESERVED = /^[\w.~-]*$/

function encode(text: string): string {
  if (UNRESERVED.test(text)) return text
  return encodeURIComponent(text).replace(/[!'()*]/g, found => `%${found.charCodeAt(0).toString(16).toUpperCase()}`)
}

const keep = createKept<object>()

/** Parses a text without values, whose result is cached for later requests. */
function parseShape<T extends object>(parser: TextParser<T>, text: string, what: string): T {
  // The name of the parameter decides its parser, so the result has the type of the parser.
  return keep(`${what}\0${text}`, () => parse(parser, text, what)) as T
}

/** Parses one parameter; `what` names it in the error. */
function parse<T>(parser: TextParser<T>, text: string, what: string, shown: string = text): T {
  assertNesting(text, what)
  const parsed = parseText(parser, text)
  if ('value' in parsed) return parsed.value
  throw invalidParameter(printPlace(`failed to parse ${what} (${shown})`, parsed), parsed.details)
}

function printPlace(what: string, { line, column }: GrammarError): string {
  return `"${what}" (line ${line}, column ${column})`
}

function assertNesting(text: string, what: string): void {
  let depth = 0
  for (const found of text) {
    if (found === '(') depth += 1
    else if (found === ')') depth -= 1
    if (depth > NESTING_MAX) throw invalidParameter(`the ${what} is nested more than ${NESTING_MAX} levels deep`, null)
  }
}

// ---- levels -----------------------------------------------------------------------------------------------

interface OpenLevel {
  readonly embedding: SelectedRelation | null
  readonly fields: readonly SelectedField[]
  readonly embedded: readonly OpenLevel[]
  readonly where: LogicTree[]
  order: readonly OrderTerm[]
  limit: string | null
  offset: string | null
}

/** Sorts the parameters into the levels of `select`. */
class LevelBuilder {
  readonly #root: OpenLevel
  readonly #limits: ParameterLimits
  readonly #legacyNames = new Map<string, LegacyName>()
  #filters = 0

  constructor(select: Selection, limits: ParameterLimits) {
    this.#limits = limits
    this.#root = this.#open(select, null, 0)
  }

  #open(select: Selection, embedding: SelectedRelation | null, depth: number): OpenLevel {
    const { maxExpandDepth } = this.#limits
    if (depth > maxExpandDepth) {
      throw invalidParameter(`select embeds more than ${maxExpandDepth} levels (max_expand_depth)`, null)
    }
    return {
      embedding,
      fields: select.filter(member => member.kind === 'field'),
      embedded: select.flatMap(member =>
        member.kind === 'relation' ? [this.#open(member.select, member, depth + 1)] : [],
      ),
      ...{ where: [], order: [], limit: null, offset: null },
    }
  }

  /** The number of conditions on the relation itself. */
  get conditions(): number {
    return this.#root.where.length
  }

  /** Aliased relations that parameters have named by their own name. */
  get legacyNames(): readonly LegacyName[] {
    return [...this.#legacyNames.values()]
  }

  /** `order`, `limit`, `offset`, `and` or `or`, of the relation itself or of an embedded one. */
  addPart(name: string, part: string, value: string): void {
    if (part === 'and' || part === 'or') {
      this.#addLogic(name, value)
      return
    }
    const { path } = parseShape(treePath, name, 'tree path')
    const level = this.#at(path)
    if (part === 'order') level.order = parseShape(orderTerms, value, 'order')
    else if (part === 'limit') level.limit ??= value
    else level.offset ??= value
  }

  #addLogic(name: string, value: string): void {
    const { path, operator } = parseShape(logicPath, name, 'logic path')
    const tree = parse(logicTree, operator + value, 'logic tree', value)
    this.#count(tree)
    this.#at(path).where.push(tree)
  }

  addFilter(name: string, value: string): void {
    const { path, field } = parseShape(treePath, name, 'tree path')
    const filter: LogicTree = {
      kind: 'filter',
      field,
      ...(simpleOperation(value) ?? parse(operation, value, 'filter')),
    }
    this.#count(filter)
    this.#at(path).where.push(filter)
  }

  #count(tree: LogicTree): void {
    if (tree.kind === 'group') {
      for (const item of tree.items) this.#count(item)
      return
    }
    const { maxFilters, maxInValues } = this.#limits
    this.#filters += 1
    if (this.#filters > maxFilters)
      throw invalidParameter(`the request has more than ${maxFilters} filters (max_filters)`, null)
    if (tree.test.kind === 'in' && tree.test.values.length > maxInValues) {
      throw invalidParameter(`a list has more than ${maxInValues} values (max_in_values)`, null)
    }
  }

  #at(path: readonly string[]): OpenLevel {
    let level = this.#root
    for (const name of path) {
      const named = level.embedded.find(({ embedding }) => (embedding?.alias ?? embedding?.name) === name)
      const aliased = level.embedded.find(({ embedding }) => embedding?.name === name)
      const below = named ?? (this.#limits.legacyTargetNames === true ? aliased : undefined)
      const alias = aliased?.embedding?.alias ?? null
      if (below === undefined) throw notEmbedded(name, alias)
      if (named === undefined && alias !== null) this.#legacyNames.set(name, { name, alias })
      level = below
    }
    return level
  }

  finish(): Level {
    return close(this.#root)
  }
}

function close({ limit, offset, embedded, ...level }: OpenLevel): Level {
  return { ...level, embedded: embedded.map(close), range: rangeOf(limit, offset) }
}
