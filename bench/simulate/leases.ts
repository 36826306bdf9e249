/** Many gateways that lease the permits of one tenant from a shared store, and more requests than permits. */
import { createLeases } from '../../src/limits/leases.ts'
import { createPermitLedger } from '../../src/limits/ledger.ts'
import { randomOf, startVirtualTime } from './virtual-time.ts'

export interface LeaseScenario {
  readonly gateways: number
  readonly permits: number
  /** Requests per second at all gateways together, each of which arrives at a random one. */
  readonly requestsPerSecond: number
  readonly holdMs: number
  /** Time for a message to the store and back. */
  readonly roundTripMs: number
  readonly seconds: number
  readonly seed: number
}

export interface LeaseResult {
  /** The most permits in use at once, as a part of the limit; more than 1 would be an overshoot. */
  readonly mostUsed: number
  /** Permits in use on average, as a part of the limit. */
  readonly used: number
  /** Accepted requests of the gateways: the standard deviation, as a part of the mean. */
  readonly unevenness: number
  readonly messagesPerSecond: number
}

const TENANT = 'tenant'

export async function simulateLeases(scenario: LeaseScenario): Promise<LeaseResult> {
  const { gateways, permits, requestsPerSecond, holdMs, roundTripMs, seconds, seed } = scenario
  const time = startVirtualTime()
  try {
    const random = randomOf(seed)
    const ledger = createPermitLedger(permits, () => gateways)
    let messages = 0
    let used = 0
    let usedMs = 0
    let most = 0
    const accepted = Array.from({ length: gateways }, () => 0)
    const later = (call: () => void): void => {
      messages++
      time.after(roundTripMs / 2, call)
    }
    const leases = accepted.map((_, gateway) =>
      createLeases({
        ...{ kind: 'permits', now: time.now },
        // Gateways did not start at the same time.
        every(intervalMs, call) {
          let stop = (): void => {}
          time.after(random() * intervalMs, () => {
            stop = time.every(intervalMs, call)
          })
          return () => stop()
        },
        store: {
          async lease(holder, units) {
            messages++
            await time.sleep(roundTripMs / 2)
            const lent = ledger.lend(gateway, holder, units)
            await time.sleep(roundTripMs / 2)
            return lent
          },
          give: (holder, units) => later(() => ledger.give(gateway, holder, units)),
          exceed: (holder, units) => later(() => ledger.exceed(gateway, holder, units)),
        },
      }),
    )
    const request = async (): Promise<void> => {
      const gateway = Math.floor(random() * gateways)
      if (!(await leases[gateway]?.take(TENANT))) return
      accepted[gateway] = (accepted[gateway] ?? 0) + 1
      used++
      most = Math.max(most, used)
      await time.sleep(holdMs)
      used--
      usedMs += holdMs
      leases[gateway]?.leave(TENANT)
    }
    time.every(1_000 / requestsPerSecond, () => void request())
    await time.run(seconds * 1_000)
    const mean = accepted.reduce((sum, count) => sum + count, 0) / gateways
    const variance = accepted.reduce((sum, count) => sum + (count - mean) ** 2, 0) / gateways
    return {
      mostUsed: most / permits,
      used: usedMs / (seconds * 1_000 * permits),
      unevenness: mean === 0 ? 0 : Math.sqrt(variance) / mean,
      messagesPerSecond: messages / seconds,
    }
  } finally {
    time.close()
  }
}
