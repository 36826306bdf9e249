/**
 * The bound on patterns of `like` and `ilike`. Behind a `%`, PostgreSQL compares the rest of the pattern at
 * each place of the text, and checks no timeout meanwhile: 10 000 characters behind a `%` take seconds for a
 * text of 100 000. Regular expressions and `similar to` can be interrupted.
 *
 * Literals are counted when the statement is checked, parameters then or when they are bound. Patterns that
 * are computed have to be short, which the statement checks itself: around a constant the condition is gone
 * once PostgreSQL has planned it, so an index serves the pattern as before.
 */
import type { Expression, PatternMatch } from '../language/tree/ast.ts'
import { cast, compare, integer } from '../language/tree/build.ts'
import { bytesOf, guarded, PATTERN_GUARD } from './guard.ts'
import type { ParameterUse } from './parameters.ts'
import { type Growth, patternsTooLong, refused, type Tally } from './tally.ts'

/**
 * `~` looks for a text anywhere: it is `ilike` with a `%` on both sides. Those of regular expressions are not
 * bounded.
 */
export type PatternOperator = PatternMatch['operator'] | '~' | '~*' | 'regex'

const BOUNDED: ReadonlySet<PatternOperator> = new Set(['like', 'ilike', '~'])

export function searches(operator: PatternOperator, { limits }: Tally): boolean {
  return limits.maxPatternBytes > 0 && BOUNDED.has(operator)
}

/** So many computed patterns share the limit. */
const COMPUTED_PATTERNS = 16

/** How often a parameter is a pattern, and how many bytes all patterns of its statement may have. */
export interface PatternUse {
  readonly mentions: number
  readonly bytesMax: number
}

/** The pattern, bounded. `growth`: what it adds to the statement. */
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
  return guarded(PATTERN_GUARD, value, compare('>', bytesOf(value), integer(String(each))), [value])
}

const JOINING: ReadonlySet<string> = new Set(['concat', 'lower', 'upper', 'coalesce'])

/** Its length is at most that of the literals and parameters in it. */
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
 * What is compared at each place of a text: a pattern without a wildcard, or with one at its end, is compared
 * at its beginning alone.
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

/** Refuses values that are longer patterns, together, than their statement may have. */
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
    if (bytes > bytesMax) throw refused(patternsTooLong(bytesMax), undefined, 'maxPatternBytes')
  }
}
