/** What one address and one tenant may hold of `/ws`: sockets, subscriptions, and groups that each change is looked at for. */
import { GatewayError } from '../errors.ts'
import type { Identity } from '../identity/identity.ts'
import { type Budget, callerKey, createBudget } from '../limits/budget.ts'

/** 0: no limit. */
export interface RealtimeLimits {
  readonly addressMaxSockets: number
  readonly tenantMaxSockets: number
  readonly tenantMaxSubscriptions: number
  readonly tenantMaxSubscriptionGroups: number
  readonly tenantMaxLiveQueries: number
  readonly maxLiveQueries: number
  readonly maxSockets: number
  readonly socketMaxSubscriptions: number
  readonly socketMaxLiveQueries: number
  /** Looks of one tenant at changes that may be another's. */
  readonly tenantMaxUnroutedQueriesPerSec: number
  readonly unroutedResyncIntervalMs: number
}

/** Gives back what was taken; once. */
export type Release = () => void

export interface Seat {
  /** Counts the socket for this caller instead of the one before. Throws `CONCURRENCY_LIMIT`. */
  claim(identity: Identity): void
  /** A socket that has `held` of them may have another. Throws `FORBIDDEN`. */
  assertRoom(kind: 'subscription' | 'live query', held: number): void
  leave(): void
}

export interface Quotas {
  /** A socket of this address. Throws `CONCURRENCY_LIMIT`, or `UNAVAILABLE` where the process has too many. */
  seat(address: string | number): Seat
  /** A subscription or a live query. Throws `CONCURRENCY_LIMIT`. */
  subscription(identity: Identity): Release
  /** A share in the group of this name. `beyond`: a group that was split while it existed is never refused. Throws `CONCURRENCY_LIMIT`. */
  group(identity: Identity, name: string, beyond: Beyond): Release
  /** The same for the live query of this name, which is a group as well. Throws `UNAVAILABLE` where the process has too many. */
  liveQuery(identity: Identity, name: string, beyond: Beyond): Release
  /** By the key of the limit. */
  refusals(): Readonly<Record<string, number>>
}

export type Beyond = 'refuse' | 'count'

export function createQuotas(limits: RealtimeLimits): Quotas {
  const sockets = createBudget<string | number>({ max: limits.maxSockets, shareMax: limits.addressMaxSockets })
  const ofTenants = createBudget<string>({ max: 0, shareMax: limits.tenantMaxSockets })
  const subscriptions = createBudget<string>({ max: 0, shareMax: limits.tenantMaxSubscriptions })
  const groups = createBudget<string>({ max: 0, shareMax: limits.tenantMaxSubscriptionGroups })
  const queries = createBudget<string>({ max: limits.maxLiveQueries, shareMax: limits.tenantMaxLiveQueries })
  const ofSocket = { socket_max_subscriptions: 0, socket_max_live_queries: 0 }
  /** Of each group and live query, how many of the caller's subscriptions share it. */
  const shares = new Map<string, number>()

  function group(identity: Identity, name: string, beyond: Beyond): Release {
    const what = 'different subscriptions and live queries'
    const refuse = () =>
      tooMany(who(identity), limits.tenantMaxSubscriptionGroups, what, 'tenant_max_subscription_groups')
    return share(groups, { holder: callerKey(identity), name, beyond }, refuse)
  }

  /** Those that share it count once. */
  function share(
    budget: Budget<string | null>,
    { holder, name, beyond }: { readonly holder: string; readonly name: string; readonly beyond: Beyond },
    refuse: (limit: 'total' | 'share') => GatewayError,
  ): Release {
    const key = JSON.stringify([holder, name])
    const count = shares.get(key) ?? 0
    if (count === 0 && beyond === 'refuse') take(budget, holder, refuse)
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
          ? tooMany('this address has', limits.addressMaxSockets, 'sockets', 'address_max_sockets')
          : full(limits.maxSockets, 'sockets', 'max_sockets'),
      )
      let holder: string | null = null
      let leaveTenant: Release = () => {}
      return {
        claim(identity) {
          const next = callerKey(identity)
          if (next === holder) return
          const refuse = () => tooMany(who(identity), limits.tenantMaxSockets, 'sockets', 'tenant_max_sockets')
          const release = take(ofTenants, next, refuse)
          leaveTenant()
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
          throw new GatewayError('FORBIDDEN', `a connection has at most ${max} ${what} (${key}); open another`)
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
        tooMany(who(identity), max, what, 'tenant_max_subscriptions'),
      )
    },
    group,
    liveQuery(identity, name, beyond) {
      const holder = callerKey(identity)
      const leaveGroup = group(identity, `live query ${name}`, beyond)
      try {
        const stop = share(queries, { holder, name: `run of ${name}`, beyond }, limit =>
          limit === 'share'
            ? tooMany(who(identity), limits.tenantMaxLiveQueries, 'different live queries', 'tenant_max_live_queries')
            : full(limits.maxLiveQueries, 'different live queries', 'max_live_queries'),
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
    `${holder} ${max} ${what} already (${key}); close some, or try again later`,
    RETRY,
  )
}

function full(max: number, what: string, key: string): GatewayError {
  return new GatewayError('UNAVAILABLE', `the gateway has ${max} ${what} already (${key}); try again later`, RETRY)
}

function who({ tenantId }: Identity): string {
  return tenantId === '' ? 'this caller has' : 'the tenant has'
}

function once(release: Release): Release {
  let isHeld = true
  return () => {
    if (isHeld) release()
    isHeld = false
  }
}
