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

/** Trees that were found shallow, or made so: nobody walks them a second time. */
const shallow: WeakSet<object> = new WeakSet()

/** Says that a tree keeps to `NESTING_MAX`, of whoever counted while making it. */
export function markShallow<T extends object>(tree: T): T {
  shallow.add(tree)
  return tree
}

/** Refuses a tree that is deeper than `NESTING_MAX`. Uses no recursion itself, and sees every object whatever its kind. */
export function assertNesting(tree: object): void {
  if (shallow.has(tree)) return
  // Two lists in step, and no object for each node: this is a good part of what printing costs.
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
      // A span holds two numbers and nothing else.
      if (typeof child !== 'object' || child === null || name === 'span') continue
      nodes.push(child)
      levels.push(level)
    }
  }
  shallow.add(tree)
}
