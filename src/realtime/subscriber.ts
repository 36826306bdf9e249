/**
 * One subscription in the hub. Notifications are held until the client knows that it has subscribed; changes
 * before its start are removed.
 */
import type { Identity } from '../identity/identity.ts'
import type { Boundary } from './boundary.ts'
import type { Release } from './quotas.ts'
import type { SubscriptionRequest } from './subscription-plan.ts'
import type { GroupMember, ResyncReason, VisibilityGroup } from './visibility-group.ts'
import type { ChangeNotification } from './visibility-query.ts'

/** Receives what the hub delivers to one subscription. */
export interface SubscriptionReceiver {
  notify(notifications: readonly ChangeNotification[]): void
  resync(reason: ResyncReason): void
  /** The subscription has ended: the table no longer exists, or the caller may no longer read it. */
  ended(error: unknown): void
}

/** A subscription with its state. */
export interface Subscriber extends GroupMember {
  ended(error: unknown): void
  identity: Identity
  readonly request: SubscriptionRequest
  readonly receiver: SubscriptionReceiver
  group: VisibilityGroup | null
  /** Return the share in the group, and the subscription's own quota. */
  leaveGroup: Release
  readonly release: Release
  /** The start of the subscription; null after a resync, or if it is unknown. */
  boundary: Boundary | null
  /** What is delivered after the start; null from then on. */
  held: (() => void)[] | null
}

/** Creates a subscription that holds everything until it is started. */
export function createSubscriber(
  request: SubscriptionRequest,
  identity: Identity,
  receiver: SubscriptionReceiver,
  quotas: Pick<Subscriber, 'release' | 'number'>,
): Subscriber {
  const subscriber: Subscriber = {
    ...{ identity, request, receiver, ...quotas, leaveGroup: () => {}, group: null, boundary: null, held: [] },
    notify: notifications =>
      whenStarted(() =>
        receiver.notify(
          subscriber.boundary === null ? notifications : withoutEarlier(subscriber.boundary, notifications),
        ),
      ),
    resync: reason =>
      whenStarted(() => {
        // After a restart, the server may reuse transaction numbers.
        subscriber.boundary = null
        receiver.resync(reason)
      }),
    ended: error => whenStarted(() => receiver.ended(error)),
  }
  const whenStarted = (deliver: () => void) => {
    if (subscriber.held === null) deliver()
    else subscriber.held.push(deliver)
  }
  return subscriber
}

/** The notifications without the transactions committed before the start. */
function withoutEarlier(
  boundary: Boundary,
  notifications: readonly ChangeNotification[],
): readonly ChangeNotification[] {
  return notifications.map(item => ({
    ...item,
    steps: item.steps.filter(step => !boundary.includes(step)),
    token: boundary.laterOf(item.token),
  }))
}
