/** `svc capacity` (docs/operations/scaling.md): calculates what an expected load needs. */
import { REQUEST_COSTS, type RequestKind } from '../capacity/costs.ts'
import { type CapacityPlan, type ExpectedLoad, GATEWAYS_MAX, planCapacity } from '../capacity/plan.ts'
import { GATEWAY } from '../config/settings.ts'
import { IDLE_READ_INTERVAL_MS, READ_INTERVAL_MS } from '../realtime/log.ts'
import { UsageError } from './failure.ts'
import { EXIT, type World } from './world.ts'

/** The options of the command. */
export interface CapacityCommand {
  readonly requests: number
  readonly mix: ExpectedLoad['mix']
  readonly sockets: number
  /** Undefined if it was not given. */
  readonly tenants: number | undefined
  readonly changes: number
  /** Percent of a core that is busy at the peak. */
  readonly busy: number
  readonly connections: number | undefined
  readonly json: boolean
}

/** Prints the plan and its assumptions. */
export function capacity(command: CapacityCommand, world: World): number {
  const { requests, mix, sockets, changes, busy, json } = command
  const tenants = command.tenants ?? 1
  if (command.tenants === undefined && sockets > 0 && changes > 0)
    throw new UsageError(
      '--tenants is required with --sockets and --changes: a change is delivered to the sockets of its tenant; add ' +
        'the number of tenants that are connected',
    )
  const deployment = {
    ...{ busy: busy / 100, spareGateways: 1, socketsPerGateway: GATEWAY.maxSockets.default },
    maxConnections: command.connections ?? GATEWAY.maxConnections.default,
    ...{ feedConnections: GATEWAY.feedMaxConnections.default, listeners: 2 },
    ...{ readIntervalMs: READ_INTERVAL_MS, idleReadIntervalMs: IDLE_READ_INTERVAL_MS },
  }
  const load = { requestsPerSecond: requests, mix, sockets, tenants, changesPerSecond: changes }
  const plan = planCapacity(load, deployment)
  if (plan === null) {
    world.error(
      `more than ${GATEWAYS_MAX} gateways would be needed: every gateway reads all ${changes} changes per second, so ` +
        'more gateways do not help; reduce --changes, or divide the tenants among several databases',
    )
    return EXIT.failed
  }
  const assumptions = assumptionsOf(load, deployment.busy, deployment.socketsPerGateway)
  if (json) world.out(JSON.stringify({ ...jsonOf(plan), assumptions }, null, 2))
  else for (const line of linesOf(plan, deployment, assumptions)) world.out(line)
  return EXIT.ok
}

function jsonOf(plan: CapacityPlan) {
  return {
    gateways: plan.gateways,
    gateways_for: plan.gatewaysFor,
    gateway_cores: rounded(plan.gatewayCores),
    database_cores: rounded(plan.databaseCores),
    connections: plan.connections,
    memory_bytes: Math.round(plan.memoryBytes),
    memory_bytes_per_gateway: Math.round(plan.memoryBytesPerGateway),
    log_reads_per_second: rounded(plan.logReadsPerSecond),
    notifications_per_second: rounded(plan.notificationsPerSecond),
  }
}

function linesOf(
  plan: CapacityPlan,
  { maxConnections }: { readonly maxConnections: number },
  assumptions: readonly string[],
): readonly string[] {
  const { cpu, sockets, spare } = plan.gatewaysFor
  const mebibytes = (bytes: number) => `${Math.ceil(bytes / 2 ** 20)} MiB`
  const rows = [
    ['gateways', plan.gateways, `${cpu} for CPU, ${sockets} for sockets: the larger number, and ${spare} spare`],
    ['cores of gateways', rounded(plan.gatewayCores), 'all processes together; each uses at most one'],
    ['cores of PostgreSQL', rounded(plan.databaseCores), ''],
    [
      'connections',
      plan.connections,
      `of all gateways and one more during an update; max_connections = ${maxConnections}`,
    ],
    ['memory', mebibytes(plan.memoryBytes), `${mebibytes(plan.memoryBytesPerGateway)} for each gateway`],
    ['log reads', rounded(plan.logReadsPerSecond), 'per second, of the change log'],
    ['notifications', rounded(plan.notificationsPerSecond), 'per second'],
  ] as const
  return [
    ...rows.map(([name, value, remark]) => `${name.padEnd(21)}${String(value).padEnd(12)}${remark}`.trimEnd()),
    '',
    'Assumptions:',
    ...assumptions.map(text => `- ${text}`),
  ]
}

function assumptionsOf({ mix }: ExpectedLoad, busy: number, socketsPerGateway: number): readonly string[] {
  const kinds = Object.entries(mix).map(([kind, part]) => {
    const { title, gateway, database } = REQUEST_COSTS[kind as RequestKind]
    const costs = `${gateway} µs of CPU time in a gateway and ${database} µs in PostgreSQL`
    return `${kind} (${title}), proportion ${part}: ${costs}`
  })
  return [
    ...kinds,
    `cores are ${Math.round(busy * 100)} % busy at the peak, and as fast as those of bench/RESULTS.md`,
    'rows are in memory, statements use an index, and commits do not wait for the disk',
    `requests, sockets and changes are spread evenly; a gateway has at most ${socketsPerGateway} sockets (max_sockets)`,
    'each socket has one subscription, and tenants see only their own rows by routable policies',
    'each gateway is one process, without TLS, a log line for each request, and the memory of the result cache',
  ]
}

function rounded(value: number): number {
  return Number(value.toPrecision(3))
}
