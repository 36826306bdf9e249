/**
 * One transaction for several operations of a request. Each sends its statements through a `Part`, which
 * keeps the order: the statements of an operation start when it is certain that earlier operations send no
 * more. So operations with one statement each share a packet.
 *
 * A statement that fails ends the transaction. Where a single request would try another statement next, such
 * as one that returns less, the whole transaction is run again (`RestartError`), and the failed statement is
 * answered with its error without being sent. Savepoints would do the same, but give rows the version of a
 * subtransaction, which is not the number that a write reports.
 */

import { DatabaseError, UnavailableError } from '../postgres/errors.ts'
import { SkippedError, StaleStatementError } from '../postgres/transaction.ts'
import type {
  Command,
  Database,
  Isolation,
  OpenTransaction,
  Result,
  RunningRequest,
  ServerTime,
} from '../postgres/types.ts'

import type { TraceContext } from '../trace-context.ts'
import type { Consistency } from '../usage.ts'
import { type ClaimRefusal, refusalOf } from './idempotency.ts'

export { SkippedError } from '../postgres/transaction.ts'

/** The transaction was rolled back and must be run again from its beginning. */
export class RestartError extends Error {
  constructor() {
    super('the transaction is run again')
    this.name = 'RestartError'
  }
}

/** Statements that failed in earlier runs of the same operations, with their errors. */
export class KnownFailures {
  readonly #errors = new Map<string, unknown>()

  find(at: Ordinal, commands: readonly Command[]): unknown {
    const text = textOf(commands)
    return this.#errors.get(text) ?? this.#errors.get(`${at} ${text}`)
  }

  /** A missing privilege is the same for every operation with this statement. */
  add(at: Ordinal, commands: readonly Command[], error: unknown): void {
    const text = textOf(commands)
    const isPrivilege = error instanceof DatabaseError && error.routine === ACL_CHECK
    this.#errors.set(isPrivilege ? text : `${at} ${text}`, error)
  }
}

/** The index of an operation, and how often it has sent something: the same text can be sent again. */
type Ordinal = `${number}.${number}`

const ACL_CHECK = 'aclcheck_error'

function textOf(commands: readonly Command[]): string {
  return commands.map(({ text }) => text).join('\n')
}

/** The database work of a request. `within`: the transaction that it shares with other operations. */
export interface Work extends ServerTime {
  readonly trace?: TraceContext | undefined
  /** Required of reads on a replica, outside of a transaction; undefined: they run on the primary. */
  readonly consistency?: Consistency | undefined
  /** The position of the primary after the last write. */
  wrote?: string
  readonly within?: Part
}

/** A part of the work of a request: its time counts as time of the whole request. */
export class CountedWork implements Work {
  readonly #whole: Work

  constructor(whole: Work) {
    this.#whole = whole
  }

  get trace(): TraceContext | undefined {
    return this.#whole.trace
  }

  get ms(): number {
    return this.#whole.ms
  }

  set ms(ms: number) {
    this.#whole.ms = ms
  }
}

/** The work of an operation within a shared transaction. */
export class PartOfWork extends CountedWork implements Work {
  readonly within: Part

  constructor(whole: Work, within: Part) {
    super(whole)
    this.within = within
  }
}

/** The work of steps that may be followed by others. */
export function unfinished(work: Work, within: Part): Work {
  return new PartOfWork(work, {
    ...within,
    writesRows: true,
    run: (commands, effect) => within.run(commands, effect, false),
  })
}

/** The work of a step whose failure undoes that step only. */
export function undoable(work: Work): Work {
  const { within } = work
  if (within === undefined) throw new Error('only a part of a transaction can be undone')
  return new PartOfWork(work, { ...within, run: within.attempt })
}

/** The part of one operation in the transaction. */
export interface Part {
  /**
   * Runs commands after everything that earlier operations send. With `isLast`, the operation sends nothing
   * more unless they fail.
   */
  run(commands: readonly Command[], effect: Effect, isLast: boolean): RunningRequest<readonly Result[]>
  /** The same in a savepoint: a failure undoes these commands only. */
  attempt(commands: readonly Command[], effect: Effect): RunningRequest<readonly Result[]>
  /**
   * True if the operation can write rows of a table after it has read, so that its read is not its last
   * statement.
   */
  readonly writesRows: boolean
  /** True if each statement has the whole statement timeout. */
  readonly hasOwnTime?: boolean
  /** Called after the commit, in the order of the operations. `commit` waits for promises. */
  onCommit(call: () => void | Promise<void>): void
  /** Resolves when the transaction has ended; rejects if its outcome is unknown. */
  readonly settled: Promise<void>
}

/** Properties of the commands so far that decide how the transaction ends. */
export interface Effect {
  readonly writes: boolean
  readonly leavesState: boolean
}

/** How the transaction ends: the commands before COMMIT. */
export type Closing = (effect: Effect) => readonly Command[]

/** The dependencies of a transaction. */
export interface JointTransactionParts {
  readonly database: Pick<Database, 'begin'>
  readonly flow: string | undefined
  readonly isolation: Isolation | null
  readonly closing: Closing
  readonly worked: ServerTime
  readonly known: KnownFailures
  /** Sent before the first statement: the claim on an idempotency key. Empty without one. */
  readonly opening: readonly Command[]
  /** Receives the outcome of transactions that write; null without replicas. */
  readonly written: WriteOutcome | null
  /** Translates an error of COMMIT. */
  readonly failed: (error: unknown) => unknown
}

/** Receives the outcome of a transaction that wrote something. */
export interface WriteOutcome {
  /** Called after the commit, which is reported when the promise resolves. */
  committed(): Promise<void>
  /** Called if it is unknown whether the transaction was committed. */
  unknown(): void
}

interface Waiting {
  readonly start: () => void
  readonly skip: () => void
}

/** A transaction of several operations. */
export class JointTransaction {
  readonly settled: Promise<void>
  /**
   * The reason for which the claim was refused, so that the transaction must be rolled back; null otherwise.
   */
  refusal: ClaimRefusal | null = null
  readonly #parts: JointTransactionParts
  readonly #waiting = new Map<number, Waiting[]>()
  /** Operations that are certain to send nothing more. */
  readonly #passed = new Set<number>()
  /** How often each operation has sent something. */
  readonly #runs = new Map<number, number>()
  readonly #committed: { readonly index: number; readonly call: () => void | Promise<void> }[] = []
  #open: OpenTransaction | null = null
  #isCommitted = false
  /** The first operation that can still send statements. */
  #head = 0
  /** True once a statement has failed. */
  #isDead = false
  /** The position of the last operation that runs. */
  #last = Number.POSITIVE_INFINITY
  #effect: Effect = { writes: false, leavesState: false }
  #settle!: { resolve(): void; reject(error: unknown): void }

  constructor(parts: JointTransactionParts) {
    this.#parts = parts
    this.settled = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject }
    })
    this.settled.catch(() => {})
  }

  /**
   * The only operation of the transaction, whose statements can fail: a failure undoes what was run together,
   * and nothing else.
   */
  attempts(): Part {
    const part = this.part(0, true)
    return { ...part, run: part.attempt, hasOwnTime: true }
  }

  /** Creates the part of operation `index`. */
  part(index: number, writesRows: boolean): Part {
    const running = (result: Promise<readonly Result[]>): RunningRequest<readonly Result[]> => {
      let gone = false
      return {
        result,
        cancel: () => {
          if (gone) return
          gone = true
          result.catch(() => {})
          this.#open?.cancel()
        },
      }
    }
    return {
      writesRows,
      settled: this.settled,
      onCommit: call => this.#afterCommit(index, call),
      run: (commands, effect, isLast) => running(this.#run(index, commands, effect, isLast)),
      attempt: (commands, effect) => running(this.#inTurn(index, () => this.#attempt(commands, effect), false)),
    }
  }

  /** Records that operation `index` has its result and sends nothing more. */
  pass(index: number): void {
    this.#passed.add(index)
    for (;;) {
      while (this.#passed.has(this.#head)) this.#head += 1
      const runs = this.#waiting.get(this.#head)
      if (runs === undefined) return
      this.#waiting.delete(this.#head)
      for (const { start } of runs) start()
    }
  }

  /** Records that operation `index` has failed, so that later operations do not run. */
  stop(index: number): void {
    this.#last = Math.min(this.#last, index)
    for (const [waiting, runs] of [...this.#waiting]) {
      if (waiting <= this.#last) continue
      this.#waiting.delete(waiting)
      for (const { skip } of runs) skip()
    }
  }

  /** Makes the claim, unless a statement has already sent it. */
  async claim(): Promise<void> {
    if (this.#open === null) await this.#send('0.0', [], this.#effect)
  }

  /** Commits after `last`; resolves when the transaction is certain, and every `onCommit` was called. */
  async commit(last: readonly Command[] = []): Promise<void> {
    try {
      await this.#open?.commit([...last, ...this.#parts.closing(this.#effect)])
    } catch (error) {
      if (last.length > 0) this.refusal = refusalOf(error)
      if (isUndone(error)) {
        this.#settle.resolve()
      } else {
        this.#parts.written?.unknown()
        this.#settle.reject(error)
      }
      throw this.#parts.failed(error)
    }
    if (this.#effect.writes) await this.#parts.written?.committed()
    this.#settle.resolve()
    this.#isCommitted = true
    const calls = this.#committed.sort((a, b) => a.index - b.index)
    await Promise.all(calls.map(({ call }) => call()))
  }

  /**
   * Runs what comes before a commit, such as deferred triggers, and rolls back.
   * @throws the error that the commit would have.
   */
  async rehearse(): Promise<void> {
    try {
      await this.#open?.run(this.#parts.closing(this.#effect))
    } catch (error) {
      throw this.#parts.failed(error)
    } finally {
      await this.rollback()
    }
  }

  /** Rolls back; resolves when the connection is free. */
  async rollback(): Promise<void> {
    this.#isDead = true
    this.stop(-1)
    await this.#open?.rollback()
    this.#settle.resolve()
  }

  /** Rolls back because the client has disconnected. */
  cancel(): void {
    this.#open?.cancel()
  }

  /** Reports that the claim was refused: the caller gets the stored response of an earlier request. */
  async repeated(): Promise<void> {
    await this.#parts.written?.committed()
  }

  #run(index: number, commands: readonly Command[], effect: Effect, isLast: boolean): Promise<readonly Result[]> {
    const runs = this.#runs.get(index) ?? 0
    this.#runs.set(index, runs + 1)
    const at: Ordinal = `${index}.${runs}`
    const known = index > this.#last || this.#isDead ? undefined : this.#parts.known.find(at, commands)
    if (known !== undefined) return Promise.reject(known)
    return this.#inTurn(index, () => this.#send(at, commands, effect), isLast)
  }

  /** Calls `send` after all earlier operations have sent their last commands. */
  #inTurn(index: number, send: () => Promise<readonly Result[]>, isLast: boolean): Promise<readonly Result[]> {
    if (index > this.#last) return Promise.reject(new SkippedError())
    if (this.#isDead) return Promise.reject(new RestartError())
    return new Promise((resolve, reject) => {
      const start = () => {
        send().then(resolve, reject)
        if (isLast && !this.#passed.has(index)) this.pass(index)
      }
      if (index <= this.#head) start()
      else this.#wait(index, { start, skip: () => reject(new SkippedError()) })
    })
  }

  #afterCommit(index: number, call: () => void | Promise<void>): void {
    if (this.#isCommitted) void call()
    else this.#committed.push({ index, call })
  }

  #wait(index: number, waiting: Waiting): void {
    const runs = this.#waiting.get(index)
    if (runs === undefined) this.#waiting.set(index, [waiting])
    else runs.push(waiting)
  }

  async #attempt(commands: readonly Command[], effect: Effect): Promise<readonly Result[]> {
    if (this.#parts.opening.length > 0) await this.claim()
    const open = this.#opened(effect)
    try {
      return await open.attempt(commands)
    } catch (error) {
      if (error instanceof StaleStatementError) return open.attempt(commands)
      throw error
    }
  }

  /** The open transaction; it is opened by the first commands. */
  #opened(effect: Effect): OpenTransaction {
    if (this.#isDead) throw new SkippedError()
    const { database, flow, isolation, worked } = this.#parts
    this.#open ??= database.begin(flow, isolation, worked)
    this.#effect = {
      writes: this.#effect.writes || effect.writes,
      leavesState: this.#effect.leavesState || effect.leavesState,
    }
    return this.#open
  }

  async #send(at: Ordinal, commands: readonly Command[], effect: Effect): Promise<readonly Result[]> {
    const opening = this.#open === null ? this.#parts.opening : []
    const open = this.#opened(effect)
    const { known } = this.#parts
    try {
      const results = await open.run(opening.length === 0 ? commands : [...opening, ...commands])
      return opening.length === 0 ? results : results.slice(opening.length)
    } catch (error) {
      this.#isDead = true
      if (opening.length > 0) this.refusal = refusalOf(error)
      if (this.refusal !== null) throw new SkippedError()
      if (error instanceof StaleStatementError) throw new RestartError()
      if (error instanceof DatabaseError) known.add(at, commands, error)
      throw error
    }
  }
}

/** Reports whether a failed transaction has certainly changed nothing. */
export function isUndone(error: unknown): boolean {
  if (error instanceof UnavailableError) return !error.sent
  return error instanceof DatabaseError || error instanceof SkippedError
}
