/**
 * Parse and Describe of one text behind the settings it is to be read under, and nothing of it is run
 * (PostgreSQL manual, 54.2.3). What `describe` hands out.
 */
import { CancelledError, type DatabaseError, ProtocolError } from './errors.ts'
import { type Channel, type Exchange, NOTHING_OWED } from './exchange.ts'
import type { FieldDescription } from './fields.ts'
import type { Flow } from './flow.ts'
import { Plan } from './plan.ts'
import { decodeParameterDescription } from './protocol/backend.ts'
import { writeSync } from './protocol/frontend.ts'
import type { Command, Running, ServerTime, StatementDescription } from './types.ts'

/** To parse costs much the same whatever the text; and what people ask about must not push out what is run. */
const COST_KEY = 'Parse, Describe'

export class Probe implements Exchange, Running<StatementDescription> {
  readonly result: Promise<StatementDescription>
  readonly exclusive = false
  readonly flow: Flow
  readonly costKey: string = COST_KEY
  readonly worked: ServerTime
  readonly readsOnly = true
  expectedMs = 0
  deadline = 0
  cancelled = false
  readonly #before: readonly Command[]
  readonly #text: string
  readonly #drop: (probe: Exchange) => void
  #resolve!: (description: StatementDescription) => void
  #reject!: (error: Error) => void
  #channel: Channel | null = null
  #plan: Plan | null = null
  /** Of the commands before the text. */
  #tags: string[] = []
  #parameterTypeOids: readonly number[] | null = null
  #fields: readonly FieldDescription[] | null = null
  #failure: DatabaseError | null = null
  #retried = false
  #settled = false

  /** `drop` takes it out of the queue in which it waits for a connection, and rejects it. */
  constructor(
    flow: Flow,
    before: readonly Command[],
    text: string,
    drop: (probe: Exchange) => void,
    worked: ServerTime = { ms: 0 },
  ) {
    this.flow = flow
    this.worked = worked
    this.#before = before
    this.#text = text
    this.#drop = drop
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

  /** It runs nothing that would have to be undone. */
  get owed(): readonly Command[] {
    return NOTHING_OWED
  }

  unansweredMs(now: number, headSince: number): number {
    return this.worked.ms + now - headSince
  }

  write(channel: Channel): void {
    const plan = new Plan()
    const { writer, statements } = channel
    this.#channel = channel
    this.#plan = plan
    this.#tags = []
    this.#parameterTypeOids = null
    this.#fields = null
    this.#failure = null
    try {
      for (const command of this.#before) plan.write(command, 0, writer, statements)
      plan.writeDescribe(this.#text, writer)
      writeSync(writer)
    } catch (error) {
      plan.forgetUnconfirmed(statements)
      this.#channel = null
      throw error
    }
  }

  parseComplete(): void {
    if (this.#plan?.parseComplete() !== true)
      throw new ProtocolError('the server confirmed a statement nobody prepared')
  }

  parametersDescribed(bytes: Buffer, start: number, end: number): void {
    if (this.#isAtText()) this.#parameterTypeOids = decodeParameterDescription(bytes, start, end)
  }

  described(fields: readonly FieldDescription[]): void {
    if (this.#plan?.described(fields) !== true) throw new ProtocolError('the server described a statement unasked')
    if (this.#isAtText()) this.#fields = fields
  }

  dataRow(): void {
    if (this.#isAtText()) throw new ProtocolError('the server ran what it was only to describe')
  }

  rowBegins(): boolean {
    return false
  }

  rowTooLong(): void {
    // What the commands before return interests nobody.
  }

  complete(tag: string): void {
    if (this.#isAtText()) throw new ProtocolError(`the server completed "${tag}", which nobody asked for`)
    this.#tags.push(tag)
  }

  suspended(): void {
    throw new ProtocolError('the server suspended a portal that has no row limit')
  }

  failed(error: DatabaseError): void {
    this.#failure ??= error
  }

  finished(): boolean {
    const failure = this.#failure
    if (failure !== null) {
      const plan = this.#plan as Plan
      const { statements } = this.#channel as Channel
      plan.forgetUnconfirmed(statements)
      const stale = plan.isStale(failure, this.#tags, statements)
      if (stale && !this.#retried && !this.cancelled) {
        this.#retried = true
        this.#channel = null
        return true
      }
      this.reject(failure)
    } else if (this.#parameterTypeOids === null || this.#fields === null) {
      throw new ProtocolError('the server did not describe the statement that it was asked about')
    } else if (this.cancelled) {
      this.reject(new CancelledError())
    } else {
      this.#settled = true
      this.#resolve({ parameterTypeOids: this.#parameterTypeOids, fields: this.#fields })
    }
    return false
  }

  unsent(): void {
    this.#channel = null
  }

  reject(error: Error): void {
    this.#settled = true
    this.#reject(this.cancelled ? new CancelledError() : error)
  }

  /** All that lies before the text has been answered. */
  #isAtText(): boolean {
    return this.#tags.length === this.#before.length
  }
}
