/** How deep a tree may be: everything that walks a tree does so by recursion, and asks here first. */

import { LanguageError } from './error.ts'

/**
 * Levels of expressions and queries inside each other. Far above what a person writes, far below what the stack holds. Lists are free:
 * `and`, `or`, `in` and rows may have thousands of members.
 */
export const NESTING_MAX = 128

/**
 * Kinds that are a level. The others (fields, sources, order items …) lie between two of these, at most a few at a time; the wrapper
 * of a subquery is not counted beside the query in it.
 */
const LEVELS: ReadonlySet<string> = new Set([
  'get',
  'nest',
  'add',
  'set',
  'del',
  'merge',
  'explain',
  'and',
  'or',
  'not',
  'comparison',
  'pattern',
  'is',
  'distinct from',
  'between',
  'in',
  'json test',
  'arithmetic',
  'negate',
  'json step',
  'cast',
  'function',
  'case',
  'array',
  'row',
])

/** Refuses a tree that is deeper than `NESTING_MAX`. Uses no recursion itself, and sees every object whatever its kind. */
export function assertNesting(tree: object): void {
  const waiting: { readonly node: object; readonly level: number }[] = [{ node: tree, level: 0 }]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { node } = next
    const level = 'kind' in node && LEVELS.has(node.kind as string) ? next.level + 1 : next.level
    if (level > NESTING_MAX) {
      throw new LanguageError(
        `the query is nested more than ${NESTING_MAX} levels deep; split it, for example with "with"`,
      )
    }
    for (const child of Object.values(node)) {
      if (typeof child === 'object' && child !== null) waiting.push({ node: child, level })
    }
  }
}
