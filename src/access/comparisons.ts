/** Comparisons: if one of the two operands is a parameter, it takes the type of the other. */
import type { Comparison, Expression, PatternMatch } from '../language/tree/ast.ts'
import { call, cast, compare, text } from '../language/tree/build.ts'
import { isParameter } from './parameters.ts'
import type { PatternOperator } from './patterns.ts'
import type { AccessScope } from './scope.ts'
import {
  comparable,
  isJsonValue,
  refuseIncomparable,
  refuseScalar,
  refuseUncountable,
  refuseUnsearchable,
  type Typed,
  UNKNOWN,
} from './typed.ts'
import { baseOf, isText } from './types.ts'

/** Checks operands. The expression check implements this interface, and calls the functions below. */
export interface OperandCheck {
  /** The PostgreSQL name of a text search configuration, for `@@`. */
  readonly searchLanguage: string
  typed(expression: Expression, scope: AccessScope): Typed
  /** `expression` where it is compared with `other`: a parameter is cast to the other's type. */
  meet(expression: Expression, other: Typed, scope: AccessScope): Expression
  /** Bounds the operands of `@>` and similar operators, after `compared` has checked them. */
  contained(expression: Comparison, compared: (expression: Comparison) => Comparison, scope: AccessScope): Comparison
  /** Checks the pattern that `operator` searches for in a text, and bounds its length. */
  pattern(operator: PatternOperator, expression: Expression, other: Typed, scope: AccessScope): Expression
}

/** A comparison with both operands checked; a parameter takes the type of the other operand. */
export function comparisonIn(check: OperandCheck, expression: Comparison, scope: AccessScope): Expression {
  const { operator, left, right } = expression
  switch (operator) {
    case '@@':
      return searchIn(check, left, right, scope)
    case '~':
    case 'regex':
    case '~*': {
      const { operand, pattern } = patternIn(check, operator, left, right, scope)
      return { ...expression, left: operand, right: pattern }
    }
    case '@>':
    case '<@':
    case '&&':
      return check.contained(expression, pair => pairIn(check, pair, scope, refuseScalar), scope)
    case '?':
      return keysIn(check, expression, scope)
    case '?|':
    case '?&':
      return check.contained(expression, keys => keysIn(check, keys, scope), scope)
    case '<':
    case '<=':
    case '>':
    case '>=':
      return pairIn(check, expression, scope, refuseUncountable)
    default:
      return pairIn(check, expression, scope, refuseIncomparable)
  }
}

/** Keys of JSON are texts, one or an array of them, whatever the type of the left operand. */
function keysIn(check: OperandCheck, expression: Comparison, scope: AccessScope): Comparison {
  const { operator, left, right } = expression
  const object = isParameter(left)
    ? check.meet(left, { ...UNKNOWN, typeName: 'jsonb' }, scope)
    : typedObject(check.typed(left, scope))
  const keys: Typed = { ...UNKNOWN, typeName: operator === '?' ? 'text' : 'text[]' }
  return { ...expression, left: object, right: check.meet(right, keys, scope) }
}

function typedObject(typed: Typed): Expression {
  refuseIncomparable(typed)
  return typed.expression
}

/**
 * A parameter or a plain literal on either side takes the type of the other side; row values are paired
 * item by item.
 */
export function pairIn<T extends { readonly left: Expression; readonly right: Expression }>(
  check: OperandCheck,
  expression: T,
  scope: AccessScope,
  refuse: (operand: Typed, other: Expression) => void,
): T {
  const { left, right } = expression
  if (left.kind === 'row' && right.kind === 'row') {
    const lefts = left.items.map(item => comparable(check.typed(item, scope)))
    const items = right.items.map((item, index) => check.meet(item, lefts[index] ?? UNKNOWN, scope))
    return { ...expression, left: { ...left, items: lefts.map(item => item.expression) }, right: { ...right, items } }
  }
  if (isPlain(left) && !isPlain(right)) {
    const other = comparable(check.typed(right, scope))
    refuse(other, left)
    return { ...expression, left: check.meet(left, other, scope), right: other.expression }
  }
  const typed = comparable(check.typed(left, scope))
  refuse(typed, right)
  return { ...expression, left: typed.expression, right: check.meet(right, typed, scope) }
}

/** An expression without a type except the one that its context requires. */
function isPlain(expression: Expression): boolean {
  return isParameter(expression) || expression.kind === 'literal' || expression.kind === 'array'
}

/**
 * Patterns are text, except for label paths; operands that are neither text nor label paths are compared by
 * their text form.
 */
export function patternIn(
  check: OperandCheck,
  operator: PatternOperator,
  left: Expression,
  right: Expression,
  scope: AccessScope,
): Pick<PatternMatch, 'operand' | 'pattern'> {
  const typed = check.typed(left, scope)
  const query = operator === 'regex' ? labelQueryOf(typed) : null
  if (query !== null) {
    const pattern = check.pattern(operator, right, { ...typed, type: null, typeName: query }, scope)
    return { operand: typed.expression, pattern }
  }
  const plain = typed.type === null ? !isJsonValue(typed) : isText(typed.type)
  return {
    operand: plain ? typed.expression : cast(typed.expression, 'text'),
    pattern: check.pattern(operator, right, { ...typed, type: null, typeName: 'text' }, scope),
  }
}

/** The type that `~` matches label paths with (PostgreSQL manual, ltree); null for any other type. */
function labelQueryOf({ type }: Typed): string | null {
  if (type === null) return null
  const { name, schema } = baseOf(type)
  return name === 'ltree' ? `${schema}.lquery` : null
}

/** `column @@ words`: uses the column as it is if it is a tsvector, and converts it otherwise. */
function searchIn(check: OperandCheck, left: Expression, right: Expression, scope: AccessScope): Expression {
  const document = check.typed(left, scope)
  const language = cast(text(check.searchLanguage), 'regconfig')
  const words = check.meet(right, { ...UNKNOWN, typeName: 'text', column: document.column }, scope)
  refuseUnsearchable(document)
  const isVector = document.type !== null && baseOf(document.type).name === 'tsvector'
  const filled =
    isVector || isJsonValue(document) ? document.expression : call('coalesce', [document.expression, text('')])
  return compare(
    'matches',
    isVector ? filled : call('to_tsvector', [language, filled]),
    call('websearch_to_tsquery', [language, words]),
  )
}
