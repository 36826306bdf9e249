/** What came of webhooks, until the database has it: in as few statements as they come, none lost while it is away. */
import type { Emit } from '../../events.ts'
import { DatabaseError } from '../../postgres/errors.ts'
import { createBell } from '../bell.ts'
import type { Ask } from './ask.ts'
import { type Settlement, settle, withoutAnswer } from './settle.ts'

/** In one statement. */
const SETTLED_AT_ONCE = 200

/** Not written down yet; beyond that nothing more is claimed. */
export const PENDING_MAX = 1_000

/** Before a database that did not answer is asked again. */
export const AWAY_MS = 1_000

export interface Ledger {
  add(settlement: Settlement): void
  /** Everything is written down. */
  isEmpty(): boolean
  /** The database is slower than those who are told. */
  isFull(): boolean
  /** Resolves when everything is, or it is closed. */
  written(): Promise<void>
  /** What is not written down by now never is. */
  close(): void
}

export interface LedgerParts {
  readonly ask: Ask
  /** Whose the leases are. */
  readonly gateway: string
  readonly emit: Emit
  /** Settlements have been written down; their webhooks are held no more. */
  readonly onWritten: (settlements: readonly Settlement[]) => void
}

export function createLedger({ ask, gateway, emit, onWritten }: LedgerParts): Ledger {
  let pending: Settlement[] = []
  let writing: Promise<void> | null = null
  let isClosed = false
  const closing = createBell()

  async function write(): Promise<void> {
    while (pending.length > 0 && !isClosed) {
      const some = pending.slice(0, SETTLED_AT_ONCE)
      if (!(await written(some))) {
        await closing.wait(AWAY_MS)
        continue
      }
      pending = pending.slice(some.length)
      onWritten(some)
    }
    writing = null
  }

  /** False: the database is away, or busy with somebody else's lock. */
  async function written(some: readonly Settlement[]): Promise<boolean> {
    try {
      await settle(ask, gateway, some)
      return true
    } catch (error) {
      if (!isRefusal(error)) return false
    }
    for (const each of some) if (!(await writtenAlone(each))) return false
    return true
  }

  /** Of many, one can be what the database does not take; the others must not wait for it. */
  async function writtenAlone(settlement: Settlement): Promise<boolean> {
    for (const form of [settlement, withoutAnswer(settlement), { ...settlement, attempt: null }]) {
      try {
        await settle(ask, gateway, [form])
        return true
      } catch (error) {
        if (!isRefusal(error)) return false
        const { id, trigger } = settlement
        emit({ kind: 'webhooks', event: 'attempt not recorded', detail: { error, id, trigger } })
      }
    }
    // Its lease runs out, and it is delivered again.
    return true
  }

  return {
    add(settlement) {
      pending.push(settlement)
      // In a later turn: what ends together is written together.
      writing ??= new Promise<void>(resolve => setImmediate(resolve)).then(write)
    },
    isEmpty: () => pending.length === 0,
    isFull: () => pending.length >= PENDING_MAX,
    async written() {
      await writing
    },
    close() {
      isClosed = true
      closing.ring()
    },
  }
}

/** Class 40 is a conflict with somebody else, 53 and 57 are a server that cannot at the moment, 55 is a lock. */
const PASSING = /^(40|53|55|57)/

function isRefusal(error: unknown): error is DatabaseError {
  return error instanceof DatabaseError && !PASSING.test(error.sqlstate)
}
