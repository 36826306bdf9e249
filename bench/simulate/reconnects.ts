/** Many gateways that lose all connections at once, and open them again when the database is back. */
import { ConnectionFactory } from '../../src/postgres/connection-factory.ts'
import { ConnectError } from '../../src/postgres/errors.ts'
import type { Connected } from '../../src/postgres/startup.ts'
import { parseUrl } from '../../src/postgres/url.ts'
import { AttemptCount } from './attempt-count.ts'
import { createSimulatedDatabase } from './simulated-database.ts'
import { randomOf, startVirtualTime } from './virtual-time.ts'

export interface ReconnectScenario {
  readonly gateways: number
  readonly connectionsEach: number
  readonly cores: number
  /** CPU time of the database for one connection: a process, authentication, session settings. */
  readonly connectMs: number
  readonly secondsAway: number
  readonly secondsAfter: number
  readonly seed: number
}

export interface ReconnectResult {
  /** Attempts per second and gateway while the database is away. */
  readonly attemptsPerGateway: number
  /** The most attempts within 100 ms after the first second of the outage, as a part of the gateways. */
  readonly attemptsAtOnce: number
  /** Seconds from the return of the database until every gateway has a connection, and all of them. */
  readonly secondsToFirst: number
  readonly secondsToAll: number
  readonly longestQueue: number
}

/** An outage shorter than `connect_timeout`, whose expiry is not simulated. */
export async function simulateReconnects(scenario: ReconnectScenario): Promise<ReconnectResult> {
  const { gateways, connectionsEach, cores, connectMs, secondsAway, secondsAfter, seed } = scenario
  const time = startVirtualTime()
  try {
    const random = randomOf(seed)
    const database = createSimulatedDatabase(time, cores)
    database.stop()
    const attempts = new AttemptCount({ now: time.now, intervalMs: 100 })
    let firstAt = 0
    let allAt = 0
    let withOne = 0
    let withAll = 0
    const factories = Array.from({ length: gateways }, () => {
      let open = 0
      const factory: ConnectionFactory = new ConnectionFactory({
        ...{ target: parseUrl('postgres://app@db/shop'), throughPooler: false, gss: null },
        ...{ clock: time.now, random },
        async connect() {
          attempts.add()
          await database.work(connectMs).catch(cause => {
            throw new ConnectError('refused', false, cause as Error)
          })
          return {} as Connected
        },
        opened() {
          open++
          if (open === 1 && ++withOne === gateways) firstAt = time.now()
          if (open === connectionsEach && ++withAll === gateways) allAt = time.now()
          want()
        },
        failed() {},
        isWanted: () => open < connectionsEach,
      })
      // As the pool does: requests wait for connections.
      const want = (): void => {
        for (let n = open; n < connectionsEach; n++) factory.open(connectionsEach - open)
      }
      return { factory, want }
    })
    for (const { want } of factories) want()
    await time.run(secondsAway * 1_000)
    const attemptsPerGateway = attempts.total / secondsAway / gateways
    const attemptsAtOnce = attempts.mostAfter(1_000) / gateways
    database.start()
    database.takeLongestQueue()
    const cameBack = time.now()
    await time.run((secondsAway + secondsAfter) * 1_000)
    for (const { factory } of factories) factory.close(new Error('the simulation is over'))
    if (withAll < gateways) throw new Error(`only ${withAll} of ${gateways} gateways have all connections again`)
    return {
      ...{ attemptsPerGateway, attemptsAtOnce },
      secondsToFirst: (firstAt - cameBack) / 1_000,
      secondsToAll: (allAt - cameBack) / 1_000,
      longestQueue: database.takeLongestQueue(),
    }
  } finally {
    time.close()
  }
}
