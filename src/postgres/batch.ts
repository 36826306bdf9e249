/**
 * A batch: one transaction in one packet, with Bind and Execute of each command and one Sync. The
 * implementation of `run`.
 */
import { CancelledError, type DatabaseError, ProtocolError, refusal } from './errors.ts'
import type { FieldDescription } from './fields.ts'
import type { Flow } from './flow.ts'
import { NOTHING_OWED, owedOf, type PendingRequest, type RequestChannel } from './pending-request.ts'
import { decodeDataRow } from './protocol/backend.ts'
import { writeSync } from './protocol/frontend.ts'
import {
  HeldBytes,
  type ResultBudget,
  ROW_BYTES,
  STEP_BYTES,
  UNCOUNTED_BYTES,
  UNLIMITED_BUDGET,
} from './result-budget.ts'
import { CommandPlan, confirmDescription, confirmParse } from './statement-plan.ts'
import type { Command, Result, ResultRow, RunningRequest, ServerTime } from './types.ts'

/**
 * Limit on the rows of one batch, which are kept in memory; larger results must be streamed. Pools can have a
 * lower limit.
 */
const RESULT_BYTES_MAX = 64 * 1024 * 1024

/** A pending batch of commands. */
export class CommandBatch implements PendingRequest, RunningRequest<readonly Result[]> {
  readonly result: Promise<readonly Result[]>
  readonly exclusive = false
  readonly flow: Flow
  readonly latencyKey: string
  readonly serverTime: ServerTime
  readonly readsOnly: boolean
  expectedMs = 0
  deadline = 0
  cancelled = false
  readonly #commands: readonly Command[]
  readonly #drop: (unit: PendingRequest) => void
  readonly #budget: ResultBudget
  #resolve!: (results: readonly Result[]) => void
  #reject!: (error: Error) => void
  #channel: RequestChannel | null = null
  #plan: CommandPlan | null = null
  #results: Result[] = []
  #rows: ResultRow[] = []
  #bytes = 0
  /** Bytes that the result may have before more budget is requested. */
  #room = UNCOUNTED_BYTES
  #held: HeldBytes | null = null
  readonly #bytesMax: number
  /** Why the rest of the result is not read. */
  #refused: Error | null = null
  #failure: DatabaseError | null = null
  #retried = false
  #settled = false

  /** `drop` removes it from the wait queue and rejects it. */
  constructor(
    flow: Flow,
    commands: readonly Command[],
    drop: (unit: PendingRequest) => void,
    worked: ServerTime = { ms: 0 },
    budget: ResultBudget = UNLIMITED_BUDGET,
    resultBytesMax: number = RESULT_BYTES_MAX,
  ) {
    this.#bytesMax = flow.isOwn ? RESULT_BYTES_MAX : resultBytesMax
    this.flow = flow
    this.readsOnly = commands[0]?.readsOnly === true
    this.serverTime = worked
    this.#budget = budget
    this.#commands = commands
    this.#drop = drop
    this.latencyKey = latencyKeyOf(commands)
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  cancel(): void {
    if (this.cancelled || this.#settled) return
    this.cancelled = true
    // A caller that cancels does not need to handle the rejection.
    this.result.catch(() => {})
    if (this.#channel === null) this.#drop(this)
    else this.#channel.cancel()
  }

  get owed(): readonly Command[] {
    return this.#failure === null ? NOTHING_OWED : owedOf(this.#commands)
  }

  unansweredMs(now: number, headSince: number): number {
    return this.serverTime.ms + now - headSince
  }

  write(channel: RequestChannel): void {
    const plan = new CommandPlan()
    this.#channel = channel
    this.#plan = plan
    this.#results = []
    this.#rows = []
    this.#bytes = 0
    this.#release()
    this.#failure = null
    try {
      for (const command of this.#commands) plan.write(command, 0, channel.writer, channel.statements)
      writeSync(channel.writer)
    } catch (error) {
      plan.forgetUnconfirmed(channel.statements)
      this.#channel = null
      throw error
    }
  }

  parseComplete(): void {
    confirmParse(this.#plan)
  }

  parametersDescribed(): void {
    // Parameters are sent as text, so their types are not needed.
  }

  described(fields: readonly FieldDescription[]): void {
    confirmDescription(this.#plan, fields)
  }

  dataRow(bytes: Buffer, start: number, end: number): void {
    this.#bytes += end - start
    if (this.cancelled || (this.#bytes > this.#room && !this.#grow(this.#bytes))) return
    this.#rows.push(decodeDataRow(bytes, start, end))
  }

  rowBegins(bytes: number): boolean {
    const whole = this.#bytes + bytes
    if (!this.cancelled && (whole <= this.#room || this.#grow(whole))) return true
    this.#bytes = whole
    return false
  }

  rowTooLong(bytes: number): void {
    this.#refuseSize(bytes)
  }

  complete(tag: string): void {
    const index = this.#results.length
    if (index >= this.#commands.length)
      throw new ProtocolError(`the server completed "${tag}", which was not requested`)
    this.#results.push({ fields: (this.#plan as CommandPlan).fields(index), rows: this.#rows, tag })
    this.#rows = []
  }

  suspended(): void {
    throw new ProtocolError('the server suspended a portal that has no row limit')
  }

  failed(error: DatabaseError): void {
    this.#failure ??= error
  }

  finished(): boolean {
    const plan = this.#plan as CommandPlan
    const statements = (this.#channel as RequestChannel).statements
    const failure = this.#failure
    if (failure !== null) {
      plan.forgetUnconfirmed(statements)
      const tags = this.#results.map(result => result.tag)
      const stale = plan.isStale(failure, tags, statements)
      if (stale && !this.#retried && !this.cancelled) {
        this.#retried = true
        this.#channel = null
        return true
      }
    }
    if (failure !== null) {
      this.reject(failure)
    } else if (this.#results.length !== this.#commands.length) {
      throw new ProtocolError(`the server completed ${this.#results.length} of ${this.#commands.length} commands`)
    } else if (this.cancelled) {
      this.reject(new CancelledError())
    } else {
      this.#settled = true
      this.#held?.releaseSoon()
      this.#resolve(this.#results)
    }
    return false
  }

  unsent(): void {
    this.#channel = null
  }

  reject(error: Error): void {
    this.#settled = true
    this.#rows = []
    this.#release()
    this.#reject(this.#refused ?? (this.cancelled ? new CancelledError() : error))
  }

  /**
   * Reserves budget for a result of `bytes` bytes. Returns false if it does not exist; the result is given up
   * then.
   */
  #grow(bytes: number): boolean {
    if (bytes > this.#bytesMax) {
      this.#refuseSize(bytes)
      return false
    }
    this.#held ??= new HeldBytes(this.#budget, this.flow)
    const refused = this.#held.grow(bytes + this.#rows.length * ROW_BYTES + STEP_BYTES, this.readsOnly)
    if (refused === null) {
      this.#room = Math.min(bytes + STEP_BYTES, this.#bytesMax)
      return true
    }
    this.#refused = refused
    this.#rows = []
    this.#release()
    // Nothing more is kept, so PostgreSQL need not continue.
    this.cancelled = true
    this.#channel?.cancel()
    return false
  }

  #release(): void {
    this.#held?.release()
    this.#room = UNCOUNTED_BYTES
  }

  /** The statement may have succeeded and been committed; only its result is unavailable. */
  #refuseSize(bytes: number): void {
    this.#rows = []
    this.#release()
    this.#failure ??= refusal(
      '54000',
      `the result exceeds ${this.#bytesMax} bytes (${bytes} so far)`,
      'Select fewer rows or columns, or stream them.',
    )
  }
}

/** The first few commands identify the kind of a batch. */
const KEY_COMMANDS_MAX = 5

/**
 * The key of a batch's latency estimate. The first command sets up the others, and short ones after the main
 * command clean up; a batch of very many commands costs more than one of a few.
 */
function latencyKeyOf(commands: readonly Command[]): string {
  const [first] = commands
  let longest = ''
  for (let index = 1; index < commands.length && index < KEY_COMMANDS_MAX; index++) {
    const command = commands[index]
    if (command?.upkeep === true) continue
    const text = command?.text ?? ''
    if (text.length > longest.length && text !== first?.text) longest = text
  }
  const key = longest === '' ? (first?.text ?? '') : longest
  return commands.length <= 16 ? key : `${Math.ceil(Math.log2(commands.length))} ${key}`
}
