/** Quotas on `/ws` by address and tenant: sockets, subscriptions, and visibility groups. */
import { GatewayError } from '../errors.ts'
import type { Identity } from '../identity/identity.ts'
import { type Budget, callerKey, createBudget } from '../limits/budget.ts'
import { createWaitingBytes, type UnreadBudget, type WaitingBytes } from './waiting-bytes.ts'

/** The limits; 0 means no limit. */
export interface RealtimeLimits {
  /** Parameters of a live query. */
  readonly maxParameters: number
  readonly addressMaxSockets: number
  readonly tenantMaxSockets: number
  readonly tenantMaxSubscriptions: number
  readonly tenantMaxSubscriptionGroups: number
  readonly tenantMaxLiveQueries: number
  readonly maxLiveQueries: number
  readonly maxSockets: number
  readonly socketMaxSubscriptions: number
  readonly socketMaxLiveQueries: number
  /** Visibility queries of one tenant per second for unrouted changes. */
  readonly tenantMaxUnroutedQueriesPerSec: number
  readonly unroutedResyncIntervalMs: number
}

/** Releases what was counted; further calls have no effect. */
export type Release = () => void

/** The quota of one socket. */
export interface Seat {
  /**
   * Counts the socket for this caller instead of the previous one.
   * @throws GatewayError `CONCURRENCY_LIMIT`
   */
  claim(identity: Identity): void
  /**
   * Checks whether a socket that has `held` subscriptions or live queries can have another one.
   * @throws GatewayError `FORBIDDEN`
   */
  assertRoom(kind: 'subscription' | 'live query', held: number): void
  /** Counts what waits for the socket's client. */
  readonly waiting: WaitingBytes
  leave(): void
}

/** Counts the sockets, subscriptions and live queries of callers. */
export interface Quotas {
  /**
   * Counts a socket of this address.
   * @throws GatewayError `CONCURRENCY_LIMIT`, or `UNAVAILABLE` if the process has too many.
   */
  seat(address: string | number): Seat
  /**
   * Counts a subscription or a live query.
   * @throws GatewayError `CONCURRENCY_LIMIT`
   */
  subscription(identity: Identity): Release
  /**
   * Counts a share in the visibility group with this name. `beyond`: a group split after it was created is
   * never refused.
   * @throws GatewayError `CONCURRENCY_LIMIT`
   */
  group(identity: Identity, name: string, overLimit: OverLimit): Release
  /**
   * Counts a share in the live query with this name, which is also a group.
   * @throws GatewayError `UNAVAILABLE` if the process has too many.
   */
  liveQuery(identity: Identity, name: string, overLimit: OverLimit): Release
  /** Refusals by the key of the limit. */
  refusals(): Readonly<Record<string, number>>
}

/** The reaction beyond a limit: reject the caller, or only count it. */
export type OverLimit = 'refuse' | 'count'

/** Creates quotas with nothing counted. */
export function createQuotas(limits: RealtimeLimits, unread: UnreadBudget): Quotas {
  const sockets = createBudget<string | number>({ max: limits.maxSockets, shareMax: limits.addressMaxSockets })
  const ofTenants = createBudget<string>({ max: 0, shareMax: limits.tenantMaxSockets })
  const subscriptions = createBudget<string>({ max: 0, shareMax: limits.tenantMaxSubscriptions })
  const groups = createBudget<string>({ max: 0, shareMax: limits.tenantMaxSubscriptionGroups })
  const queries = createBudget<string>({ max: limits.maxLiveQueries, shareMax: limits.tenantMaxLiveQueries })
  const ofSocket = { socket_max_subscriptions: 0, socket_max_live_queries: 0 }
  /** The number of the caller's subscriptions in each group and live query. */
  const shares = new Map<string, number>()

  function group(identity: Identity, name: string, overLimit: OverLimit): Release {
    const what = 'different subscriptions and live queries'
    const refuse = () =>
      tooMany(holderOf(identity), limits.tenantMaxSubscriptionGroups, what, 'tenant_max_subscription_groups')
    return share(groups, { holder: callerKey(identity), name, overLimit }, refuse)
  }

  /** Counts a name once, however many share it. */
  function share(
    budget: Budget<string | null>,
    { holder, name, overLimit }: { readonly holder: string; readonly name: string; readonly overLimit: OverLimit },
    refuse: (limit: 'total' | 'share') => GatewayError,
  ): Release {
    const key = JSON.stringify([holder, name])
    const count = shares.get(key) ?? 0
    if (count === 0 && overLimit === 'refuse') take(budget, holder, refuse)
    else if (count === 0) budget.take(holder, 1)
    shares.set(key, count + 1)
    return once(() => {
      const left = (shares.get(key) ?? 1) - 1
      if (left > 0) {
        shares.set(key, left)
        return
      }
      shares.delete(key)
      budget.give(holder, 1)
    })
  }

  function take<Holder extends string | number>(
    budget: Budget<Holder | null>,
    holder: Holder,
    refuse: (limit: 'total' | 'share') => GatewayError,
  ): Release {
    const exceeded = budget.exceeded(holder)
    if (exceeded !== null) {
      budget.refuse(exceeded)
      throw refuse(exceeded)
    }
    budget.take(holder, 1)
    return once(() => budget.give(holder, 1))
  }

  return {
    seat(address) {
      const leaveAddress = take(sockets, address, limit =>
        limit === 'share'
          ? tooMany('this address', limits.addressMaxSockets, 'sockets', 'address_max_sockets')
          : exhausted(limits.maxSockets, 'sockets', 'max_sockets'),
      )
      let holder: string | null = null
      let leaveTenant: Release = () => {}
      const waiting = createWaitingBytes(unread)
      return {
        waiting,
        claim(identity) {
          const next = callerKey(identity)
          if (next === holder) return
          const refuse = () => tooMany(holderOf(identity), limits.tenantMaxSockets, 'sockets', 'tenant_max_sockets')
          const release = take(ofTenants, next, refuse)
          leaveTenant()
          waiting.assign(next)
          holder = next
          leaveTenant = release
        },
        assertRoom(kind, held) {
          const [key, max] =
            kind === 'subscription'
              ? (['socket_max_subscriptions', limits.socketMaxSubscriptions] as const)
              : (['socket_max_live_queries', limits.socketMaxLiveQueries] as const)
          if (max === 0 || held < max) return
          ofSocket[key]++
          const what = kind === 'subscription' ? 'subscriptions' : 'live queries'
          throw new GatewayError(
            'FORBIDDEN',
            `a connection can have at most ${max} ${what} (${key}); open another connection`,
          )
        },
        leave() {
          leaveAddress()
          leaveTenant()
        },
      }
    },
    subscription(identity) {
      const max = limits.tenantMaxSubscriptions
      const what = 'subscriptions and live queries'
      return take(subscriptions, callerKey(identity), () =>
        tooMany(holderOf(identity), max, what, 'tenant_max_subscriptions'),
      )
    },
    group,
    liveQuery(identity, name, overLimit) {
      const holder = callerKey(identity)
      const leaveGroup = group(identity, `live query ${name}`, overLimit)
      try {
        const stop = share(queries, { holder, name: `run of ${name}`, overLimit }, limit =>
          limit === 'share'
            ? tooMany(
                holderOf(identity),
                limits.tenantMaxLiveQueries,
                'different live queries',
                'tenant_max_live_queries',
              )
            : exhausted(limits.maxLiveQueries, 'different live queries', 'max_live_queries'),
        )
        return () => {
          leaveGroup()
          stop()
        }
      } catch (error) {
        leaveGroup()
        throw error
      }
    },
    refusals: () => ({
      max_sockets: sockets.refusals.total,
      address_max_sockets: sockets.refusals.share,
      tenant_max_sockets: ofTenants.refusals.share,
      tenant_max_subscriptions: subscriptions.refusals.share,
      tenant_max_subscription_groups: groups.refusals.share,
      tenant_max_live_queries: queries.refusals.share,
      max_live_queries: queries.refusals.total,
      ...ofSocket,
    }),
  }
}

const RETRY = { headers: { 'Retry-After': '5' } }

function tooMany(holder: string, max: number, what: string, key: string): GatewayError {
  return new GatewayError(
    'CONCURRENCY_LIMIT',
    `${holder} already has ${max} ${what}, the limit (${key}); close some, or try again later`,
    RETRY,
  )
}

function exhausted(max: number, what: string, key: string): GatewayError {
  return new GatewayError(
    'UNAVAILABLE',
    `the gateway already has ${max} ${what}, the limit (${key}); try again later`,
    RETRY,
  )
}

function holderOf({ tenantId }: Identity): string {
  return tenantId === '' ? 'this caller' : 'the tenant'
}

function once(release: Release): Release {
  let isHeld = true
  return () => {
    if (isHeld) release()
    isHeld = false
  }
}
