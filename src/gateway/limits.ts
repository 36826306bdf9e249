/** The limits that count requests and connections: in this process, or shared with the other workers. */
import { randomBytes } from 'node:crypto'
import type { SharedLimit } from '../cluster/messages.ts'
import type { Peers } from '../cluster/peers.ts'
import type { GatewayConfig } from '../config/config.ts'
import { callerKey } from '../limits/budget.ts'
import { type ConnectionSlots, createConnectionSlots, createLeasedSlots } from '../limits/connection-slots.ts'
import { createLeases, type LeaseStore, type Leases, type UnitKind } from '../limits/leases.ts'
import { createRateLimit, type RateLimit, rateKey } from '../limits/rate.ts'
import { createTenantLimit, type TenantLimit } from '../limits/tenant-limit.ts'
import type { SharedState } from '../shared/shared-state.ts'

/** The limits of a gateway. */
export interface CountedLimits {
  /** Null: no limit. */
  readonly rate: RateLimit | null
  readonly tenants: TenantLimit | null
  readonly connections: ConnectionSlots
  /** Gives up the units of a holder that are not in use, for another worker. */
  readonly surrender: (limit: SharedLimit, holder: string) => number
  close(): void
}

const now = () => performance.now()

/**
 * Creates the limits. `peers` is null for a gateway of one process, `shared` for one that shares nothing with
 * other machines.
 */
export function createCountedLimits(
  gateway: GatewayConfig,
  peers: Peers | null,
  shared: SharedState | null,
): CountedLimits {
  return peers === null && shared === null ? createOwnLimits(gateway) : createSharedLimits(gateway, peers, shared)
}

function createOwnLimits(gateway: GatewayConfig): CountedLimits {
  const { rateLimitRate: rate, rateLimitBurst: burst } = gateway
  return {
    rate: createRateLimit({ rate, burst, now, seed: randomBytes(4).readUInt32LE() }),
    tenants: createTenantLimit(gateway.tenantMaxConcurrent),
    connections: createOwnConnections(gateway),
    surrender: () => 0,
    close() {},
  }
}

function createOwnConnections(gateway: GatewayConfig): ConnectionSlots {
  return createConnectionSlots({ max: gateway.maxClientConnections, shareMax: gateway.addressMaxClientConnections })
}

function createSharedLimits(gateway: GatewayConfig, peers: Peers | null, shared: SharedState | null): CountedLimits {
  const all = new Map<SharedLimit, Leases>()

  /** Connections are counted for one machine, because each has its own. */
  const storeOf = (limit: SharedLimit): LeaseStore | null =>
    shared !== null && (limit === 'requests' || limit === 'tenants')
      ? shared.storeOf(limit)
      : (peers?.storeOf(limit) ?? null)

  /** Null if the limit is turned off, or not shared. */
  function leasesOf(limit: SharedLimit, kind: UnitKind, max: number): Leases | null {
    const store = storeOf(limit)
    if (max === 0 || store === null) return null
    const leases = createLeases({ store, kind, now, every })
    all.set(limit, leases)
    return leases
  }

  const { rateLimitRate, rateLimitBurst } = gateway
  const requests = leasesOf('requests', 'tokens', Math.min(rateLimitRate, rateLimitBurst))
  const tenants = leasesOf('tenants', 'permits', gateway.tenantMaxConcurrent)
  return {
    rate: requests === null ? null : { take: address => requests.take(rateKey(address)) },
    tenants:
      tenants === null
        ? null
        : {
            enter: caller => tenants.take(callerKey(caller)),
            hold: caller => tenants.hold(callerKey(caller)),
            leave: caller => tenants.leave(callerKey(caller)),
          },
    connections:
      peers === null
        ? createOwnConnections(gateway)
        : createLeasedSlots(
            leasesOf('connections', 'permits', gateway.maxClientConnections),
            leasesOf('address connections', 'permits', gateway.addressMaxClientConnections),
          ),
    surrender: (limit, holder) => all.get(limit)?.surrender(holder) ?? 0,
    close() {
      for (const leases of all.values()) leases.close()
    },
  }
}

function every(intervalMs: number, call: () => void): () => void {
  const timer = setInterval(call, intervalMs)
  timer.unref()
  return () => clearInterval(timer)
}
