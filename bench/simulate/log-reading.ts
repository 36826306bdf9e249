/** Many gateways that read the change log of one database, before, during and after an outage. */
import { LOG_READ } from '../../src/capacity/costs.ts'
import { ChangeLog } from '../../src/realtime/log.ts'
import type { LogEntry, LogResult } from '../../src/realtime/log-statements.ts'
import { AttemptCount } from './attempt-count.ts'
import { createSimulatedDatabase } from './simulated-database.ts'
import { randomOf, startVirtualTime } from './virtual-time.ts'

export interface LogReadingScenario {
  readonly gateways: number
  readonly cores: number
  readonly changesPerSecond: number
  /** Lengths of the three parts. */
  readonly secondsBefore: number
  readonly secondsAway: number
  readonly secondsAfter: number
  readonly seed: number
}

export interface LogReadingResult {
  readonly readsPerSecond: number
  /** Part of the database's cores that reading takes. */
  readonly databaseBusy: number
  /** Attempts per second and gateway while the database is away. */
  readonly attemptsPerGateway: number
  /** The most attempts within `ATTEMPT_INTERVAL_MS` while the database is away, as a part of the gateways. */
  readonly attemptsAtOnce: number
  /** Changes that a gateway did not receive exactly once; 0 is correct. */
  readonly wrong: number
  readonly delayMsP99: number
}

const TABLE = 'public.prices'

/** Attempts within this time count as simultaneous. */
const ATTEMPT_INTERVAL_MS = 10

/** Within this time, each gateway has made the read that was due when the outage began. */
const READ_INTERVAL_MS = 50

export async function simulateLogReading(scenario: LogReadingScenario): Promise<LogReadingResult> {
  const { gateways, cores, changesPerSecond, secondsBefore, secondsAway, secondsAfter, seed } = scenario
  const time = startVirtualTime()
  try {
    const random = randomOf(seed)
    const database = createSimulatedDatabase(time, cores)
    const committedAt: number[] = []
    const received = Array.from({ length: gateways }, () => 0)
    const delays: number[] = []
    let reads = 0
    let wrong = 0
    let isAway = false
    const attempts = new AttemptCount({ now: time.now, intervalMs: ATTEMPT_INTERVAL_MS })

    const logs = received.map((_, gateway) => {
      const log = new ChangeLog({
        // Every read goes through `shareRead`.
        ...{ database: { run: unused }, now: time.now, onBroken() {}, random },
        async shareRead<T>({ from }: { readonly from: string }) {
          if (isAway) attempts.add()
          await database.work(LOG_READ.database / 1_000)
          reads++
          const seen = from === '' ? committedAt.length : Number(from.split(':')[1]) - 1
          return { result: resultAfter(seen, committedAt.length) as T, ageMs: 0, isOwn: true }
        },
      })
      log.listen(TABLE, {
        changed(changes) {
          for (const { txid } of changes) {
            if (Number(txid) !== (received[gateway] ?? 0) + 1) wrong++
            received[gateway] = Number(txid)
            if (!isAway && time.now() < secondsBefore * 1_000)
              delays.push(time.now() - (committedAt[Number(txid) - 1] ?? 0))
          }
        },
        ...{ invalidate: () => void wrong++, unavailable() {}, routeBy: () => null },
      })
      return log
    })
    await time.run(1_000)
    const commits = time.every(1_000 / changesPerSecond, () => {
      if (!isAway) committedAt.push(time.now())
    })

    const from = { reads, busy: database.busyMs }
    await time.run(secondsBefore * 1_000)
    const seconds = secondsBefore - 1
    const [readsPerSecond, databaseBusy] = [
      (reads - from.reads) / seconds,
      (database.busyMs - from.busy) / (seconds * 1_000 * cores),
    ]

    isAway = true
    database.stop()
    await time.run((secondsBefore + secondsAway) * 1_000)
    const attemptsPerGateway = attempts.total / secondsAway / gateways
    isAway = false
    database.start()
    await time.run((secondsBefore + secondsAway + secondsAfter) * 1_000)
    commits()
    await time.run((secondsBefore + secondsAway + secondsAfter + 2) * 1_000)
    for (const log of logs) log.close()
    // Changes that were missed at the end.
    for (const last of received) if (last !== committedAt.length) wrong++
    const sorted = delays.toSorted((one, other) => one - other)
    return {
      ...{ readsPerSecond, databaseBusy, attemptsPerGateway, wrong },
      // Reads that were due when the outage began are not attempts to recover from it.
      attemptsAtOnce: attempts.mostAfter(secondsBefore * 1_000 + READ_INTERVAL_MS) / gateways,
      delayMsP99: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
    }
  } finally {
    time.close()
  }
}

function unused(): never {
  throw new Error('every read is shared')
}

/** Change n is transaction n. */
function resultAfter(seen: number, committed: number): LogResult {
  const entries = Array.from({ length: committed - seen }, (_, n): LogEntry => {
    const txid = String(seen + n + 1)
    return {
      ...{
        txid,
        storedBy: null,
        at: '2026-01-01T00:00:00Z',
        table: TABLE,
        operation: 'U',
        key: '{"id":1}',
        oldKey: null,
        old: null,
      },
      routes: [null, null],
    }
  })
  const next = BigInt(committed + 1)
  return {
    entries,
    snapshot: { xmin: next, xmax: next, open: [] },
    epoch: 'epoch',
    deletedUpTo: 0n,
    usesWal: false,
    wal: null,
  }
}
