/** The capacity model: processors, gateways, connections and memory for an expected load. */
import {
  CAPTURED_CHANGE,
  type CpuCost,
  GROUP_CHANGE,
  LOG_READ,
  MEMORY_KB,
  NOTIFICATION,
  REQUEST_COSTS,
  type RequestKind,
} from './costs.ts'

/** The expected load at its peak. */
export interface ExpectedLoad {
  readonly requestsPerSecond: number
  /** Parts of the requests by kind, of any sum. */
  readonly mix: Readonly<Partial<Record<RequestKind, number>>>
  readonly sockets: number
  /** Tenants among which the sockets and the changes are spread evenly. */
  readonly tenants: number
  /** Changes of captured rows per second, by any program. */
  readonly changesPerSecond: number
}

/** Properties of the deployment. */
export interface Deployment {
  /** Part of a core that is busy at the peak, from 0 to 1. */
  readonly busy: number
  /** Gateways in addition to those that are needed: one can be away. */
  readonly spareGateways: number
  /** Limits of one gateway of one process. */
  readonly socketsPerGateway: number
  readonly maxConnections: number
  readonly feedConnections: number
  readonly listeners: number
  readonly readIntervalMs: number
  readonly idleReadIntervalMs: number
}

/** What is needed. */
export interface CapacityPlan {
  readonly gateways: number
  /** Gateways for CPU time and gateways for sockets, of which the larger number counts; and spare ones. */
  readonly gatewaysFor: { readonly cpu: number; readonly sockets: number; readonly spare: number }
  /** Cores for gateways, each of which uses at most one. */
  readonly gatewayCores: number
  readonly databaseCores: number
  readonly connections: number
  readonly memoryBytes: number
  readonly memoryBytesPerGateway: number
  readonly logReadsPerSecond: number
  readonly notificationsPerSecond: number
}

/** More gateways are not planned. */
export const GATEWAYS_MAX = 100_000

/** CPU time of a number of requests of each kind, in microseconds. */
export function requestCpu(
  counts: Readonly<Partial<Record<RequestKind, number>>>,
  costs: Readonly<Record<RequestKind, CpuCost>> = REQUEST_COSTS,
): CpuCost {
  let gateway = 0
  let database = 0
  for (const [kind, count] of Object.entries(counts)) {
    const cost = costs[kind as RequestKind]
    gateway += cost.gateway * count
    database += cost.database * count
  }
  return { gateway, database }
}

/** Calculates a plan; null if one gateway cannot even process the changes, however many there are. */
export function planCapacity(load: ExpectedLoad, deployment: Deployment): CapacityPlan | null {
  const { busy, spareGateways } = deployment
  const forSockets = Math.ceil(load.sockets / deployment.socketsPerGateway)
  const atOnce = (gateways: number) => cpuOf(load, deployment, gateways).gateway / busy / 1e6
  // Every further gateway reads the log as well, so the work grows with their number.
  let forCpu = 1
  while (atOnce(Math.max(forCpu, forSockets)) > Math.max(forCpu, forSockets)) {
    forCpu = Math.max(forCpu + 1, Math.ceil(atOnce(Math.max(forCpu, forSockets))))
    if (forCpu > GATEWAYS_MAX) return null
  }
  forCpu = Math.max(1, Math.ceil(atOnce(Math.max(forCpu, forSockets))))
  const gateways = Math.max(forCpu, forSockets) + spareGateways
  const { gateway, database, logReads, notifications } = cpuOf(load, deployment, gateways)
  const socketKb = load.changesPerSecond > 0 ? MEMORY_KB.subscribedSocket : MEMORY_KB.idleSocket
  // While one gateway is away, the others have its sockets.
  const socketsEach = Math.ceil(load.sockets / Math.max(1, gateways - spareGateways))
  const memoryBytesPerGateway = 1024 * (MEMORY_KB.gateway + socketKb * socketsEach)
  const { maxConnections, feedConnections, listeners } = deployment
  return {
    gateways,
    gatewaysFor: { cpu: forCpu, sockets: forSockets, spare: spareGateways },
    gatewayCores: gateway / busy / 1e6,
    databaseCores: database / busy / 1e6,
    // One more gateway starts during a rolling update.
    connections: (gateways + 1) * (maxConnections + (load.sockets > 0 ? feedConnections : 0) + listeners),
    memoryBytes: gateways * memoryBytesPerGateway,
    memoryBytesPerGateway,
    logReadsPerSecond: logReads,
    notificationsPerSecond: notifications,
  }
}

/** Microseconds of CPU time per second, of all gateways together and of PostgreSQL. */
function cpuOf(load: ExpectedLoad, deployment: Deployment, gateways: number) {
  const { requestsPerSecond, mix, changesPerSecond, sockets, tenants } = load
  const parts = Object.values(mix).reduce((sum, part) => sum + part, 0)
  const counts = Object.entries(mix).map(([kind, part]) => [kind, (requestsPerSecond * part) / parts])
  const requests = requestCpu(Object.fromEntries(counts))
  const reading = sockets === 0 ? 0 : gateways
  const intervalMs = changesPerSecond > 0 ? deployment.readIntervalMs : deployment.idleReadIntervalMs
  const logReads = (reading * 1_000) / intervalMs
  const perTenant = sockets / tenants
  // The sockets of a tenant are spread over the gateways; a gateway without one evaluates nothing for it.
  const groups = Math.min(perTenant, reading)
  const groupChanges = changesPerSecond * groups
  const notifications = changesPerSecond * perTenant
  const further = notifications - groupChanges
  const sum = (of: keyof CpuCost) =>
    requests[of] +
    CAPTURED_CHANGE[of] * changesPerSecond +
    LOG_READ[of] * logReads +
    GROUP_CHANGE[of] * groupChanges +
    NOTIFICATION[of] * further
  return { gateway: sum('gateway'), database: sum('database'), logReads, notifications }
}
