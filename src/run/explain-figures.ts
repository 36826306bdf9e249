/**
 * The figures in execution plans, and the scope that reveals them. PostgreSQL's statistics cover all tenants'
 * rows, and the plan of an executed statement counts rows hidden by row-level security, so only a scope
 * granted by operators reveals the figures.
 */
import type { Identity } from '../identity/identity.ts'
import { parsePlans } from './estimate.ts'

const EXPLAIN_SCOPE = 'svc:explain'

/** Reports whether a caller may see the figures. */
export function seesFigures({ scopes }: Pick<Identity, 'scopes'>): boolean {
  return scopes.includes(EXPLAIN_SCOPE)
}

/**
 * Keys that describe how a statement runs and contain no figures (PostgreSQL manual, EXPLAIN; `explain.c`).
 * All others are removed.
 */
const SHAPE: ReadonlySet<string> = new Set([
  'Plan',
  'Plans',
  'Node Type',
  'Strategy',
  'Partial Mode',
  'Operation',
  'Command',
  'Parent Relationship',
  'Parallel Aware',
  'Async Capable',
  'Subplan Name',
  'Join Type',
  'Inner Unique',
  'Scan Direction',
  'Schema',
  'Relation Name',
  'Alias',
  'Index Name',
  'Function Name',
  'CTE Name',
  'Output',
  'Sort Key',
  'Presorted Key',
  'Group Key',
  'Cache Key',
  'Cache Mode',
  'Index Cond',
  'Recheck Cond',
  'TID Cond',
  'Filter',
  'Join Filter',
  'Hash Cond',
  'Merge Cond',
  'One-Time Filter',
  'Order By',
])

/** The result of `EXPLAIN (FORMAT JSON)` without estimates, counts, costs, times and memory. */
export function withoutFigures(plans: Buffer): Buffer {
  return Buffer.from(JSON.stringify(outlined(parsePlans(plans.toString()))))
}

function outlined(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(outlined)
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(([key]) => SHAPE.has(key))
  return Object.fromEntries(kept.map(([key, inner]) => [key, outlined(inner)]))
}
