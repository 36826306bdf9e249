/**
 * Turns the filters of a query string (docs/reference/reading.md#filters) into one condition.
 *
 * Names are not checked here and values are not typed: `access/check` does both. Every value becomes a parameter.
 */
import { GatewayError } from '../../errors.ts'
import type { ComparisonOperator, Expression } from '../../language/tree/ast.ts'
import { and, compare, inSet, isDistinct, isNull, like, not, or } from '../../language/tree/build.ts'
import { shorten } from '../../text/shorten.ts'
import { unreachable } from '../../unreachable.ts'
import type { Shape } from '../shape.ts'
import { pathExpression } from './column-path.ts'
import { type Filter, type Group, isFlagSet, readFilter, refuseFilter, type Test } from './filter-notation.ts'
import { parseListItems, toArrayLiteral } from './list-values.ts'
import { OPERAND_OF } from './operators.ts'
import type { QueryParameter } from './query-string.ts'

export interface FilterLimits {
  /** Conditions in one request. */
  readonly maxFilters: number
  /** Values in one list. */
  readonly maxInValues: number
}

/** Null when there is no filter at all. */
export function parseFilters(
  parameters: readonly QueryParameter[],
  shape: Shape,
  limits: FilterLimits,
): Expression | null {
  const builder = new ConditionBuilder(shape, limits)
  const conditions = parameters.map(parameter => builder.condition(readFilter(parameter)))
  return conditions.length === 0 ? null : and(...conditions)
}

class ConditionBuilder {
  readonly #shape: Shape
  readonly #limits: FilterLimits
  #count = 0

  constructor(shape: Shape, limits: FilterLimits) {
    this.#shape = shape
    this.#limits = limits
  }

  condition(filter: Filter): Expression {
    return filter.kind === 'group' ? this.#group(filter) : this.#test(filter)
  }

  #group({ name, items }: Group): Expression {
    this.#shape.add(`group ${name}`)
    const conditions = items.map(item => this.condition(item))
    this.#shape.add('end of group')
    const joined = name.endsWith('or') ? or(...conditions) : and(...conditions)
    return name.startsWith('not.') ? not(joined) : joined
  }

  #test(test: Test): Expression {
    this.#count += 1
    if (this.#count > this.#limits.maxFilters) {
      throw new GatewayError(
        'PARSE_ERROR',
        `the request has more than ${this.#limits.maxFilters} filters (max_filters)`,
      )
    }
    const { path, operator, negated } = test
    const flag = OPERAND_OF[operator] === 'flag' ? isFlagSet(test) : true
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
    const fail = (message: string) => refuseFilter(test.shown, message)
    return toArrayLiteral(parseListItems(test.operand, fail, this.#limits.maxInValues))
  }
}

/** `*` is the wildcard of the URL, where `%` would have to be encoded; escaped it is itself, as `%` and `_` are. */
function wildcards(pattern: string): string {
  // PostgreSQL notices only when it compares a text that begins like the pattern: its error would tell of rows that are nobody's business.
  if (/(?<!\\)(?:\\\\)*\\$/.test(pattern)) {
    throw new GatewayError(
      'PARSE_ERROR',
      `the pattern "${shorten(pattern)}" ends in an escape for nothing; write \\\\ for a backslash`,
    )
  }
  return pattern.replace(/\\.|\*/gs, found => (found === '*' ? '%' : found))
}
