/**
 * Turns the filters of a query string into one condition (specification 4.2, 4.3; decisions 3).
 *
 * Names are not checked here and values are not typed: `access/check` does both. Every value becomes a parameter.
 */
import { GatewayError } from '../errors.ts'
import type { ComparisonOperator, Expression } from '../language/ast.ts'
import { and, compare, inSet, isDistinct, isNull, like, not, or } from '../language/build.ts'
import { shorten } from '../shorten.ts'
import { unreachable } from '../unreachable.ts'
import { type ColumnPath, parseColumnPath, pathExpression } from './column-path.ts'
import { parseListItems, toArrayLiteral } from './list-values.ts'
import { OPERAND_OF, type Operator, ORDERED, operatorNamed } from './operators.ts'
import type { QueryParameter } from './query-string.ts'
import type { Shape } from './shape.ts'

export interface FilterLimits {
  /** Conditions in one request. */
  readonly maxFilters: number
  /** Values in one list. */
  readonly maxInValues: number
}

/** Groups inside groups, as in `or=(a.eq.1,and(…))`. */
const GROUP_DEPTH_MAX = 16

/** Names that open a logic tree. */
export const GROUP_PARAMETERS: ReadonlySet<string> = new Set(['and', 'or', 'not.and', 'not.or'])

/** Null when there is no filter at all. */
export function parseFilters(
  parameters: readonly QueryParameter[],
  shape: Shape,
  limits: FilterLimits,
): Expression | null {
  const reader = new FilterReader(shape, limits)
  const conditions = parameters.map(parameter =>
    GROUP_PARAMETERS.has(parameter.name) ? reader.group(parameter) : reader.filter(parameter),
  )
  return conditions.length === 0 ? null : and(...conditions)
}

interface Test {
  readonly path: ColumnPath
  readonly operator: Operator
  readonly negated: boolean
  readonly operand: string
  /** The filter as sent, for errors. */
  readonly shown: string
}

class FilterReader {
  readonly #shape: Shape
  readonly #limits: FilterLimits
  #count = 0

  constructor(shape: Shape, limits: FilterLimits) {
    this.#shape = shape
    this.#limits = limits
  }

  /**
   *   filter      = key-style | value-style
   *   key-style   = column [ ".not" ] "." operator "=" value
   *   value-style = column "=" [ "not." ] operator [ "." value ] | column "=" value
   */
  filter({ name, value }: QueryParameter): Expression {
    const shown = `${name}=${value}`
    const dot = name.lastIndexOf('.')
    const keyOperator = dot < 0 ? undefined : operatorNamed(name.slice(dot + 1))
    if (keyOperator !== undefined) {
      const head = name.slice(0, dot)
      const negated = head.endsWith('.not')
      const path = parseColumnPath(negated ? head.slice(0, -4) : head)
      return this.#condition({ path, operator: keyOperator, negated, operand: value, shown })
    }
    const written = splitOperator(value)
    const path = parseColumnPath(name)
    if (written === null) return this.#condition({ path, operator: 'eq', negated: false, operand: value, shown })
    if (OPERAND_OF[written.operator] === 'list' && !isParenthesised(written.operand)) {
      fail(shown, `needs a list in parentheses; write ${written.operator}.(a,b)`)
    }
    if (ORDERED.has(written.operator) && written.operand === '') {
      fail(shown, `has no value; write ${name}=${written.operator}.18`)
    }
    return this.#condition({ path, ...written, shown })
  }

  /** `or=(…)`, `and=(…)`, `not.or=(…)`, `not.and=(…)`. */
  group({ name, value }: QueryParameter): Expression {
    const shown = `${name}=${value}`
    if (!isParenthesised(value)) fail(shown, `needs conditions in parentheses; write ${name}=(a.eq.1,b.gt.2)`)
    return this.#group(name, value.slice(1, -1), shown, 1)
  }

  #group(name: string, inner: string, shown: string, depth: number): Expression {
    if (depth > GROUP_DEPTH_MAX) fail(shown, `nests groups deeper than ${GROUP_DEPTH_MAX}`)
    this.#shape.add(`group ${name}`)
    const conditions = splitTopLevel(inner, shown).map(item => this.#item(item, shown, depth))
    this.#shape.add('end of group')
    if (conditions.length === 0) fail(shown, 'has an empty group; write at least one condition')
    const joined = name.endsWith('or') ? or(...conditions) : and(...conditions)
    return name.startsWith('not.') ? not(joined) : joined
  }

  /** `item = [ "not." ] ( "and" | "or" ) "(" … ")" | column "." [ "not." ] operator [ "." value ]` */
  #item(item: string, shown: string, depth: number): Expression {
    const opened = /^((?:not\.)?(?:and|or))\((.*)\)$/s.exec(item)
    if (opened?.[1] !== undefined && opened[2] !== undefined) return this.#group(opened[1], opened[2], shown, depth + 1)
    const dot = operatorDot(item)
    const written = dot < 0 ? null : splitOperator(item.slice(dot + 1))
    if (written === null) {
      fail(shown, `has "${shorten(item)}", which is no condition; write column.operator.value, e.g. status.eq.paid`)
    }
    if (OPERAND_OF[written.operator] === 'list' && !isParenthesised(written.operand)) {
      fail(shown, `needs a list in parentheses after ${written.operator}; write ${written.operator}.(a,b)`)
    }
    const quoted = OPERAND_OF[written.operator] === 'value' && isQuoted(written.operand)
    const operand = quoted ? unquote(written.operand) : written.operand
    return this.#condition({ path: parseColumnPath(item.slice(0, dot)), ...written, operand, shown })
  }

  #condition(test: Test): Expression {
    this.#count += 1
    if (this.#count > this.#limits.maxFilters) {
      throw new GatewayError(
        'PARSE_ERROR',
        `the request has more than ${this.#limits.maxFilters} filters (max_filters)`,
      )
    }
    const { path, operator, negated } = test
    const flag = OPERAND_OF[operator] === 'flag' ? parseFlag(test) : true
    this.#shape.add(`filter ${negated ? 'not.' : ''}${operator}${flag ? '' : '=false'}`)
    const condition = this.#apply(test, pathExpression(path, this.#shape), flag)
    return negated ? not(condition) : condition
  }

  #apply(test: Test, left: Expression, flag: boolean): Expression {
    const shape = this.#shape
    const value = (text: string) => shape.value(text)
    const comparison = (operator: ComparisonOperator) => compare(operator, left, value(test.operand))
    switch (test.operator) {
      case 'eq':
        return comparison('=')
      case 'ne':
      case 'neq':
        return comparison('<>')
      case 'gt':
        return comparison('>')
      case 'gte':
        return comparison('>=')
      case 'lt':
        return comparison('<')
      case 'lte':
        return comparison('<=')
      case 'contains':
        return comparison('@>')
      case 'contained':
        return comparison('<@')
      case 'overlaps':
        return comparison('&&')
      case 'match':
        return comparison('regex')
      case 'imatch':
        return comparison('~*')
      case 'fts':
        return comparison('@@')
      case 'like':
      case 'ilike':
        return like(test.operator, left, value(wildcards(test.operand)))
      case 'not_like':
        return like('like', left, value(wildcards(test.operand)), 'negated')
      case 'not_ilike':
        return like('ilike', left, value(wildcards(test.operand)), 'negated')
      case 'is_distinct':
        return isDistinct(left, value(test.operand))
      case 'is_null':
        return isNull(left, flag ? 'plain' : 'negated')
      case 'is_not_null':
        return isNull(left, flag ? 'negated' : 'plain')
      case 'in':
        return inSet(left, value(this.#list(test)))
      case 'not_in':
        return inSet(left, value(this.#list(test)), 'negated')
      default:
        return unreachable(test.operator)
    }
  }

  /** The elements as one array literal, so that their number is not part of the shape. */
  #list(test: Test): string {
    const items = parseListItems(test.operand, message => fail(test.shown, message))
    if (items.length > this.#limits.maxInValues) {
      fail(test.shown, `has ${items.length} values; at most ${this.#limits.maxInValues} are allowed (max_in_values)`)
    }
    return toArrayLiteral(items)
  }
}

interface Written {
  readonly operator: Operator
  readonly negated: boolean
  readonly operand: string
}

/** `gt.5`, `not.in.(a)`, `is_null`: null when the text does not begin with an operator and so is a literal. */
function splitOperator(text: string): Written | null {
  const negated = text.startsWith('not.')
  const rest = negated ? text.slice(4) : text
  const dot = rest.indexOf('.')
  const operator = operatorNamed(dot < 0 ? rest : rest.slice(0, dot))
  if (operator === undefined) return null
  if (dot < 0 && OPERAND_OF[operator] !== 'flag') return null
  return { operator, negated, operand: dot < 0 ? '' : rest.slice(dot + 1) }
}

/** The dot before the first part of `column.operator.value` that is an operator (or `not` before one); −1 if there is none. */
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
 * Splits at commas outside parentheses, braces, brackets and double quotes. Quotes count only at the beginning of a name or value, as in
 * `name.eq."a,b"`.
 */
function splitTopLevel(text: string, shown: string): readonly string[] {
  const items: string[] = []
  let depth = 0
  let start = 0
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (character === '"' && opensQuote(text, at)) {
      at = closingQuote(text, at)
      if (at < 0) fail(shown, 'has a double quote that is not closed')
    } else if (character === '(' || character === '{') depth += 1
    else if (character === ')' || character === '}') depth -= 1
    else if (character === ',' && depth === 0) {
      items.push(text.slice(start, at))
      start = at + 1
    }
    if (depth < 0) fail(shown, 'closes a parenthesis that was not opened')
  }
  if (depth > 0) fail(shown, 'opens a parenthesis that is not closed')
  if (text !== '') items.push(text.slice(start))
  return items
}

function opensQuote(text: string, at: number): boolean {
  return at === 0 || '.,({>'.includes(text[at - 1] ?? '')
}

/** Where the quote opened at `at` closes; inside, `\` takes the next character as it is. −1 if nowhere. */
function closingQuote(text: string, at: number): number {
  for (let i = at + 1; i < text.length; i++) {
    if (text[i] === '\\') i += 1
    else if (text[i] === '"') return i
  }
  return -1
}

function isParenthesised(text: string): boolean {
  return text.length >= 2 && text.startsWith('(') && text.endsWith(')')
}

function isQuoted(text: string): boolean {
  return text.length >= 2 && text.startsWith('"') && closingQuote(text, 0) === text.length - 1
}

function unquote(text: string): string {
  return text.slice(1, -1).replace(/\\(.)/gs, '$1')
}

function parseFlag(test: Test): boolean {
  if (test.operand === '' || test.operand === 'true') return true
  if (test.operand === 'false') return false
  fail(test.shown, `needs true or false after ${test.operator}`)
}

/** `*` is the wildcard of the URL, where `%` would have to be encoded. */
function wildcards(pattern: string): string {
  return pattern.replaceAll('*', '%')
}

function fail(shown: string, what: string): never {
  throw new GatewayError('PARSE_ERROR', `filter "${shorten(shown)}" ${what}`)
}
