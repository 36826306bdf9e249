/** The cost limits of a caller's role (docs/reference/configuration.md#cost-guard). */
import type { Estimate } from './estimate.ts'

/** The configured limits. */
export interface CostSettings {
  /** 0 disables the limit. */
  readonly explainMaxCost: number
  readonly explainMaxRows: number
  /** Limits by role; null keeps the general limit. */
  readonly roleOverrides: ReadonlyMap<
    string,
    { readonly explainMaxCost: number | null; readonly explainMaxRows: number | null }
  >
}

/** The limits in force; Infinity means none. */
export interface CostLimits {
  readonly cost: number
  readonly rows: number
}

/** The limits of each role; null for a role without any limit. */
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

/** The limits with 0 as none; null if there is neither. */
function limitsOf(cost: number, rows: number): CostLimits | null {
  if (cost === 0 && rows === 0) return null
  return { cost: cost === 0 ? Number.POSITIVE_INFINITY : cost, rows: rows === 0 ? Number.POSITIVE_INFINITY : rows }
}

/** Reports whether an estimate is within both limits. */
export function isWithin({ cost, rows }: Estimate, limits: CostLimits): boolean {
  return cost <= limits.cost && rows <= limits.rows
}

/** How much more other values of the same statement may cost, roughly. */
const NEAR_FACTOR = 10

/** Reports whether an estimate is below a tenth of both limits. */
export function isFarBelow({ cost, rows }: Estimate, limits: CostLimits): boolean {
  return cost < limits.cost / NEAR_FACTOR && rows < limits.rows / NEAR_FACTOR
}
