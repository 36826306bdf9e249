/**
 * Writes settlements to the database, in as few statements as possible, and retries while the database is
 * unavailable, so that none is lost.
 */
import type { Emit } from '../../events.ts'
import { DatabaseError } from '../../postgres/errors.ts'
import { createWakeSignal } from '../wake-signal.ts'
import { type Settlement, withoutAnswer, writeSettlements } from './settle.ts'
import type { RunInTransaction } from './transaction.ts'

/** Settlements written by one statement. */
const SETTLEMENTS_PER_STATEMENT = 200

/** Limit on settlements not yet written. While it is reached, nothing more is claimed. */
export const UNWRITTEN_MAX = 1_000

/** Delay before the next attempt when the database did not respond. */
export const RETRY_DELAY_MS = 1_000

/** Writes settlements in the background. */
export interface SettlementWriter {
  add(settlement: Settlement): void
  /** True if everything is written. */
  isEmpty(): boolean
  /** True if the limit is reached, because the database is slower than the endpoints. */
  isFull(): boolean
  /** Resolves when everything is written, or the writer is closed. */
  written(): Promise<void>
  /** Stops writing; settlements not written by now are discarded. */
  close(): void
}

/** The dependencies of a settlement writer. */
export interface SettlementWriterParts {
  readonly ask: RunInTransaction
  /** The holder of the leases. */
  readonly gateway: string
  readonly emit: Emit
  /** Called with settlements that have been written. */
  readonly onWritten: (settlements: readonly Settlement[]) => void
}

/** Creates a writer with nothing to write. */
export function createSettlementWriter({ ask, gateway, emit, onWritten }: SettlementWriterParts): SettlementWriter {
  let pending: Settlement[] = []
  let writing: Promise<void> | null = null
  let isClosed = false
  const closing = createWakeSignal()

  async function write(): Promise<void> {
    while (pending.length > 0 && !isClosed) {
      const some = pending.slice(0, SETTLEMENTS_PER_STATEMENT)
      if (!(await tryWrite(some))) {
        await closing.wait(RETRY_DELAY_MS)
        continue
      }
      pending = pending.slice(some.length)
      onWritten(some)
    }
    writing = null
  }

  /** Returns false if the database is unavailable or a lock is held. */
  async function tryWrite(some: readonly Settlement[]): Promise<boolean> {
    try {
      await writeSettlements(ask, gateway, some)
      return true
    } catch (error) {
      if (!isRefused(error)) return false
    }
    for (const each of some) if (!(await tryWriteAlone(each))) return false
    return true
  }

  /**
   * Writes settlements one by one after the database refused a batch, so that one it cannot store does not
   * hold up the others.
   */
  async function tryWriteAlone(settlement: Settlement): Promise<boolean> {
    for (const form of [settlement, withoutAnswer(settlement), { ...settlement, attempt: null }]) {
      try {
        await writeSettlements(ask, gateway, [form])
        return true
      } catch (error) {
        if (!isRefused(error)) return false
        const { id, trigger } = settlement
        emit({ kind: 'webhooks', event: 'attempt not recorded', detail: { error, id, trigger } })
      }
    }
    // It is delivered again when its lease expires.
    return true
  }

  return {
    add(settlement) {
      pending.push(settlement)
      // In a later turn of the event loop, so that settlements made together are written together.
      writing ??= new Promise<void>(resolve => setImmediate(resolve)).then(write)
    },
    isEmpty: () => pending.length === 0,
    isFull: () => pending.length >= UNWRITTEN_MAX,
    async written() {
      await writing
    },
    close() {
      isClosed = true
      closing.send()
    },
  }
}

/** Transient errors: 40 conflicts with another transaction, 53 and 57 server problems, 55 locks. */
const TRANSIENT = /^(40|53|55|57)/

function isRefused(error: unknown): error is DatabaseError {
  return error instanceof DatabaseError && !TRANSIENT.test(error.sqlstate)
}
