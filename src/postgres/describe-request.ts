/**
 * Parses and describes a statement under given settings without running it (PostgreSQL manual, 54.2.3). The
 * implementation of `describe`.
 */
import { CancelledError, type DatabaseError, ProtocolError } from './errors.ts'
import type { FieldDescription } from './fields.ts'
import type { Flow } from './flow.ts'
import { NOTHING_OWED, type PendingRequest, type RequestChannel } from './pending-request.ts'
import { decodeParameterDescription } from './protocol/backend.ts'
import { writeSync } from './protocol/frontend.ts'
import { CommandPlan, confirmDescription, confirmParse } from './statement-plan.ts'
import type { Command, RunningRequest, ServerTime, StatementDescription } from './types.ts'

/**
 * Parsing costs about the same for any text, and described texts must not displace the estimates of texts
 * that run.
 */
const COST_KEY = 'Parse, Describe'

/** A pending describe request. */
export class DescribeRequest implements PendingRequest, RunningRequest<StatementDescription> {
  readonly result: Promise<StatementDescription>
  readonly exclusive = false
  readonly flow: Flow
  readonly latencyKey: string = COST_KEY
  readonly serverTime: ServerTime
  readonly readsOnly = true
  expectedMs = 0
  deadline = 0
  cancelled = false
  readonly #before: readonly Command[]
  readonly #text: string
  readonly #drop: (probe: PendingRequest) => void
  #resolve!: (description: StatementDescription) => void
  #reject!: (error: Error) => void
  #channel: RequestChannel | null = null
  #plan: CommandPlan | null = null
  /** Tags of the commands before the text. */
  #tags: string[] = []
  #parameterTypeOids: readonly number[] | null = null
  #fields: readonly FieldDescription[] | null = null
  #failure: DatabaseError | null = null
  #retried = false
  #settled = false

  /** `drop` removes it from the wait queue and rejects it. */
  constructor(
    flow: Flow,
    before: readonly Command[],
    text: string,
    drop: (probe: PendingRequest) => void,
    worked: ServerTime = { ms: 0 },
  ) {
    this.flow = flow
    this.serverTime = worked
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
    // A caller that cancels does not need to handle the rejection.
    this.result.catch(() => {})
    if (this.#channel === null) this.#drop(this)
    else this.#channel.cancel()
  }

  /** Nothing is run that would have to be undone. */
  get owed(): readonly Command[] {
    return NOTHING_OWED
  }

  unansweredMs(now: number, headSince: number): number {
    return this.serverTime.ms + now - headSince
  }

  write(channel: RequestChannel): void {
    const plan = new CommandPlan()
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
    confirmParse(this.#plan)
  }

  parametersDescribed(bytes: Buffer, start: number, end: number): void {
    if (this.#isAtText()) this.#parameterTypeOids = decodeParameterDescription(bytes, start, end)
  }

  described(fields: readonly FieldDescription[]): void {
    confirmDescription(this.#plan, fields)
    if (this.#isAtText()) this.#fields = fields
  }

  dataRow(): void {
    if (this.#isAtText()) throw new ProtocolError('the server ran a statement that it was only asked to describe')
  }

  rowBegins(): boolean {
    return false
  }

  rowTooLong(): void {
    // Rows of the commands before the text are discarded.
  }

  complete(tag: string): void {
    if (this.#isAtText()) throw new ProtocolError(`the server completed "${tag}", which was not requested`)
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
      const plan = this.#plan as CommandPlan
      const { statements } = this.#channel as RequestChannel
      plan.forgetUnconfirmed(statements)
      const stale = plan.isStale(failure, this.#tags, statements)
      if (stale && !this.#retried && !this.cancelled) {
        this.#retried = true
        this.#channel = null
        return true
      }
      this.reject(failure)
    } else if (this.#parameterTypeOids === null || this.#fields === null) {
      throw new ProtocolError('the server did not describe the requested statement')
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

  /** True if all commands before the text have completed. */
  #isAtText(): boolean {
    return this.#tags.length === this.#before.length
  }
}
