/** The limit on the depth of a tree. All functions that walk a tree are recursive and rely on this check. */

import { LanguageError } from './error.ts'

/**
 * Maximum number of nested expressions and queries. It is far above what people write and far below what the
 * stack can hold. Lists do not count: `and`, `or`, `in` and rows may have thousands of members.
 */
export const NESTING_MAX = 128

/**
 * The kinds of nodes that count as a level. Between two of them there are at most a few other nodes (fields,
 * sources, order items …). A subquery does not count in addition to its query.
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

/** Trees that passed the check, or that were built within the limit. They are not checked again. */
const shallow: WeakSet<object> = new WeakSet()

/** Marks a tree as within `NESTING_MAX`. For callers that counted the levels while they built it. */
export function markShallow<T extends object>(tree: T): T {
  shallow.add(tree)
  return tree
}

/**
 * Checks that a tree is not deeper than `NESTING_MAX`. Not recursive itself; it visits every object, whatever
 * its kind.
 *
 * @throws LanguageError if the tree is too deep.
 */
export function assertNesting(tree: object): void {
  if (shallow.has(tree)) return
  // Two parallel lists avoid an object per node. This check is a measurable part of the cost of printing.
  const nodes: object[] = [tree]
  const levels: number[] = [0]
  for (let node = nodes.pop(); node !== undefined; node = nodes.pop()) {
    const outer = levels.pop() ?? 0
    const level = 'kind' in node && LEVELS.has(node.kind as string) ? outer + 1 : outer
    if (level > NESTING_MAX) {
      throw new LanguageError(
        `the query is nested more than ${NESTING_MAX} levels deep; split it, for example with "with"`,
      )
    }
    for (const name in node) {
      const child: unknown = (node as Readonly<Record<string, unknown>>)[name]
      // A span only holds two numbers.
      if (typeof child !== 'object' || child === null || name === 'span') continue
      nodes.push(child)
      levels.push(level)
    }
  }
  shallow.add(tree)
}
