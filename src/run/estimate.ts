/** What PostgreSQL expects a statement to take, out of the plan that it would run (PostgreSQL manual, EXPLAIN). */

export interface Estimate {
  /** Of the whole plan, in the planner's units. */
  readonly cost: number
  /** The most rows that any node of the plan would produce: what the database has to go through, whatever the page shows. */
  readonly rows: number
}

interface Node {
  readonly 'Total Cost'?: unknown
  readonly 'Plan Rows'?: unknown
  readonly Plans?: readonly Node[]
}

/**
 * `plan`: the answer of `EXPLAIN (FORMAT JSON)`. A limit node promises no more rows than the nodes below it, so the largest of all nodes is the
 * largest of those below the limit.
 */
export function readEstimate(plan: string): Estimate {
  const root = parsePlan(plan)
  let rows = 0
  const open = [root]
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    rows = Math.max(rows, figure(node['Plan Rows']))
    // Not spread into a call: the arms of a query over thousands of partitions are one list.
    for (const below of node.Plans ?? []) open.push(below)
  }
  return { cost: figure(root['Total Cost']), rows }
}

function parsePlan(plan: string): Node {
  const [{ Plan: root } = {}] = parsePlans(plan)
  if (root === undefined) throw new Error('EXPLAIN answers a plan')
  return root
}

/** The list that PostgreSQL answers, of one element for each statement that is explained. */
export function parsePlans(plan: string): readonly { readonly Plan?: Node }[] {
  try {
    return JSON.parse(plan)
  } catch {
    return JSON.parse(plan.replace(NO_NUMBER, ': null'))
  }
}

/** The planner's arithmetic overflows for joins without end, and PostgreSQL writes what is no JSON. Inside a text a line never ends like this. */
const NO_NUMBER = /: -?(?:NaN|Infinity)(?=,?$)/gm

/** What is beyond all numbers is beyond every limit. */
function figure(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : Number.MAX_VALUE
}
