/** How much a read may take, by the caller's role (docs/reference/configuration.md#cost-guard). */
import type { Estimate } from './estimate.ts'

export interface CostSettings {
  /** 0: off. */
  readonly explainMaxCost: number
  readonly explainMaxRows: number
  /** Null: the role has the general limit. */
  readonly roleOverrides: ReadonlyMap<
    string,
    { readonly explainMaxCost: number | null; readonly explainMaxRows: number | null }
  >
}

/** Infinity: off. */
export interface CostLimits {
  readonly cost: number
  readonly rows: number
}

/** Null for a role without any limit. */
export function costLimitsByRole(settings: CostSettings): (role: string) => CostLimits | null {
  const general = limitsOf(settings.explainMaxCost, settings.explainMaxRows)
  const byRole = new Map(
    [...settings.roleOverrides].map(([role, { explainMaxCost, explainMaxRows }]) => [
      role,
      limitsOf(explainMaxCost ?? settings.explainMaxCost, explainMaxRows ?? settings.explainMaxRows),
    ]),
  )
  return role => {
    const own = byRole.get(role)
    return own === undefined ? general : own
  }
}

function limitsOf(cost: number, rows: number): CostLimits | null {
  if (cost === 0 && rows === 0) return null
  return { cost: cost === 0 ? Number.POSITIVE_INFINITY : cost, rows: rows === 0 ? Number.POSITIVE_INFINITY : rows }
}

export function isWithin({ cost, rows }: Estimate, limits: CostLimits): boolean {
  return cost <= limits.cost && rows <= limits.rows
}

/** Other values of the same statement can cost more, but hardly ten times as much. */
const NEAR_FACTOR = 10

export function isFarBelow({ cost, rows }: Estimate, limits: CostLimits): boolean {
  return cost < limits.cost / NEAR_FACTOR && rows < limits.rows / NEAR_FACTOR
}
