/** What one address and one tenant may hold of `/ws`: sockets, subscriptions, and groups that each change is looked at for. */
import { GatewayError } from '../errors.ts'
import type { Identity } from '../identity/identity.ts'
import { type Budget, callerKey, createBudget } from '../limits/budget.ts'

/** Connections of `/ws` of one process. */
export const SOCKETS_MAX = 20_000

/** 0: no limit. */
export interface RealtimeLimits {
  readonly addressMaxSockets: number
  readonly tenantMaxSockets: number
  readonly tenantMaxSubscriptions: number
  readonly tenantMaxSubscriptionGroups: number
}

/** Gives back what was taken; once. */
export type Release = () => void

export interface Seat {
  /** Counts the socket for this caller instead of the one before. Throws `CONCURRENCY_LIMIT`. */
  claim(identity: Identity): void
  leave(): void
}

export interface Quotas {
  /** A socket of this address. Throws `CONCURRENCY_LIMIT`, or `UNAVAILABLE` where the process has too many. */
  seat(address: string | number): Seat
  /** A subscription or a live query. Throws `CONCURRENCY_LIMIT`. */
  subscription(identity: Identity): Release
  /** A share in the group of this name. `beyond`: a group that was split while it existed is never refused. Throws `CONCURRENCY_LIMIT`. */
  group(identity: Identity, name: string, beyond: 'refuse' | 'count'): Release
  /** By the key of the limit. */
  refusals(): Readonly<Record<string, number>>
}

export function createQuotas(limits: RealtimeLimits): Quotas {
  const sockets = createBudget<string | number>({ max: SOCKETS_MAX, shareMax: limits.addressMaxSockets })
  const ofTenants = createBudget<string>({ max: 0, shareMax: limits.tenantMaxSockets })
  const subscriptions = createBudget<string>({ max: 0, shareMax: limits.tenantMaxSubscriptions })
  const groups = createBudget<string>({ max: 0, shareMax: limits.tenantMaxSubscriptionGroups })
  /** Of each group, how many of the caller's subscriptions share it. */
  const shares = new Map<string, number>()

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
          : new GatewayError('UNAVAILABLE', `${SOCKETS_MAX} sockets are open already; try again later`, RETRY),
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
    group(identity, name, beyond) {
      const holder = callerKey(identity)
      const key = JSON.stringify([holder, name])
      const count = shares.get(key) ?? 0
      const max = limits.tenantMaxSubscriptionGroups
      const what = 'different subscriptions and live queries'
      const refuse = () => tooMany(who(identity), max, what, 'tenant_max_subscription_groups')
      if (count > 0 || beyond === 'count') {
        if (count === 0) groups.take(holder, 1)
      } else take(groups, holder, refuse)
      shares.set(key, count + 1)
      return once(() => {
        const left = (shares.get(key) ?? 1) - 1
        if (left > 0) {
          shares.set(key, left)
          return
        }
        shares.delete(key)
        groups.give(holder, 1)
      })
    },
    refusals: () => ({
      address_max_sockets: sockets.refusals.share,
      tenant_max_sockets: ofTenants.refusals.share,
      tenant_max_subscriptions: subscriptions.refusals.share,
      tenant_max_subscription_groups: groups.refusals.share,
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
