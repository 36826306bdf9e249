/**
 * The error for a read that is too expensive: `QUERY_TOO_EXPENSIVE` (docs/reference/reading.md#cost-guard).
 */

import type { Extent } from '../compile/extent.ts'
import type { Mention } from '../compile/mentions.ts'
import { GatewayError } from '../errors.ts'
import type { Identity } from '../identity/identity.ts'
import { suggestionsFor } from './advice.ts'
import type { CostLimits } from './cost-limits.ts'
import type { Estimate } from './estimate.ts'
import { seesFigures } from './explain-figures.ts'
import { readIndexes, type TableIndex } from './indexes.ts'
import type { Runner, Work } from './run.ts'

/** A refused read. */
export interface RefusedRead {
  readonly runner: Pick<Runner, 'read'>
  readonly identity: Identity
  readonly estimate: Estimate
  readonly limits: CostLimits
  readonly mentions: readonly Mention[]
  readonly extent: Extent
  readonly worked: Work
}

/** Builds the error, with suggestions. */
export async function tooExpensive({
  runner,
  identity,
  estimate,
  limits,
  mentions,
  extent,
  worked,
}: RefusedRead): Promise<GatewayError> {
  // The read is refused in any case, with less advice if the indexes cannot be read.
  const indexes = await readIndexes(runner, identity, mentions, worked).catch((): readonly TableIndex[] => [])
  const suggestions = suggestionsFor({ extent, mentions, indexes })
  const exact = seesFigures(identity)
  const [cost, rows] = exact ? [estimate.cost, estimate.rows] : [aboveLimit(limits.cost), aboveLimit(limits.rows)]
  return new GatewayError('QUERY_TOO_EXPENSIVE', exact ? withReasons(estimate, limits) : WITHOUT_REASONS, {
    details: JSON.stringify({
      estimated_cost: cost,
      cost_limit: limitOf(limits.cost),
      estimated_rows: rows,
      row_limit: limitOf(limits.rows),
      suggestions,
    }),
  })
}

/** Names both limits, because the one exceeded would reveal something about the rows. */
const WITHOUT_REASONS =
  'the query is too expensive: the estimate of PostgreSQL exceeds explain_max_cost or explain_max_rows'

function withReasons(estimate: Estimate, limits: CostLimits): string {
  const reasons = [
    ...(estimate.cost > limits.cost
      ? [`its estimated cost of ${estimate.cost} is above ${limits.cost} (explain_max_cost)`]
      : []),
    ...(estimate.rows > limits.rows
      ? [`about ${estimate.rows} rows would have to be read, more than ${limits.rows} (explain_max_rows)`]
      : []),
  ]
  return `the query is too expensive: ${reasons.join('; ')}`
}

/** The next power of ten above the limit; 0 without a limit. */
function aboveLimit(limit: number): number {
  return limit === Number.POSITIVE_INFINITY ? 0 : 10 ** (Math.floor(Math.log10(limit)) + 1)
}

/** The limit as configured. */
function limitOf(limit: number): number {
  return limit === Number.POSITIVE_INFINITY ? 0 : limit
}
