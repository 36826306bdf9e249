/**
 * Decides what a gateway claims: as much as its endpoints have free slots for, shared fairly between
 * endpoints, their triggers, and tenants.
 */
import { endpointOf, type Trigger } from '../trigger.ts'
import type { Claim, ClaimRequest } from './claim.ts'

/** Added to the longest possible attempt: time until it begins, and until its outcome is stored. */
export const LEASE_MARGIN_MS = 10_000

/** Schedules claims. */
export interface ClaimScheduler {
  /**
   * The next claims for active triggers that `isAsked` selects; empty if none of their endpoints has a free
   * slot.
   */
  next(active: readonly Trigger[], isDue: (trigger: string) => boolean): readonly ClaimRequest[]
  /** Records the result of a claim. */
  record(requests: readonly ClaimRequest[], claim: Claim): void
  /** True if the trigger has more webhooks than there were slots for. */
  hasMore(trigger: string): boolean
}

/** Creates a scheduler. `freeSlots` returns the free slots of an endpoint. */
export function createClaimScheduler(freeSlots: (endpoint: string) => number): ClaimScheduler {
  /** The tenant to visit next, by trigger. */
  const cursors = new Map<string, string>()
  const more = new Set<string>()
  let offset = 0

  return {
    next(active, isDue) {
      offset += 1
      dropUnknown(active)
      return [...byEndpoint(active.filter(({ name }) => isDue(name)))].flatMap(([endpoint, all]) =>
        share(rotated(all, offset), freeSlots(endpoint), cursors),
      )
    },
    record(requests, { next, parked, webhooks }) {
      const took = new Set(webhooks.map(({ trigger }) => trigger))
      for (const { trigger, from } of requests) {
        const cursor = next.get(trigger) ?? ''
        if (cursor === '') cursors.delete(trigger)
        else cursors.set(trigger, cursor)
        // A visit that began in the middle has not covered all tenants.
        if (took.has(trigger) || parked || cursor !== '' || from !== '') more.add(trigger)
        else more.delete(trigger)
      }
    },
    hasMore: trigger => more.has(trigger),
  }

  function dropUnknown(triggers: readonly Trigger[]): void {
    const names = new Set(triggers.map(({ name }) => name))
    for (const name of more) if (!names.has(name)) more.delete(name)
    for (const name of cursors.keys()) if (!names.has(name)) cursors.delete(name)
  }
}

function byEndpoint(triggers: readonly Trigger[]): ReadonlyMap<string, readonly Trigger[]> {
  const found = new Map<string, Trigger[]>()
  for (const trigger of triggers) {
    const endpoint = endpointOf(trigger)
    const others = found.get(endpoint)
    if (others === undefined) found.set(endpoint, [trigger])
    else others.push(trigger)
  }
  return found
}

function rotated<T>(list: readonly T[], by: number): readonly T[] {
  const at = by % list.length
  return [...list.slice(at), ...list.slice(0, at)]
}

/**
 * Shares slots evenly. Where there are more triggers than slots, the remaining triggers come first next time.
 */
function share(
  triggers: readonly Trigger[],
  slots: number,
  cursors: ReadonlyMap<string, string>,
): readonly ClaimRequest[] {
  const each = Math.max(1, Math.floor(slots / triggers.length))
  return triggers.slice(0, slots).map(({ name, timeoutMs }) => ({
    ...{ trigger: name, from: cursors.get(name) ?? '', slots: each, leaseMs: timeoutMs + LEASE_MARGIN_MS },
  }))
}
