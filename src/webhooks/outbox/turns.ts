/** What a gateway asks the outbox for: as much as its endpoints have places for, in turns between them, between their triggers, and between tenants. */
import { endpointOf, type Trigger } from '../trigger.ts'
import type { Claim, Turn } from './claim.ts'

/** Beyond the longest that a try may take: until it begins, and until what came of it is written down. */
export const LEASE_MARGIN_MS = 10_000

export interface Turns {
  /** Of those that are active and among the asked; empty: none of them has a place. */
  next(active: readonly Trigger[], isAsked: (trigger: string) => boolean): readonly Turn[]
  /** What came of it. */
  learn(turns: readonly Turn[], claim: Claim): void
  /** It has more than there were places for. */
  wants(trigger: string): boolean
}

/** `room`: places that an endpoint has. */
export function createTurns(room: (endpoint: string) => number): Turns {
  /** By trigger: the tenant who is next. */
  const cursors = new Map<string, string>()
  const more = new Set<string>()
  let offset = 0

  return {
    next(active, isAsked) {
      offset += 1
      forget(active)
      return [...byEndpoint(active.filter(({ name }) => isAsked(name)))].flatMap(([endpoint, all]) =>
        share(rotated(all, offset), room(endpoint), cursors),
      )
    },
    learn(turns, { next, parked, webhooks }) {
      const took = new Set(webhooks.map(({ trigger }) => trigger))
      for (const { trigger, from } of turns) {
        const cursor = next.get(trigger) ?? ''
        if (cursor === '') cursors.delete(trigger)
        else cursors.set(trigger, cursor)
        // Who began in the middle has not seen everybody yet.
        if (took.has(trigger) || parked || cursor !== '' || from !== '') more.add(trigger)
        else more.delete(trigger)
      }
    },
    wants: trigger => more.has(trigger),
  }

  function forget(triggers: readonly Trigger[]): void {
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

/** Evenly; where there are more triggers than places, the others come first the next time. */
function share(triggers: readonly Trigger[], places: number, cursors: ReadonlyMap<string, string>): readonly Turn[] {
  const each = Math.max(1, Math.floor(places / triggers.length))
  return triggers.slice(0, places).map(({ name, timeoutMs }) => ({
    ...{ trigger: name, from: cursors.get(name) ?? '', places: each, leaseMs: timeoutMs + LEASE_MARGIN_MS },
  }))
}
