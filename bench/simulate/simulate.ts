/**
 * A thousand gateways in virtual time, with the gateway's own code for reading the change log, connecting and
 * leasing. The results depend only on the seed, not on the machine. simulation.test.ts checks the invariants
 * with fewer gateways.
 */
import type { Benchmark, Figures } from '../harness/benchmark.ts'
import { simulateLeases } from './leases.ts'
import { simulateLogReading } from './log-reading.ts'
import { simulateReconnects } from './reconnects.ts'

const GATEWAYS = 1_000
const SEED = 20_261_127
const LOG_CORES = 64
const CONNECT_CORES = 16

export const simulate: Benchmark = {
  name: 'simulate',
  title: 'A thousand gateways in virtual time',
  tools: [],
  roundsMax: 1,
  checks: [],
  async prepare() {
    const shared = { gateways: GATEWAYS, seed: SEED }
    const leases = (permits: number) => ({
      name: `${permits} permits of one tenant, twice as many requests`,
      measure: async (): Promise<Figures> => {
        const result = await simulateLeases({
          ...{ ...shared, permits, requestsPerSecond: permits * 40, holdMs: 50, roundTripMs: 1, seconds: 5 },
        })
        return {
          'of the limit at most': result.mostUsed,
          'of the limit on average': result.used,
          'deviation of gateways': result.unevenness,
          'messages/s': result.messagesPerSecond,
        }
      },
    })
    return [
      {
        name: `log reading, ${LOG_CORES} cores, 20 changes a second, database away for 2 s`,
        async measure(): Promise<Figures> {
          const scenario = { cores: LOG_CORES, changesPerSecond: 20, secondsBefore: 3, secondsAway: 2, secondsAfter: 2 }
          const result = await simulateLogReading({ ...shared, ...scenario })
          return {
            'reads/s': result.readsPerSecond,
            'of the database': result.databaseBusy,
            'ms p99': result.delayMsP99,
            'attempts/s of a gateway while away': result.attemptsPerGateway,
            'of the gateways within 10 ms': result.attemptsAtOnce,
            'changes lost or repeated': result.wrong,
          }
        },
      },
      {
        name: `reconnecting 10 connections each, ${CONNECT_CORES} cores, database away for 8 s`,
        async measure(): Promise<Figures> {
          const scenario = { connectionsEach: 10, cores: CONNECT_CORES, connectMs: 5, secondsAway: 8, secondsAfter: 60 }
          const result = await simulateReconnects({ ...shared, ...scenario })
          return {
            'attempts/s of a gateway while away': result.attemptsPerGateway,
            'of the gateways within 100 ms': result.attemptsAtOnce,
            's to the first connection of each': result.secondsToFirst,
            's to all': result.secondsToAll,
            'attempts in the longest queue': result.longestQueue,
          }
        },
      },
      ...[100, 1_000, 4_000].map(leases),
    ]
  },
}
