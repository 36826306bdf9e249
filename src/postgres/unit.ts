/** One transaction in one packet: Bind and Execute of each command, one Sync. What `run` hands out. */
import { CancelledError, type DatabaseError, ProtocolError, refusal } from './errors.ts'
import { type Channel, type Exchange, NOTHING_OWED, owedOf } from './exchange.ts'
import type { FieldDescription } from './fields.ts'
import type { Flow } from './flow.ts'
import { Plan } from './plan.ts'
import { decodeDataRow } from './protocol/backend.ts'
import { writeSync } from './protocol/frontend.ts'
import { Held, type ResultBudget, ROW_BYTES, STEP_BYTES, UNCOUNTED_BYTES, UNLIMITED } from './result-budget.ts'
import type { Command, Result, Row, Running, ServerTime } from './types.ts'

/** Rows of one unit are kept in memory together; an answer beyond this asks to be streamed. Callers can have a lower limit. */
const RESULT_BYTES_MAX = 64 * 1024 * 1024

export class Unit implements Exchange, Running<readonly Result[]> {
  readonly result: Promise<readonly Result[]>
  readonly exclusive = false
  readonly flow: Flow
  readonly costKey: string
  readonly worked: ServerTime
  readonly readsOnly: boolean
  expectedMs = 0
  deadline = 0
  cancelled = false
  readonly #commands: readonly Command[]
  readonly #drop: (unit: Exchange) => void
  readonly #budget: ResultBudget
  #resolve!: (results: readonly Result[]) => void
  #reject!: (error: Error) => void
  #channel: Channel | null = null
  #plan: Plan | null = null
  #results: Result[] = []
  #rows: Row[] = []
  #bytes = 0
  /** Bytes that the result may have before it asks for more. */
  #room = UNCOUNTED_BYTES
  #held: Held | null = null
  readonly #bytesMax: number
  /** Why the rest of the result is not read. */
  #refused: Error | null = null
  #failure: DatabaseError | null = null
  #retried = false
  #settled = false

  /** `drop` takes it out of the queue in which it waits for a connection, and rejects it. */
  constructor(
    flow: Flow,
    commands: readonly Command[],
    drop: (unit: Exchange) => void,
    worked: ServerTime = { ms: 0 },
    budget: ResultBudget = UNLIMITED,
    resultBytesMax: number = RESULT_BYTES_MAX,
  ) {
    this.#bytesMax = flow.isOwn ? RESULT_BYTES_MAX : resultBytesMax
    this.flow = flow
    this.readsOnly = commands[0]?.readsOnly === true
    this.worked = worked
    this.#budget = budget
    this.#commands = commands
    this.#drop = drop
    this.costKey = costKeyOf(commands)
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  cancel(): void {
    if (this.cancelled || this.#settled) return
    this.cancelled = true
    // Who cancels need not look at what becomes of it.
    this.result.catch(() => {})
    if (this.#channel === null) this.#drop(this)
    else this.#channel.cancel()
  }

  get owed(): readonly Command[] {
    return this.#failure === null ? NOTHING_OWED : owedOf(this.#commands)
  }

  unansweredMs(now: number, headSince: number): number {
    return this.worked.ms + now - headSince
  }

  write(channel: Channel): void {
    const plan = new Plan()
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
    if (this.#plan?.parseComplete() !== true)
      throw new ProtocolError('the server confirmed a statement nobody prepared')
  }

  parametersDescribed(): void {
    // Parameters are sent as text: PostgreSQL knows their types, and we need not.
  }

  described(fields: readonly FieldDescription[]): void {
    if (this.#plan?.described(fields) !== true) throw new ProtocolError('the server described a statement unasked')
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
    if (index >= this.#commands.length) throw new ProtocolError(`the server completed "${tag}", which nobody asked for`)
    this.#results.push({ fields: (this.#plan as Plan).fields(index), rows: this.#rows, tag })
    this.#rows = []
  }

  suspended(): void {
    throw new ProtocolError('the server suspended a portal that has no row limit')
  }

  failed(error: DatabaseError): void {
    this.#failure ??= error
  }

  finished(): boolean {
    const plan = this.#plan as Plan
    const statements = (this.#channel as Channel).statements
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
      throw new ProtocolError(`the server answered ${this.#results.length} of ${this.#commands.length} commands`)
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

  /** Makes room for a result of so many bytes. Returns false if there is none: the result is given up. */
  #grow(bytes: number): boolean {
    if (bytes > this.#bytesMax) {
      this.#refuseSize(bytes)
      return false
    }
    this.#held ??= new Held(this.#budget, this.flow)
    const refused = this.#held.grow(bytes + this.#rows.length * ROW_BYTES + STEP_BYTES, this.readsOnly)
    if (refused === null) {
      this.#room = Math.min(bytes + STEP_BYTES, this.#bytesMax)
      return true
    }
    this.#refused = refused
    this.#rows = []
    this.#release()
    // Nothing more of it is kept, and PostgreSQL need not go on.
    this.cancelled = true
    this.#channel?.cancel()
    return false
  }

  #release(): void {
    this.#held?.release()
    this.#room = UNCOUNTED_BYTES
  }

  /** The work itself may have succeeded, and is then committed; only its answer cannot be had. */
  #refuseSize(bytes: number): void {
    this.#rows = []
    this.#release()
    this.#failure ??= refusal(
      '54000',
      `the result has more than ${this.#bytesMax} bytes (${bytes} so far)`,
      'Ask for fewer rows or columns, or stream them.',
    )
  }
}

/** Of so many commands the first few tell what kind of unit it is. */
const LOOKED_AT = 5

/**
 * What a unit is expected to cost is remembered by this. The first command prepares for the others, and what follows the one that matters tidies up behind
 * it, in few words; a unit of very many commands costs more than one of a few.
 */
function costKeyOf(commands: readonly Command[]): string {
  const [first] = commands
  let longest = ''
  for (let index = 1; index < commands.length && index < LOOKED_AT; index++) {
    const command = commands[index]
    if (command?.upkeep === true) continue
    const text = command?.text ?? ''
    if (text.length > longest.length && text !== first?.text) longest = text
  }
  const key = longest === '' ? (first?.text ?? '') : longest
  return commands.length <= 16 ? key : `${Math.ceil(Math.log2(commands.length))} ${key}`
}
