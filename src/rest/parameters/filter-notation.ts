/**
 * Parses the filter notation of the query string (docs/reference/reading.md#filters) without looking up names
 * or converting values: which operator, on which column, with which operand.
 */
import { GatewayError } from '../../errors.ts'
import { shorten } from '../../text/shorten.ts'
import { type ColumnPath, parseColumnPath } from './column-path.ts'
import { OPERAND_OF, type Operator, operatorNamed } from './operators.ts'
import type { QueryParameter } from './query-string.ts'

/** Parameter names that contain a group of conditions. */
export const GROUP_PARAMETERS: ReadonlySet<string> = new Set(['and', 'or', 'not.and', 'not.or'])

/** Limit on groups nested in groups, as in `or=(a.eq.1,and(…))`. */
const GROUP_DEPTH_MAX = 16

/** A parsed filter: one condition or a group of them. */
export type FilterTree = FilterTest | ConditionGroup

/** One condition on one column. */
export interface FilterTest {
  readonly kind: 'test'
  readonly path: ColumnPath
  readonly operator: Operator
  readonly negated: boolean
  readonly operand: string
  /** The filter as sent, for error messages. */
  readonly shown: string
}

/** Conditions combined with `and` or `or`. */
export interface ConditionGroup {
  readonly kind: 'group'
  /** One of `GROUP_PARAMETERS`. */
  readonly name: string
  /** The conditions; at least one. */
  readonly items: readonly FilterTree[]
}

/**
 * Parses one parameter as a filter.
 * @throws {GatewayError} `PARSE_ERROR` if it is malformed.
 */
export function readFilter(parameter: QueryParameter): FilterTree {
  return GROUP_PARAMETERS.has(parameter.name) ? readGroupParameter(parameter) : readTest(parameter)
}

/**
 *   filter      = key-style | value-style
 *   key-style   = column [ ".not" ] "." operator "=" value
 *   value-style = column "=" [ "not." ] operator [ "." value ] | column "=" value
 */
function readTest({ name, value }: QueryParameter): FilterTest {
  const shown = `${name}=${value}`
  const key = readFilterKey(name)
  if (key !== null) return { kind: 'test', ...key, operand: value, shown }
  const written = splitOperator(value)
  const path = parseColumnPath(name)
  if (written === null) return { kind: 'test', path, operator: 'eq', negated: false, operand: value, shown }
  if (OPERAND_OF[written.operator] === 'list' && !isParenthesised(written.operand)) {
    refuseFilter(shown, `needs a list in parentheses; write ${written.operator}.(a,b)`)
  }
  return { kind: 'test', path, ...written, shown }
}

/**
 * Parses the key `column [ ".not" ] "." operator`. Null if the part after the last dot is not an operator.
 */
export function readFilterKey(key: string): Pick<FilterTest, 'path' | 'operator' | 'negated'> | null {
  const dot = key.lastIndexOf('.')
  const operator = dot < 0 ? undefined : operatorNamed(key.slice(dot + 1))
  if (operator === undefined) return null
  const head = key.slice(0, dot)
  const negated = head.endsWith('.not')
  return { path: parseColumnPath(negated ? head.slice(0, -4) : head), operator, negated }
}

/** Parses `or=(…)`, `and=(…)`, `not.or=(…)` or `not.and=(…)`. */
function readGroupParameter({ name, value }: QueryParameter): ConditionGroup {
  const shown = `${name}=${value}`
  if (!isParenthesised(value)) {
    refuseFilter(shown, `needs conditions in parentheses; write ${name}=(a.eq.1,b.gt.2)`)
  }
  return readGroup(name, value.slice(1, -1), shown, readCondition)
}

/** Parses the items of a group. Each item is another group or is parsed by `readItem`. */
export function readGroup(
  name: string,
  inner: string,
  shown: string,
  readItem: (item: string, shown: string) => FilterTest,
  depth = 1,
): ConditionGroup {
  if (depth > GROUP_DEPTH_MAX) refuseFilter(shown, `nests groups deeper than ${GROUP_DEPTH_MAX}`)
  const items = splitTopLevel(inner, shown).map(item => {
    const opened = GROUP_ITEM.exec(item)
    if (opened?.[1] === undefined || opened[2] === undefined) return readItem(item, shown)
    return readGroup(opened[1], opened[2], shown, readItem, depth + 1)
  })
  if (items.length === 0) refuseFilter(shown, 'has an empty group; write at least one condition')
  return { kind: 'group', name, items }
}

/** `item = [ "not." ] ( "and" | "or" ) "(" … ")" | condition` */
const GROUP_ITEM = /^((?:not\.)?(?:and|or))\((.*)\)$/s

/** `condition = column "." [ "not." ] operator [ "." value ]` */
function readCondition(item: string, shown: string): FilterTest {
  const dot = operatorDot(item)
  const written = dot < 0 ? null : splitOperator(item.slice(dot + 1))
  if (written === null) {
    refuseFilter(
      shown,
      `has "${shorten(item)}", which is not a condition; write column.operator.value, e.g. status.eq.paid`,
    )
  }
  if (OPERAND_OF[written.operator] === 'list' && !isParenthesised(written.operand)) {
    refuseFilter(shown, `needs a list in parentheses after ${written.operator}; write ${written.operator}.(a,b)`)
  }
  const quoted = OPERAND_OF[written.operator] === 'value' && isQuoted(written.operand)
  const operand = quoted ? unquote(written.operand) : written.operand
  return { kind: 'test', path: parseColumnPath(item.slice(0, dot)), ...written, operand, shown }
}

interface Written {
  readonly operator: Operator
  readonly negated: boolean
  readonly operand: string
}

/**
 * Parses `gt.5`, `not.in.(a)` or `is_null`. Null if the text does not begin with an operator and is therefore
 * a literal.
 */
function splitOperator(text: string): Written | null {
  const negated = text.startsWith('not.')
  const rest = negated ? text.slice(4) : text
  const dot = rest.indexOf('.')
  const operator = operatorNamed(dot < 0 ? rest : rest.slice(0, dot))
  if (operator === undefined) return null
  if (dot < 0 && OPERAND_OF[operator] !== 'flag') return null
  return { operator, negated, operand: dot < 0 ? '' : rest.slice(dot + 1) }
}

/**
 * The position of the dot before the first part of `column.operator.value` that is an operator, or `not`
 * before an operator; otherwise −1.
 */
function operatorDot(item: string): number {
  let at = 0
  if (item.startsWith('"')) {
    do at = item.indexOf('"', at + 1) + 1 || item.length
    while (item[at] === '"')
  }
  for (let dot = item.indexOf('.', at); dot >= 0; dot = item.indexOf('.', dot + 1)) {
    const end = item.slice(dot + 1).search(/[.]|$/)
    const word = item.slice(dot + 1, dot + 1 + end)
    if (operatorNamed(word) !== undefined || word === 'not') return dot
  }
  return -1
}

/**
 * Splits at commas outside parentheses, braces, brackets and double quotes. A quote is significant only at
 * the beginning of a name or value, as in `name.eq."a,b"`.
 */
function splitTopLevel(text: string, shown: string): readonly string[] {
  const items: string[] = []
  let depth = 0
  let start = 0
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (character === '"' && opensQuote(text, at)) {
      at = closingQuote(text, at)
      // Two double quotes inside a quoted name represent one.
      while (at >= 0 && text[at + 1] === '"') at = closingQuote(text, at + 1)
      if (at < 0) refuseFilter(shown, 'has a double quote that is not closed')
    } else if (character === '(' || character === '{') depth += 1
    else if (character === ')' || character === '}') depth -= 1
    else if (character === ',' && depth === 0) {
      items.push(text.slice(start, at))
      start = at + 1
    }
    if (depth < 0) refuseFilter(shown, 'closes a parenthesis that was not opened')
  }
  if (depth > 0) refuseFilter(shown, 'opens a parenthesis that is not closed')
  if (text !== '') items.push(text.slice(start))
  return items
}

function opensQuote(text: string, at: number): boolean {
  return at === 0 || '.,({>'.includes(text[at - 1] ?? '')
}

/**
 * The position of the quote that closes the one at `at`; otherwise −1. A backslash escapes the next
 * character.
 */
function closingQuote(text: string, at: number): number {
  for (let i = at + 1; i < text.length; i++) {
    if (text[i] === '\\') i += 1
    else if (text[i] === '"') return i
  }
  return -1
}

/** Reports whether a text is enclosed in parentheses. */
export function isParenthesised(text: string): boolean {
  return text.length >= 2 && text.startsWith('(') && text.endsWith(')')
}

function isQuoted(text: string): boolean {
  return text.length >= 2 && text.startsWith('"') && closingQuote(text, 0) === text.length - 1
}

function unquote(text: string): string {
  return text.slice(1, -1).replace(/\\(.)/gs, '$1')
}

/**
 * Reports whether a flag such as `is_null` is set. A flag without a value is set.
 * @throws {GatewayError} `PARSE_ERROR` for a value other than true or false.
 */
export function isFlagSet(test: FilterTest): boolean {
  if (test.operand === '' || test.operand === 'true') return true
  if (test.operand === 'false') return false
  refuseFilter(test.shown, `needs true or false after ${test.operator}`)
}

/** Throws the error of a filter, which quotes the filter. */
export function refuseFilter(shown: string, what: string): never {
  throw new GatewayError('PARSE_ERROR', `filter "${shorten(shown)}" ${what}`)
}
