/**
 * Converts the filters of a request (docs/reference/reading.md#filters) to conditions, and conditions to the
 * expression of a statement.
 *
 * Names are not checked and values have no types yet; `access/check` adds both. Every value becomes a
 * parameter.
 */
import { GatewayError } from '../../errors.ts'
import type { ComparisonOperator, Expression, Parameter } from '../../language/tree/ast.ts'
import { and, compare, inSet, isDistinct, isNull, like, not, or } from '../../language/tree/build.ts'
import { toArrayLiteral } from '../../text/array-text.ts'
import { shorten } from '../../text/shorten.ts'
import type { Values } from '../values.ts'
import { type BoundPath, buildPath, toPath } from './column-path.ts'
import { type FilterTest, type FilterTree, isFlagSet, refuseFilter } from './filter-notation.ts'
import { parseListItems } from './list-values.ts'
import { OPERAND_OF, type Operator } from './operators.ts'
import { filterOf, type WrittenParameter } from './request-parameters.ts'

/** Limits on the filters of one request. */
export interface FilterLimits {
  /** Limit on the conditions of one request (`max_filters`). */
  readonly maxFilters: number
  /** Limit on the values of one list (`max_in_values`). */
  readonly maxInValues: number
}

/** The number of filters of a request that have been parsed. */
export interface FilterCount {
  filters: number
}

/** A filter whose values are parameters. */
export type Condition =
  | {
      readonly kind: 'test'
      readonly path: BoundPath
      readonly operator: Operator
      readonly negated: boolean
      /** For an operator such as `is_null`: whether the operand sets or clears the flag. */
      readonly isFlagSet: boolean
      /** The operand; null for a flag operator. */
      readonly value: Parameter | null
    }
  | {
      readonly kind: 'group'
      /** One of `GROUP_PARAMETERS`. */
      readonly name: string
      /** The conditions; at least one. */
      readonly items: readonly Condition[]
    }

/**
 * Parses filters of a request and adds their values to `values`. `counted` is shared by all filters of the
 * request.
 * @throws {GatewayError} `PARSE_ERROR` for a malformed filter or an exceeded limit.
 */
export function parseFilters(
  parameters: readonly WrittenParameter[],
  values: Values,
  { maxFilters, maxInValues }: FilterLimits,
  counted: FilterCount = { filters: 0 },
): readonly Condition[] {
  function condition(filter: FilterTree): Condition {
    if (filter.kind === 'group') return { kind: 'group', name: filter.name, items: filter.items.map(condition) }
    counted.filters += 1
    if (counted.filters > maxFilters) {
      throw new GatewayError('PARSE_ERROR', `the request has more than ${maxFilters} filters (max_filters)`)
    }
    const { operator, negated } = filter
    const isFlag = OPERAND_OF[operator] === 'flag'
    const isSet = isFlag ? isFlagSet(filter) : true
    const path = toPath(filter.path, values)
    const value = isFlag ? null : values.add(operandOf(filter, maxInValues))
    return { kind: 'test', path, operator, negated, isFlagSet: isSet, value }
  }

  return parameters.map(parameter => condition(filterOf(parameter)))
}

function operandOf(test: FilterTest, maxInValues: number): string {
  if (OPERAND_OF[test.operator] === 'list') {
    // The elements form one array literal, so their number is not part of the request shape.
    return toArrayLiteral(parseListItems(test.operand, message => refuseFilter(test.shown, message), maxInValues))
  }
  return PATTERNS.has(test.operator) ? wildcards(test.operand) : test.operand
}

const PATTERNS: ReadonlySet<Operator> = new Set<Operator>(['like', 'ilike', 'not_like', 'not_ilike'])

/**
 * Builds the expression of all conditions; otherwise null. `alias` is the alias of the filtered
 * table, or null if names are unambiguous.
 */
export function buildFilter(conditions: readonly Condition[], alias: string | null): Expression | null {
  return conditions.length === 0 ? null : and(...conditions.map(item => buildCondition(item, alias)))
}

function buildCondition(condition: Condition, alias: string | null): Expression {
  if (condition.kind === 'test') {
    const left = buildPath(condition.path, alias)
    const test =
      condition.value === null ? flagged(condition, left) : compared(condition.operator, left, condition.value)
    return condition.negated ? not(test) : test
  }
  const items = condition.items.map(item => buildCondition(item, alias))
  const joined = condition.name.endsWith('or') ? or(...items) : and(...items)
  return condition.name.startsWith('not.') ? not(joined) : joined
}

function flagged({ operator, isFlagSet: isSet }: Condition & { readonly kind: 'test' }, left: Expression): Expression {
  return isNull(left, (operator === 'is_null') === isSet ? 'plain' : 'negated')
}

function compared(operator: Operator, left: Expression, value: Parameter): Expression {
  switch (operator) {
    case 'like':
    case 'ilike':
      return like(operator, left, value)
    case 'not_like':
      return like('like', left, value, 'negated')
    case 'not_ilike':
      return like('ilike', left, value, 'negated')
    case 'is_distinct':
      return isDistinct(left, value)
    case 'in':
      return inSet(left, value)
    case 'not_in':
      return inSet(left, value, 'negated')
    case 'is_null':
    case 'is_not_null':
      throw new Error(`${operator} has no value`)
    default:
      return compare(COMPARISON_OF[operator], left, value)
  }
}

const COMPARISON_OF = {
  ...{ eq: '=', ne: '<>', neq: '<>', gt: '>', gte: '>=', lt: '<', lte: '<=' },
  ...{ contains: '@>', contained: '<@', overlaps: '&&', match: 'regex', imatch: '~*', fts: '@@' },
} as const satisfies Partial<Record<Operator, ComparisonOperator>>

/**
 * Translates wildcards. `*` is the wildcard because `%` would have to be percent-encoded in a URL; an escaped
 * `*` is literal, as are `%` and `_`.
 */
function wildcards(pattern: string): string {
  // PostgreSQL reports a dangling escape only when it compares a text that begins like the pattern, so its
  // error would reveal data of rows that the caller cannot see.
  if (/(?<!\\)(?:\\\\)*\\$/.test(pattern)) {
    throw new GatewayError(
      'PARSE_ERROR',
      `the pattern "${shorten(pattern)}" ends with an incomplete escape; write \\\\ for a backslash`,
    )
  }
  return pattern.replace(/\\.|\*/gs, found => (found === '*' ? '%' : found))
}
