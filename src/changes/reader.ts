/**
 * Follows the write-ahead log: the gateway that gets the slot decodes it and stores what has changed in the
 * change log and the outbox. Each transaction of the feed role stores decoded changes together with the
 * position after them, and only then is the position confirmed to the server. So nothing is lost or stored
 * twice, whichever process is killed, and no two gateways store the same. The others wait for the slot.
 */
import type { Query } from '../catalog/introspect.ts'
import { TEXT_SETTINGS } from '../install/capture.ts'
import { PUBLICATION } from '../install/wal-capture.ts'
import { readWalProblems } from '../install/wal-problems.ts'
import { DatabaseError } from '../postgres/errors.ts'
import { printLsn } from '../postgres/replication/lsn.ts'
import { openReplication, type ReplicationOptions } from '../postgres/replication/session.ts'
import type { Database } from '../postgres/types.ts'
import type { LogReaders } from './readers.ts'
import {
  createSlot,
  dropLargeSlot,
  dropLostSlot,
  OutdatedReaderError,
  readSlot,
  type SlotState,
  skipToSlot,
} from './slot.ts'
import { isCausedByData, POSITION_INTERVAL_MS, StreamStore } from './stream-store.ts'

/** Interval between looks at the slot: of a gateway that waits for it, and of the one that has it. */
const LOOK_INTERVAL_MS = 1_000

/**
 * Of several gateways that try at once, one gets the slot (`object_in_use`) or creates it
 * (`duplicate_object`). The others wait for it.
 */
const TAKEN: ReadonlySet<string> = new Set(['55006', '42710'])

/** The state and the position of the reader. */
export interface ReaderStats {
  /** True if this gateway has the slot. */
  readonly isReading: boolean
  /** Why this gateway cannot read, with the statement that repairs it if it is known; null if it can. */
  readonly problem: string | null
  /** How far the stored changes are behind the end of the log, when it was last determined. */
  readonly lagBytes: number
  /** How much of the log the slot keeps. */
  readonly keptBytes: number
  /** The row changes that this gateway has stored. */
  readonly changes: number
  /** How often changes were lost, so that every subscriber had to read again. */
  readonly resyncs: number
}

/** The dependencies of the reader. */
export interface ReaderParts {
  /** Connections of the feed role. */
  readonly database: Pick<Database, 'run' | 'begin'>
  /** Where the feed role opens its replication session. */
  readonly replication: () => Promise<ReplicationOptions>
  /** The readers of the log in this process. */
  readonly readers: LogReaders
  /** The feed role; null while its connections are not open. */
  readonly role: () => string | null
  /** True if changes are captured from the write-ahead log. */
  readonly isUsable: () => boolean
  /** Above this the slot is dropped, and everything that depends on it starts again. */
  readonly keepBytesMax: number
  readonly now: () => number
  readonly warn: (message: string, fix: string | null) => void
}

/** The reader. */
export interface ChangeReader {
  stats(): ReaderStats
  /** Stores what is being stored, and frees the slot. */
  close(): Promise<void>
}

/** True if another gateway reads. */
function isTaken(error: unknown): boolean {
  return error instanceof OutdatedReaderError || (error instanceof DatabaseError && TAKEN.has(error.sqlstate))
}

/** Starts reading wherever changes are captured from the write-ahead log. */
export function startChangeReader(parts: ReaderParts): ChangeReader {
  return new SlotReader(parts)
}

class SlotReader implements ChangeReader {
  readonly #parts: ReaderParts
  readonly #ask: Query
  readonly #closing = new AbortController()
  readonly #stats = {
    ...{ isReading: false, problem: null as string | null },
    ...{ lagBytes: 0, keptBytes: 0, changes: 0, resyncs: 0 },
  }
  readonly #running: Promise<void>
  #reported = ''
  /** As for `StreamStore`. */
  #isCareful = false
  #wake: () => void = () => {}
  #isLooking = false
  /** True if this gateway has dropped the slot, and counted the loss, since one was created. */
  #hasDropped = false

  constructor(parts: ReaderParts) {
    this.#parts = parts
    this.#ask = async (text, parameters) => {
      const [result] = await parts.database.run([{ text, parameters }]).result
      return result?.rows.map(row => row.map(cell => cell?.toString() ?? null)) ?? []
    }
    this.#running = this.#follow()
  }

  stats(): ReaderStats {
    return { ...this.#stats }
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('the gateway stops'))
    this.#wake()
    await this.#running
  }

  async #follow(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      try {
        if (this.#parts.isUsable()) await this.#readWhilePossible()
        this.#works()
      } catch (error) {
        if (isCausedByData(error)) this.#isCareful = true
        await this.#report(error)
      }
      await this.#pause(LOOK_INTERVAL_MS)
    }
  }

  #works(): void {
    this.#reported = ''
    this.#stats.problem = null
  }

  /** The same problem is reported once, with the statement that repairs it if the server's state shows it. */
  async #report(error: unknown): Promise<void> {
    if (isTaken(error)) return this.#works()
    const message = error instanceof Error ? error.message : String(error)
    if (this.#closing.signal.aborted || message === this.#reported) return
    this.#reported = message
    const fix = await this.#fix()
    this.#stats.problem = fix === null ? message : `${message}. ${fix}`
    this.#parts.warn(`Changes are not read from the write-ahead log: ${message}`, fix)
  }

  async #fix(): Promise<string | null> {
    const feed = this.#parts.role()
    if (feed === null) return null
    try {
      const { problems } = await readWalProblems(this.#ask, { role: null, feed, isGranted: false })
      return problems.length === 0 ? null : problems.join(' ')
    } catch {
      // The database is unavailable, which is the reported problem.
      return null
    }
  }

  async #pause(ms: number): Promise<void> {
    if (this.#closing.signal.aborted) return
    await new Promise<void>(resolve => {
      const timer = setTimeout(resolve, ms)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Reads until the stream ends; returns at once if another gateway has the slot. */
  async #readWhilePossible(): Promise<void> {
    const { database } = this.#parts
    const slot = await this.#look()
    if (slot === null || slot.isActive) return
    if (!slot.exists || slot.isLost) {
      if (slot.isLost) await dropLostSlot(this.#ask)
      const [[major] = []] = await this.#ask(`SELECT current_setting('server_version_num')::int / 10000`, [])
      await createSlot(database, Number(major), slot.stored)
      // Before the first one nothing was lost.
      if (slot.stored > 0n && !this.#hasDropped) this.#lost('the replication slot was dropped or invalidated')
      this.#hasDropped = false
    } else if (slot.isAhead) {
      await skipToSlot(database, slot.stored)
      if (slot.stored > 0n) this.#lost('the replication slot was moved past what is stored')
    }
    const next = await readSlot(this.#ask)
    if (next !== null && !this.#closing.signal.aborted) await this.#read(next)
  }

  /** Reads the state of the slot, and drops the slot if it keeps too much. */
  async #look(): Promise<SlotState | null> {
    const slot = await readSlot(this.#ask)
    this.#stats.lagBytes = slot?.lagBytes ?? 0
    this.#stats.keptBytes = slot?.keptBytes ?? 0
    const { keepBytesMax } = this.#parts
    if (slot === null || slot.keptBytes <= keepBytesMax) return slot
    await dropLargeSlot(this.#ask, keepBytesMax)
    this.#hasDropped = true
    this.#lost(`the replication slot kept ${slot.keptBytes} bytes of the log, more than wal_keep_mb allows`)
    // Unless another gateway has created a slot and stores what it sends.
    await this.#ask(`UPDATE svc.wal SET stored = '0/0' WHERE stored = $1::pg_lsn RETURNING 1`, [printLsn(slot.stored)])
    return readSlot(this.#ask)
  }

  /** Looks unless the previous look still waits for the database. */
  #lookAgain(): void {
    if (this.#isLooking) return
    this.#isLooking = true
    const done = () => {
      this.#isLooking = false
    }
    this.#look().then(done, done)
  }

  #lost(reason: string): void {
    this.#stats.resyncs++
    this.#parts.warn(
      `Changes were lost: ${reason}. Every subscriber reads again; webhooks of changes that were not yet read from ` +
        'the log are not sent.',
      null,
    )
  }

  async #read({ name, stored }: SlotState): Promise<void> {
    const { database, readers, now, replication } = this.#parts
    const session = await openReplication({ ...(await replication()), signal: this.#closing.signal })
    const timers: NodeJS.Timeout[] = []
    try {
      for (const setting of TEXT_SETTINGS) await session.run(setting)
      const stream = await session.start({
        ...{ slot: name, publications: [PUBLICATION], from: stored, protocol: 1 },
        ...{ streaming: false, twoPhase: false, messages: true },
      })
      this.#stats.isReading = true
      this.#works()
      timers.push(setInterval(() => this.#lookAgain(), LOOK_INTERVAL_MS))
      timers.push(setInterval(() => stream.probe(), POSITION_INTERVAL_MS))
      const store = new StreamStore({
        ...{ stream, database, readers, from: stored, isCareful: this.#isCareful, now },
        onStored: changes => {
          this.#stats.changes += changes
        },
        onLost: reason => this.#lost(reason),
      })
      try {
        await store.run()
      } finally {
        this.#isCareful = store.isCareful
      }
    } finally {
      this.#stats.isReading = false
      for (const timer of timers) clearInterval(timer)
      session.close()
    }
  }
}
