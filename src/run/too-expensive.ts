/** The refusal of a read that is too expensive: `QUERY_TOO_EXPENSIVE` (specification 7, decisions 7). */
import { GatewayError } from '../errors.ts'
import type { Identity } from '../identity/identity.ts'
import { adviseOn } from './advice.ts'
import type { CostLimits } from './cost-limits.ts'
import type { Estimate } from './estimate.ts'
import { roundedBeside } from './figure.ts'
import { type Index, readIndexes } from './indexes.ts'
import type { Mention } from './mentions.ts'
import type { Runner } from './run.ts'

/** Who has it is told figures as they are; others rounded, for an exact estimate tells of rows that they cannot see. */
const EXACT_SCOPE = 'svc:explain'

export interface Refused {
  readonly runner: Pick<Runner, 'read'>
  readonly identity: Identity
  readonly estimate: Estimate
  readonly limits: CostLimits
  readonly mentions: readonly Mention[]
}

export async function tooExpensive({ runner, identity, estimate, limits, mentions }: Refused): Promise<GatewayError> {
  // The read is refused all the same, if with less advice.
  const indexes = await readIndexes(runner, identity, mentions).catch((): readonly Index[] => [])
  const exact = identity.scopes.includes(EXACT_SCOPE)
  const figure = (value: number, limit: number) => (exact ? value : roundedBeside(value, limit))
  const [cost, rows] = [figure(estimate.cost, limits.cost), figure(estimate.rows, limits.rows)]
  const costly = estimate.cost > limits.cost
  const reasons = [
    ...(costly ? [`its estimated cost of ${cost} is above ${limits.cost} (explain_max_cost)`] : []),
    ...(estimate.rows > limits.rows
      ? [`about ${rows} rows would have to be read, more than ${limits.rows} (explain_max_rows)`]
      : []),
  ]
  return new GatewayError('QUERY_TOO_EXPENSIVE', `the query is too expensive: ${reasons.join('; ')}`, {
    details: JSON.stringify({
      estimated_cost: cost,
      cost_limit: limitOf(limits.cost),
      estimated_rows: rows,
      row_limit: limitOf(limits.rows),
      suggestions: adviseOn({ estimate, mentions, indexes, costly }),
    }),
  })
}

/** As it is configured. */
function limitOf(limit: number): number {
  return limit === Number.POSITIVE_INFINITY ? 0 : limit
}
