/** PostgreSQL's estimate for a statement, read from its execution plan (PostgreSQL manual, EXPLAIN). */

/** An estimate. */
export interface Estimate {
  /** The cost of the whole plan, in the planner's units. */
  readonly cost: number
  /**
   * The most rows that any node of the plan would produce: what the database has to process, whatever the
   * page size.
   */
  readonly rows: number
}

interface Node {
  readonly 'Total Cost'?: unknown
  readonly 'Plan Rows'?: unknown
  readonly Plans?: readonly Node[]
}

/**
 * Reads the result of `EXPLAIN (FORMAT JSON)`. A limit node promises no more rows than the nodes below it, so
 * the largest of all nodes is the largest of those below the limit.
 */
export function readEstimate(plan: string): Estimate {
  const root = parsePlan(plan)
  let rows = 0
  const open = [root]
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    rows = Math.max(rows, toEstimate(node['Plan Rows']))
    // Not spread into a call, because a query over thousands of partitions has that many children.
    for (const below of node.Plans ?? []) open.push(below)
  }
  return { cost: toEstimate(root['Total Cost']), rows }
}

function parsePlan(plan: string): Node {
  const [{ Plan: root } = {}] = parsePlans(plan)
  if (root === undefined) throw new Error('EXPLAIN answers a plan')
  return root
}

/** The list that PostgreSQL returns, one element per explained statement. */
export function parsePlans(plan: string): readonly { readonly Plan?: Node }[] {
  try {
    return JSON.parse(plan)
  } catch {
    return JSON.parse(plan.replace(INVALID_NUMBER, ': null'))
  }
}

/**
 * The planner's arithmetic can overflow for very large joins, and PostgreSQL then prints invalid JSON. A line
 * within a string never ends like this.
 */
const INVALID_NUMBER = /: -?(?:NaN|Infinity)(?=,?$)/gm

/** Overflowed numbers exceed every limit. */
function toEstimate(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : Number.MAX_VALUE
}
