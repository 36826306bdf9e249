/**
 * The bound on patterns of `like` and `ilike`.
 * After a `%`, PostgreSQL compares the rest of the pattern at each position of the text and checks no
 * timeout while it does: 10 000 characters after a `%` take seconds for a text of 100 000. Regular
 * expressions and `similar to` can be interrupted.
 * Literals are counted when the statement is checked, parameters then or when they are bound. Computed
 * patterns must be short; the statement checks that itself. If the pattern is constant, the condition
 * disappears when PostgreSQL plans the statement, so an index still serves it.
 */
import type { Expression, PatternMatch } from '../language/tree/ast.ts'
import { cast, compare, integer } from '../language/tree/build.ts'
import { byteLength, guarded, PATTERN_GUARD } from './guard.ts'
import type { ParameterUse } from './parameters.ts'
import { type Growth, limitExceeded, patternsTooLong, type Tally } from './tally.ts'

/**
 * Operators that match a pattern. `~` searches for a text anywhere, so it is `ilike` with a `%` on both
 * sides. Patterns of regular expressions are not bounded.
 */
export type PatternOperator = PatternMatch['operator'] | '~' | '~*' | 'regex'

const BOUNDED: ReadonlySet<PatternOperator> = new Set(['like', 'ilike', '~'])

/** True if the operator searches for its pattern with `like` or `ilike`. */
export function searches(operator: PatternOperator, { limits }: Tally): boolean {
  return limits.maxPatternBytes > 0 && BOUNDED.has(operator)
}

/** The number of computed patterns that share the limit. */
const COMPUTED_PATTERNS = 16

/**
 * How many times a parameter is a pattern, and the total size that all patterns of its statement can have.
 */
export interface PatternUse {
  readonly mentions: number
  readonly bytesMax: number
}

/** The pattern, bounded. `growth`: the size that it adds to the statement. */
export function boundedPattern(
  operator: PatternOperator,
  pattern: Expression,
  growth: Growth,
  tally: Tally,
): Expression {
  const { maxPatternBytes: max } = tally.limits
  if (isMadeOfValues(pattern)) {
    tally.addPattern(pattern.kind === 'literal' ? searchedBytes(operator, pattern.value) : growth.bytes, pattern.span)
    return pattern
  }
  const each = Math.max(1, Math.floor(max / COMPUTED_PATTERNS))
  tally.add(growth, pattern.span)
  tally.addPattern(each, pattern.span)
  const value = cast(pattern, 'text')
  return guarded(PATTERN_GUARD, value, compare('>', byteLength(value), integer(String(each))), [value])
}

const JOINING: ReadonlySet<string> = new Set(['concat', 'lower', 'upper', 'coalesce'])

/**
 * True if the pattern is built from literals and parameters only, so that it is at most as long as all of
 * them together.
 */
function isMadeOfValues(expression: Expression): boolean {
  switch (expression.kind) {
    case 'literal':
    case 'position':
    case 'named':
      return true
    case 'cast':
      return isMadeOfValues(expression.operand)
    case 'arithmetic':
      return expression.operator === '||' && isMadeOfValues(expression.left) && isMadeOfValues(expression.right)
    case 'function':
      return JOINING.has(expression.name) && expression.arguments.every(isMadeOfValues)
    default:
      return false
  }
}

/**
 * The part that is compared at each position of the text: a pattern without a wildcard, or with one only at
 * its end, is compared at the beginning alone.
 */
function searchedBytes(operator: PatternOperator, pattern: string): number {
  if (operator === '~') return Buffer.byteLength(pattern)
  let start = pattern.indexOf('%')
  if (start < 0) return 0
  let end = pattern.length
  while (start < end && pattern[start] === '%') start += 1
  while (start < end && pattern[end - 1] === '%') end -= 1
  return Buffer.byteLength(pattern.slice(start, end))
}

/** Rejects parameter values whose patterns are, in total, longer than the statement allows. */
export function assertPatterns(
  parameters: readonly ({ readonly use: ParameterUse } | { readonly literal: string })[],
  values: readonly unknown[],
): void {
  let bytes = 0
  for (const [index, parameter] of parameters.entries()) {
    const value = values[index]
    if ('literal' in parameter || parameter.use.pattern === undefined || typeof value !== 'string') continue
    const { mentions, bytesMax } = parameter.use.pattern
    bytes += mentions * searchedBytes('like', value)
    if (bytes > bytesMax) throw limitExceeded(patternsTooLong(bytesMax), undefined, 'maxPatternBytes')
  }
}
