/**
 * A transaction of several packets: everything between BEGIN and COMMIT on an exclusive connection. Commands
 * are sent as soon as they are added, so those that need no earlier result share a packet. The implementation
 * of `begin`.
 */
import { CancelledError, type DatabaseError, ProtocolError, refusal, UnavailableError } from './errors.ts'
import type { FieldDescription } from './fields.ts'
import type { Flow } from './flow.ts'
import { NOTHING_OWED, owedOf, type PendingRequest, type RequestChannel } from './pending-request.ts'
import { decodeDataRow } from './protocol/backend.ts'
import { writeFlush, writeSync } from './protocol/frontend.ts'
import { HeldBytes, type ResultBudget, ROW_BYTES, STEP_BYTES, UNCOUNTED_BYTES } from './result-budget.ts'
import { CommandPlan, confirmDescription, confirmParse } from './statement-plan.ts'
import type { Command, Isolation, OpenTransaction, Result, ResultRow, ServerTime } from './types.ts'

/** The pool as a transaction sees it. */
export interface TransactionHost {
  /** Removes a transaction that has no connection yet from its queue and rejects it. */
  drop(transaction: HeldTransaction): void
  /** Monotonic milliseconds. */
  clock(): number
  readonly budget: ResultBudget
  /** Limit on the bytes of all results together. */
  readonly resultBytesMax: number
}

/** The commands never ran, because earlier ones were refused or the client has disconnected. */
export class SkippedError extends Error {
  constructor() {
    super('the transaction ended before this command')
    this.name = 'SkippedError'
  }
}

/** A prepared statement had become invalid. The transaction is rolled back and can be run again. */
export class StaleStatementError extends Error {
  constructor(cause: unknown) {
    super('a prepared statement had become invalid', { cause })
    this.name = 'StaleStatementError'
  }
}

/** Commands that were added together. */
interface Step {
  readonly commands: readonly Command[]
  /** How many of the commands have a result. */
  readonly count: number
  plan: CommandPlan
  results: Result[]
  /** A failure undoes this step only. */
  readonly recovers: boolean
  resolve(results: readonly Result[]): void
  reject(error: unknown): void
}

type State = 'waiting' | 'open' | 'recovering' | 'failed' | 'committing' | 'rolling back' | 'ended'

const BEGIN: Readonly<Record<Isolation | 'default', Command>> = {
  default: { text: 'BEGIN', parameters: [] },
  'read committed': { text: 'BEGIN ISOLATION LEVEL READ COMMITTED', parameters: [] },
  'repeatable read': { text: 'BEGIN ISOLATION LEVEL REPEATABLE READ', parameters: [] },
  serializable: { text: 'BEGIN ISOLATION LEVEL SERIALIZABLE', parameters: [] },
}
const COMMIT: Command = { text: 'COMMIT', parameters: [] }
const ROLLBACK: Command = { text: 'ROLLBACK', parameters: [] }
const SAVEPOINT: Command = { text: 'SAVEPOINT svc_attempt', parameters: [] }
const RELEASE: Command = { text: 'RELEASE SAVEPOINT svc_attempt', parameters: [] }
const UNDO: readonly Command[] = [{ text: 'ROLLBACK TO SAVEPOINT svc_attempt', parameters: [] }, RELEASE]

/** A late cancel request can hit a ROLLBACK, which is then sent again. */
const ROLLBACKS_MAX = 3

/** An open transaction. */
export class HeldTransaction implements PendingRequest, OpenTransaction {
  readonly exclusive = true
  readonly readsOnly = false
  readonly flow: Flow
  readonly latencyKey = 'BEGIN'
  readonly serverTime: ServerTime
  readonly ended: Promise<void>
  expectedMs = 0
  deadline = 0
  cancelled = false
  readonly #host: TransactionHost
  readonly #steps: Step[] = []
  readonly #held: HeldBytes
  #state: State = 'waiting'
  #channel: RequestChannel | null = null
  #since = 0
  #rollbacks = 0
  #rows: ResultRow[] = []
  #bytes = 0
  #room = UNCOUNTED_BYTES
  /** Why the results are not read any more. */
  #refused: Error | null = null
  #owed: readonly Command[] = NOTHING_OWED
  /** The step that is being undone, and why. */
  #undone: { readonly step: Step; readonly error: Error } | null = null
  #commit: { resolve(results: readonly Result[]): void; reject(error: unknown): void } | null = null
  #committed: readonly Result[] | null = null
  /** The loss of the connection, after which nothing can run. */
  #lost: Error | null = null
  #resolveEnded!: () => void

  constructor(host: TransactionHost, flow: Flow, isolation: Isolation | null, worked: ServerTime) {
    this.flow = flow
    this.serverTime = worked
    this.#host = host
    this.#held = new HeldBytes(host.budget, flow)
    this.ended = new Promise(resolve => {
      this.#resolveEnded = resolve
    })
    this.#add([BEGIN[isolation ?? 'default']]).catch(() => {})
  }

  // --- OpenTransaction ---

  run(commands: readonly Command[]): Promise<readonly Result[]> {
    if (this.#state !== 'waiting' && this.#state !== 'open') return Promise.reject(this.#skipped())
    const result = this.#add(commands)
    this.#send()
    return result
  }

  async attempt(commands: readonly Command[]): Promise<readonly Result[]> {
    if (this.#state !== 'waiting' && this.#state !== 'open') throw this.#skipped()
    const result = this.#add([SAVEPOINT, ...commands, RELEASE], true)
    this.#send()
    return (await result).slice(1, -1)
  }

  commit(commands: readonly Command[]): Promise<readonly Result[]> {
    if (this.#state !== 'waiting' && this.#state !== 'open') return Promise.reject(this.#skipped())
    const result = new Promise<readonly Result[]>((resolve, reject) => {
      this.#commit = { resolve, reject }
    })
    this.#push([...commands, COMMIT], {
      recovers: false,
      resolve: results => {
        this.#committed = results
      },
      reject: error => this.#refuseCommit(error),
    })
    this.#end('committing')
    return result
  }

  rollback(): Promise<void> {
    if (this.#state === 'waiting') this.cancel()
    else if (this.#state === 'open') {
      // The results of running commands are not needed.
      if (this.#steps.length > 0) this.cancel()
      else this.#rollBack()
    }
    return this.ended
  }

  cancel(): void {
    if (this.cancelled || this.#state === 'ended') return
    if (this.#state === 'open' && this.#steps.length === 0) {
      this.#rollBack()
      return
    }
    this.cancelled = true
    if (this.#channel === null) this.#host.drop(this)
    else this.#channel.cancel()
  }

  // --- PendingRequest ---

  get owed(): readonly Command[] {
    return this.#owed
  }

  unansweredMs(now: number): number {
    return this.#steps.length === 0 ? 0 : this.serverTime.ms + now - this.#since
  }

  write(channel: RequestChannel): void {
    this.#channel = channel
    this.#since = this.#host.clock()
    const isCommitting = this.#state === 'committing'
    for (const step of [...this.#steps]) this.#write(step, channel)
    if (isCommitting) writeSync(channel.writer)
    else {
      this.#state = 'open'
      writeFlush(channel.writer)
    }
  }

  parseComplete(): void {
    confirmParse(this.#steps[0]?.plan ?? null)
  }

  parametersDescribed(): void {
    // Parameters are sent as text, so their types are not needed.
  }

  described(fields: readonly FieldDescription[]): void {
    confirmDescription(this.#steps[0]?.plan ?? null, fields)
  }

  dataRow(bytes: Buffer, start: number, end: number): void {
    this.#bytes += end - start
    if (this.#isUnread || (this.#bytes > this.#room && !this.#grow(this.#bytes))) return
    this.#rows.push(decodeDataRow(bytes, start, end))
  }

  rowBegins(bytes: number): boolean {
    const whole = this.#bytes + bytes
    if (!this.#isUnread && (whole <= this.#room || this.#grow(whole))) return true
    this.#bytes = whole
    return false
  }

  rowTooLong(bytes: number): void {
    this.#refuse(oversize(this.#host.resultBytesMax, bytes))
  }

  get takesInput(): boolean {
    const [step] = this.#steps
    return step?.commands.filter(({ parsesOnly }) => parsesOnly !== true)[step.results.length]?.input !== undefined
  }

  complete(tag: string): void {
    const [step] = this.#steps
    if (step === undefined) throw new ProtocolError(`the server completed "${tag}", which was not requested`)
    const { results, count, plan } = step
    results.push({ fields: plan.fields(results.length), rows: this.#rows, tag })
    this.#rows = []
    if (results.length < count) return
    this.#steps.shift()
    if (this.#isUnread) step.reject(this.#refused ?? new CancelledError())
    else step.resolve(results)
    // The cancel request came too late for any command.
    if (this.#isUnread && this.#steps.length === 0 && this.#state === 'open') this.#rollBack()
  }

  suspended(): void {
    throw new ProtocolError('the server suspended a portal that has no row limit')
  }

  failed(error: DatabaseError): void {
    const channel = this.#channel as RequestChannel
    const step = this.#steps.shift()
    this.#rows = []
    const tags = step?.results.map(({ tag }) => tag) ?? []
    const isStale = step?.plan.isStale(error, tags, channel.statements) === true && this.#commit === null
    for (const { plan } of [...(step === undefined ? [] : [step]), ...this.#steps])
      plan.forgetUnconfirmed(channel.statements)
    this.#owed = owedOf(step?.commands ?? [])
    const why =
      this.#refused ?? (this.cancelled ? new CancelledError() : isStale ? new StaleStatementError(error) : error)
    for (const skipped of this.#steps.splice(0)) skipped.reject(new SkippedError())
    // The savepoint exists once its result has arrived.
    if (this.#state === 'open' && !this.#isUnread && step?.recovers === true && step.results.length > 0) {
      this.#state = 'recovering'
      this.#undone = { step, error: why }
      writeSync(channel.writer)
      channel.flushSoon()
      return
    }
    step?.reject(why)
    if (this.#state !== 'open') return
    this.#state = 'failed'
    writeSync(channel.writer)
    channel.flushSoon()
  }

  withinBlock(): void {
    const undone = this.#undone
    this.#undone = null
    if (undone !== null && !this.#isUnread) {
      this.#state = 'open'
      this.#add(UNDO).then(
        () => undone.step.reject(undone.error),
        error => undone.step.reject(error),
      )
      this.#send()
      return
    }
    undone?.step.reject(this.#refused ?? new CancelledError())
    if (++this.#rollbacks > ROLLBACKS_MAX) throw new ProtocolError('the transaction cannot be rolled back')
    this.#rollBack()
  }

  finished(): boolean {
    if (this.#committed?.at(-1)?.tag === 'COMMIT') {
      this.#held.releaseSoon()
      this.#commit?.resolve(this.#committed)
    } else {
      this.#refuseCommit(new SkippedError())
    }
    this.#over()
    return false
  }

  unsent(): void {
    this.#channel = null
    if (this.#state === 'open') this.#state = 'waiting'
  }

  reject(error: Error): void {
    // Without COMMIT nothing can have been committed.
    const isUndone = this.#commit === null && error instanceof UnavailableError
    const why = this.cancelled
      ? new CancelledError()
      : isUndone
        ? new UnavailableError(error.message, false, error.cause)
        : error
    this.#lost = why
    this.#undone?.step.reject(this.#refused ?? why)
    for (const step of this.#steps.splice(0)) step.reject(this.#refused ?? why)
    this.#refuseCommit(why)
    this.#over()
  }

  // --- internals ---

  /** The error of commands that are added after the end. */
  #skipped(): Error {
    return this.#lost ?? new SkippedError()
  }

  get #isUnread(): boolean {
    return this.cancelled || this.#refused !== null
  }

  #add(commands: readonly Command[], recovers = false): Promise<readonly Result[]> {
    return new Promise((resolve, reject) => this.#push(commands, { resolve, reject, recovers }))
  }

  #push(commands: readonly Command[], waiter: Pick<Step, 'resolve' | 'reject' | 'recovers'>): void {
    const count = commands.filter(({ parsesOnly }) => parsesOnly !== true).length
    this.#steps.push({ commands, count, plan: new CommandPlan(), results: [], ...waiter })
  }

  /** Sends the step that was added last. */
  #send(): void {
    const channel = this.#channel
    const step = this.#steps.at(-1)
    if (channel === null || step === undefined) return
    if (this.#steps.length === 1) this.#since = this.#host.clock()
    if (!this.#write(step, channel)) return
    writeFlush(channel.writer)
    channel.flushSoon()
  }

  /** Returns false, and rejects the step, if it cannot be encoded. */
  #write(step: Step, channel: RequestChannel): boolean {
    const { writer, statements } = channel
    const mark = writer.length
    step.plan = new CommandPlan()
    step.results = []
    try {
      for (const command of step.commands) {
        if (command.parsesOnly === true) step.plan.writeDescribe(command.text, writer)
        else step.plan.write(command, 0, writer, statements)
      }
      return true
    } catch (error) {
      writer.truncate(mark)
      step.plan.forgetUnconfirmed(statements)
      this.#steps.splice(this.#steps.indexOf(step), 1)
      step.reject(error)
      return false
    }
  }

  #rollBack(): void {
    this.#add([ROLLBACK]).catch(() => {})
    this.#end('rolling back')
  }

  #end(state: 'committing' | 'rolling back'): void {
    this.#state = state
    const channel = this.#channel
    const step = this.#steps.at(-1)
    if (channel === null || step === undefined) return
    this.#write(step, channel)
    writeSync(channel.writer)
    channel.flushSoon()
  }

  #refuseCommit(error: unknown): void {
    this.#commit?.reject(error)
    this.#commit = null
  }

  #over(): void {
    this.#state = 'ended'
    this.#rows = []
    this.#held.release()
    this.#resolveEnded()
  }

  #grow(bytes: number): boolean {
    const { resultBytesMax } = this.#host
    if (bytes > resultBytesMax) {
      this.#refuse(oversize(resultBytesMax, bytes))
      return false
    }
    const refused = this.#held.grow(bytes + this.#rows.length * ROW_BYTES + STEP_BYTES, true)
    if (refused === null) {
      this.#room = Math.min(bytes + STEP_BYTES, resultBytesMax)
      return true
    }
    this.#refuse(refused)
    return false
  }

  /** Nothing has been committed, so a result can be refused at any time. */
  #refuse(error: Error): void {
    if (this.#refused !== null) return
    this.#refused = error
    this.#rows = []
    this.#held.release()
    this.#room = UNCOUNTED_BYTES
    if (this.cancelled) return
    this.cancelled = true
    this.#channel?.cancel()
  }
}

function oversize(max: number, bytes: number): DatabaseError {
  return refusal(
    '54000',
    `the result exceeds ${max} bytes (${bytes} so far)`,
    'Select fewer rows or columns, or stream them.',
  )
}
