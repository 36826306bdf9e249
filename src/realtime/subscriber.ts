/** One subscription as the hub keeps it: what it is told waits until its client knows that it has begun, and leaves out what was there before. */
import type { Identity } from '../identity/identity.ts'
import type { Boundary } from './boundary.ts'
import type { Group, Member, ResyncReason } from './group.ts'
import type { Told } from './look.ts'
import type { Release } from './quotas.ts'
import type { WatchRequest } from './watch.ts'

export interface Receiver {
  see(told: readonly Told[]): void
  resync(reason: ResyncReason): void
  /** It has ended: the table is gone, or the caller may not read it any more. */
  refused(error: unknown): void
}

export interface Subscriber extends Member {
  refused(error: unknown): void
  identity: Identity
  readonly request: WatchRequest
  readonly receiver: Receiver
  group: Group | null
  /** Gives back its share in the group, and what it counts for itself. */
  leaveGroup: Release
  readonly release: Release
  /** Where it begins; null once it was told to read again, or where nobody knows. */
  boundary: Boundary | null
  /** What it is told when it has started; null from then on. */
  held: (() => void)[] | null
}

export function createSubscriber(
  request: WatchRequest,
  identity: Identity,
  receiver: Receiver,
  of: Pick<Subscriber, 'release' | 'number'>,
): Subscriber {
  const subscriber: Subscriber = {
    ...{ identity, request, receiver, ...of, leaveGroup: () => {}, group: null, boundary: null, held: [] },
    see: told => inTurn(() => receiver.see(subscriber.boundary === null ? told : after(subscriber.boundary, told))),
    resync: reason =>
      inTurn(() => {
        // The server may have been started again, and give the same numbers to other transactions.
        subscriber.boundary = null
        receiver.resync(reason)
      }),
    refused: error => inTurn(() => receiver.refused(error)),
  }
  const inTurn = (telling: () => void) => {
    if (subscriber.held === null) telling()
    else subscriber.held.push(telling)
  }
  return subscriber
}

/** What is left without the transactions that were committed before. */
function after(boundary: Boundary, told: readonly Told[]): readonly Told[] {
  return told.map(item => ({
    ...item,
    steps: item.steps.filter(({ txid }) => !boundary.includes(txid)),
    token: boundary.laterOf(item.token),
  }))
}
