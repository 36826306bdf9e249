/** The figures of a plan node, and what is remarkable about them. */
import type { PlanNode } from './inspection.ts'

/** How far an estimate may be from the rows that were found before it is marked. */
const MISESTIMATE_FACTOR = 10

export interface NodeFigures {
  /** The kind of node with its relation and index. */
  readonly title: string
  readonly conditions: readonly (readonly [name: string, text: string])[]
  /** Rows of all loops that were executed. */
  readonly estimated: number | null
  /** Rows of all loops; null for a plan that was not executed. */
  readonly actual: number | null
  readonly removed: number
  readonly ms: number | null
  readonly isMisestimated: boolean
}

export function figuresOf(node: PlanNode): NodeFigures {
  const loops = numberOf(node['Actual Loops'])
  const each = numberOf(node['Actual Rows'])
  const time = numberOf(node['Actual Total Time'])
  const estimated = numberOf(node['Plan Rows'])
  const removed = REMOVED.reduce((sum, key) => sum + (numberOf(node[key]) ?? 0), 0)
  const isMisestimated =
    each !== null && estimated !== null && loops !== 0 && ratio(each, estimated) >= MISESTIMATE_FACTOR
  return {
    title: titleOf(node),
    conditions: CONDITIONS.flatMap(name => (typeof node[name] === 'string' ? [[name, node[name]] as const] : [])),
    estimated: estimated === null ? null : estimated * (loops || 1),
    actual: each === null ? null : each * (loops ?? 1),
    removed: removed * (loops ?? 1),
    ms: time === null ? null : time * (loops ?? 1),
    isMisestimated,
  }
}

/** The most rows that a node of the plan returns, estimated or actual. */
export function mostRows(root: PlanNode): number {
  let most = 0
  const left = [root]
  for (let node = left.pop(); node !== undefined; node = left.pop()) {
    const { estimated, actual } = figuresOf(node)
    most = Math.max(most, estimated ?? 0, actual ?? 0)
    left.push(...(node.Plans ?? []))
  }
  return most
}

/** The length of a bar for a number of rows, on a logarithmic scale: a factor has one length everywhere. */
export function shareOfRows(rows: number, most: number): number {
  return most === 0 ? 0 : Math.log1p(rows) / Math.log1p(most)
}

/** Factor between two numbers of rows; PostgreSQL estimates at least one. */
function ratio(a: number, b: number): number {
  const [least, most] = a < b ? [a, b] : [b, a]
  return most / Math.max(least, 1)
}

const REMOVED = ['Rows Removed by Filter', 'Rows Removed by Join Filter', 'Rows Removed by Index Recheck']

const CONDITIONS = [
  ...['Index Cond', 'Recheck Cond', 'Filter', 'Join Filter', 'Hash Cond', 'Merge Cond', 'One-Time Filter'],
]

function titleOf(node: PlanNode): string {
  const parts = [node['Node Type'], node['Relation Name'], node['Index Name'], node['Function Name'], node['CTE Name']]
  return parts.filter(part => typeof part === 'string').join(' · ')
}

export function numberOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}
