/**
 * Decides where a read runs, for all entry points (docs/operations/replicas.md, decision 0038). A read goes
 * to a replica only if its request permits it (`Work.consistency`), and only to one that has replayed
 * everything that the read must see: what the caller has written, and what was committed before the limit on
 * the lag. The replica verifies that itself, in the transaction of the read (`GUARD`). The
 * primary answers what a replica cannot, within the same deadline.
 */
import type { Identity } from '../../identity/identity.ts'
import { callerKey } from '../../limits/budget.ts'
import { CancelledError, DatabaseError, UnavailableError } from '../../postgres/errors.ts'
import { type Lsn, parseLsn, printLsn } from '../../postgres/replication/lsn.ts'
import type { Command, Result, ResultRow, RunningRequest, ServerTime } from '../../postgres/types.ts'
import type { Consistency } from '../../usage.ts'
import { isOversize } from '../errors.ts'
import type { PrimaryPosition } from './primary-position.ts'
import type { Replica, ReplicaState } from './replica.ts'
import { type WrittenPositions, writerOf } from './written-positions.ts'

/** A read that goes to a replica. */
export interface ReplicaRoute {
  readonly replica: Replica
  /** The position that the read must see. */
  readonly lsn: Lsn
  /** Its caller's flow and the text of its statement, or of the first of them. */
  readonly statement: string
}

/**
 * Why a read that could go to a replica went to the primary: the request demands it, no replica is reachable,
 * none is within the limit on the lag, none has what the caller must see, or replicas refuse the statement.
 */
export const PRIMARY_REASONS = ['strong', 'unavailable', 'lag', 'position', 'refused'] as const
export type PrimaryReason = (typeof PRIMARY_REASONS)[number]

/** Why a read that was sent to a replica was sent to the primary as well. */
export const FALLBACK_REASONS = ['behind', 'conflict', 'unavailable', 'error'] as const
export type FallbackReason = (typeof FALLBACK_REASONS)[number]

/** Figures of the replicas. */
export interface ReplicaStats {
  readonly replicas: readonly {
    readonly name: string
    readonly state: ReplicaState
    /** The replica has replayed everything that was committed this long ago; null if unknown. */
    readonly lagMs: number | null
    readonly running: number
    readonly reads: number
  }[]
  readonly primary: Readonly<Record<PrimaryReason, number>>
  readonly fallbacks: Readonly<Record<FallbackReason, number>>
}

/** The dependencies of the routes. */
export interface ReadRoutesParts {
  readonly replicas: readonly Replica[]
  readonly position: PrimaryPosition
  readonly written: WrittenPositions
  /**
   * Reports a write to the other workers; resolves when their reads will see it. Null if there is only this
   * process.
   */
  readonly wroteElsewhere: ((writer: string, position: string | null) => Promise<void>) | null
  /** Limit on the wait for the position after a write. */
  readonly positionTimeoutMs: number
  /** How long a write without a response can continue. */
  readonly statementTimeoutMs: number
  /** Monotonic milliseconds. */
  readonly now: () => number
}

/** Part of the error of `GUARD`, in any language: PostgreSQL quotes the text. */
const BEHIND = 'svc: the replica has replayed '

/**
 * The second command of a read on a replica. Functions are called for every execution, so the text is
 * converted, which fails, only if the condition is false. A server that has been promoted fails as well.
 */
const GUARD =
  'SELECT CASE WHEN pg_catalog.pg_is_in_recovery() AND pg_catalog.pg_last_wal_replay_lsn() >= $1::pg_catalog.pg_lsn ' +
  `THEN 0 ELSE pg_catalog.concat('${BEHIND}', pg_catalog.pg_last_wal_replay_lsn())::pg_catalog.int4 END`

/** Limit on how often reads that need a newer position of the primary read it. */
const POSITION_GAP_MS = 20

/** For how long a statement that only the primary could answer goes to the primary. */
const REFUSED_MS = 60_000
/** Limit on such statements. */
const REFUSED_MAX = 1_000
/** Limit on the characters of such a statement; longer ones are tried on a replica every time. */
const REFUSED_CHARACTERS_MAX = 8_192
/**
 * Errors by which a standby refuses what the primary can do: writes and notifications, functions that need a
 * primary, the isolation level, and names that it does not have yet (PostgreSQL manual, appendix A).
 */
const REFUSALS = /^(?:25006|55000|0A000|42)/

/** Conflict with recovery (PostgreSQL manual, 26.4.2): a serialization failure. */
const CONFLICT = '40001'

/** Decides where reads run, and runs those that go to replicas. */
export class ReadRoutes {
  readonly #parts: ReadRoutesParts
  readonly #primary = Object.fromEntries(PRIMARY_REASONS.map(reason => [reason, 0])) as Record<PrimaryReason, number>
  readonly #fallbacks = Object.fromEntries(FALLBACK_REASONS.map(of => [of, 0])) as Record<FallbackReason, number>
  /** Texts of statements that only the primary could answer, and until when they go there. */
  readonly #refused = new Map<string, number>()
  /** The replica that is considered first. */
  #first = 0

  constructor(parts: ReadRoutesParts) {
    this.#parts = parts
  }

  /** The route of a read; null if it goes to the primary. `consistency` undefined: it always does. */
  routeOf(caller: Identity, text: string, consistency: Consistency | undefined): ReplicaRoute | null {
    if (consistency === undefined) return null
    const found = this.#find(caller, text, consistency)
    if (typeof found !== 'string') return found
    this.#primary[found] += 1
    return null
  }

  /** Runs a read on its replica. `commands` makes them for the time that is left; the first begins them. */
  run(
    { replica, lsn, statement }: ReplicaRoute,
    worked: ServerTime,
    commands: () => readonly Command[],
    onPrimary: () => RunningRequest<readonly Result[]>,
  ): RunningRequest<readonly Result[]> {
    const [first, ...others] = commands()
    if (first === undefined) return onPrimary()
    const clock = this.#clock(worked)
    let running = this.#started(replica, replica.pool.run([first, guard(lsn), ...others], worked))
    let isCancelled = false
    const result = running.result.then(
      ([settings, _guard, ...results]) => {
        replica.reads += 1
        return [settings as Result, ...results]
      },
      async error => {
        if (isCancelled || !isForPrimary(error)) throw error
        this.#failed(replica, error, clock)
        running = onPrimary()
        const results = await running.result
        this.#answeredByPrimary(statement, error)
        return results
      },
    )
    return {
      result,
      cancel() {
        isCancelled = true
        running.cancel()
      },
    }
  }

  /** Streams a read from its replica, or from the primary if the replica fails before the first rows. */
  stream(
    { replica, lsn, statement }: ReplicaRoute,
    worked: ServerTime,
    open: (from: Pick<Replica['pool'], 'stream'>, more: readonly Command[]) => AsyncIterableIterator<RowBlock>,
    onPrimary: () => AsyncIterableIterator<RowBlock>,
  ): AsyncIterableIterator<RowBlock> {
    const clock = this.#clock(worked)
    let rows = open(replica.pool, [guard(lsn)])
    let phase: 'replica' | 'started' | 'ended' = 'replica'
    replica.running += 1
    const end = () => {
      if (phase !== 'ended') replica.running -= 1
      phase = 'ended'
    }
    const isEnded = () => phase === 'ended'
    const first = async (): Promise<IteratorResult<RowBlock>> => {
      try {
        const block = await rows.next()
        replica.reads += 1
        return block
      } catch (error) {
        if (isEnded() || !isForPrimary(error)) throw error
        this.#failed(replica, error, clock)
        end()
        rows = onPrimary()
        const block = await rows.next()
        this.#answeredByPrimary(statement, error)
        return block
      }
    }
    return {
      async next() {
        const isFirst = phase === 'replica'
        try {
          const block = await (isFirst ? first() : rows.next())
          if (phase === 'replica') phase = 'started'
          if (block.done === true) end()
          return block
        } catch (error) {
          end()
          throw error
        }
      },
      async return() {
        end()
        return (await rows.return?.()) ?? { done: true, value: undefined }
      },
      [Symbol.asyncIterator]() {
        return this
      },
    }
  }

  /**
   * Called when a write of this caller is committed, before it is answered: reads its position. If that takes
   * too long, the caller's reads go to the primary until it is known.
   */
  async wrote(caller: Identity, worked: ServerTime & { wrote?: string }): Promise<void> {
    const { position, written, wroteElsewhere, positionTimeoutMs, now } = this.#parts
    const writer = writerOf(caller)
    written.mayWrite(writer, now())
    const sample = await within(position.read(), positionTimeoutMs)
    const printed = sample === null ? null : printLsn(sample.lsn)
    if (printed !== null) worked.wrote = printed
    // Replaces the time that was recorded above.
    written.requiredBy(caller, position.latest)
    await wroteElsewhere?.(writer, printed)
  }

  /** Called when it is unknown whether a write was or will be committed. */
  mayWrite(caller: Identity): void {
    const writer = writerOf(caller)
    this.wroteThere(writer, null)
    void this.#parts.wroteElsewhere?.(writer, null)
  }

  /** Called when a caller has written through another worker; `position` null: it is unknown what. */
  wroteThere(writer: string, position: string | null): void {
    const { written, statementTimeoutMs, now } = this.#parts
    if (position === null) written.mayWrite(writer, now() + statementTimeoutMs)
    else written.wrote(writer, parseLsn(position))
  }

  /** Called when the schema has changed: reads must see everything until now. */
  changed(): void {
    this.#refused.clear()
    this.#parts.written.changed(this.#parts.now())
    this.#readPosition()
  }

  stats(): ReplicaStats {
    const { replicas, position } = this.#parts
    return {
      replicas: replicas.map(({ name, state, replayed, running, reads }) => ({
        ...{ name, state, running, reads },
        lagMs: state === 'available' ? position.lagMs(replayed) : null,
      })),
      primary: { ...this.#primary },
      fallbacks: { ...this.#fallbacks },
    }
  }

  #find(caller: Identity, text: string, { isStrong, after, since }: Consistency): ReplicaRoute | PrimaryReason {
    const { replicas, position, written } = this.#parts
    if (isStrong) return 'strong'
    if (!replicas.some(({ state }) => state === 'available')) return 'unavailable'
    const statement = `${callerKey(caller)} ${text}`
    if (this.#isRefused(statement)) return 'refused'
    const floor = position.floor()
    if (floor === null) return 'lag'
    const { latest } = position
    const own = written.requiredBy(caller, latest)
    if (own === null || (since !== undefined && (latest === null || latest.at < since))) {
      this.#readPosition()
      return 'position'
    }
    const ofSince = since === undefined ? 0n : (latest?.lsn ?? 0n)
    const required = [own, after, ofSince].reduce(greater)
    const lsn = greater(floor, required)
    const replica = this.#idlest(lsn)
    if (replica !== null) return { replica, lsn, statement }
    // A position that the primary has not reached is not waited for.
    if (lsn <= (latest?.lsn ?? 0n)) for (const each of replicas) if (each.state === 'available') each.checkSoon()
    return this.#idlest(floor) === null ? 'lag' : 'position'
  }

  /** Reads the position of the primary, unless that has just happened. */
  #readPosition(): void {
    const { position, now } = this.#parts
    if (position.latest !== null && now() - position.latest.at < POSITION_GAP_MS) return
    // A failure leaves reads on the primary until the next regular read of the position.
    position.read().catch(() => {})
  }

  /** The replica with the fewest reads, of those that have replayed `lsn`. */
  #idlest(lsn: Lsn): Replica | null {
    const { replicas } = this.#parts
    let found: Replica | null = null
    for (let count = 0; count < replicas.length; count++) {
      const replica = replicas[(this.#first + count) % replicas.length] as Replica
      if (replica.state !== 'available' || replica.replayed < lsn) continue
      if (found === null || replica.load < found.load) found = replica
    }
    this.#first = (this.#first + 1) % replicas.length
    return found
  }

  #isRefused(statement: string): boolean {
    if (this.#refused.size === 0) return false
    const until = this.#refused.get(statement)
    if (until === undefined) return false
    if (until > this.#parts.now()) return true
    this.#refused.delete(statement)
    return false
  }

  /** The primary has answered what a replica refused, such as a function that notifies. */
  #answeredByPrimary(statement: string, error: unknown): void {
    if (!(error instanceof DatabaseError) || !REFUSALS.test(error.sqlstate)) return
    if (statement.length > REFUSED_CHARACTERS_MAX) return
    this.#refused.set(statement, this.#parts.now() + REFUSED_MS)
    if (this.#refused.size <= REFUSED_MAX) return
    const [oldest] = this.#refused.keys()
    if (oldest !== undefined) this.#refused.delete(oldest)
  }

  #started<T>(replica: Replica, running: RunningRequest<T>): RunningRequest<T> {
    replica.running += 1
    const end = () => {
      replica.running -= 1
    }
    running.result.then(end, end)
    return running
  }

  #failed(replica: Replica, error: unknown, clock: () => void): void {
    const reason = fallbackReason(error)
    this.#fallbacks[reason] += 1
    if (error instanceof UnavailableError) {
      // The server time of a lost request is unknown, so the whole time counts.
      if (error.sent) clock()
      replica.failedRead(error)
    } else if (reason === 'behind') {
      replica.checkSoon()
    }
  }

  /** Returns a function that counts the time until now as server time. */
  #clock(worked: ServerTime): () => void {
    const { now } = this.#parts
    const startedAt = now()
    const before = worked.ms
    return () => {
      worked.ms = Math.max(worked.ms, before + now() - startedAt)
    }
  }
}

type RowBlock = readonly ResultRow[]

function guard(lsn: Lsn): Command {
  return { text: GUARD, parameters: [printLsn(lsn)], upkeep: true }
}

/**
 * Reports whether the primary might answer what a replica did not. The caller receives
 * the error of the primary, never that of a replica.
 */
function isForPrimary(error: unknown): error is Error {
  if (error instanceof CancelledError || isOversize(error)) return false
  return error instanceof DatabaseError || error instanceof UnavailableError
}

function fallbackReason(error: unknown): FallbackReason {
  if (!(error instanceof DatabaseError)) return 'unavailable'
  if (error.message.includes(BEHIND)) return 'behind'
  return error.sqlstate === CONFLICT ? 'conflict' : 'error'
}

function greater(one: Lsn, other: Lsn): Lsn {
  return one > other ? one : other
}

/** The result; null if it fails or takes too long. */
function within<T>(result: Promise<T>, ms: number): Promise<T | null> {
  return new Promise(resolve => {
    const timer = setTimeout(() => resolve(null), ms)
    const settle = (value: T | null) => {
      clearTimeout(timer)
      resolve(value)
    }
    result.then(settle, () => settle(null))
  })
}
