/**
 * `POST /api/_batch` (docs/reference/batches.md): several requests in one. Each goes through the stages of
 * the pipeline like a single request. By default they share a transaction (`run/joint-transaction.ts`):
 * operations without references start at once, and their statements run in order.
 */
import { GatewayError } from '../errors.ts'
import type { Answer, Incoming } from '../exchange.ts'
import type { Identity } from '../identity/identity.ts'
import { fillAddress, fillValue, operationsIn, ReferredAnswers } from '../rest/batch/references.ts'
import {
  ADDRESS_BYTES_MAX,
  type BatchLimits,
  type BatchOperation,
  type BatchRequest,
  ofOperation,
  readBatch,
  refuseRoute,
} from '../rest/batch/request.ts'
import { methodNotAllowed, methodsOf } from '../rest/method.ts'
import { nextTurn } from '../rest/next-turn.ts'
import { sqlstateOf } from '../rest/sqlstate.ts'
import type { RequestContext } from '../rest/steps.ts'
import { describeViolation } from '../rest/violation.ts'
import type { KeyClaim } from '../run/idempotency.ts'
import {
  type JointTransaction,
  KnownFailures,
  type Part,
  PartOfWork,
  RestartError,
  SkippedError,
} from '../run/joint-transaction.ts'
import type { Runner, Work } from '../run/run.ts'
import { LIMIT_NAMES } from '../statement-limits.ts'
import { Usage } from '../usage.ts'
import { isNotModified, notModified } from './entity-tags.ts'
import type { RequestProgress } from './pipeline.ts'
import { noProgress, type Reports } from './reports.ts'
import { BODY_BYTES_MAX } from './request-body.ts'

/** The dependencies of batches. */
export interface BatchParts extends BatchLimits {
  /** Limit on the bytes of all results together. */
  readonly maxResultBytes: number
  readonly reports: Reports
  /** Counts a further request of the client's address; returns false above its rate limit. */
  readonly countRequest: (incoming: Incoming) => boolean | Promise<boolean>
  /** Counts bytes of results that are in memory and not sent yet. Returns a function that subtracts them. */
  readonly countBytes: (caller: Identity, bytes: number) => () => void
  /** The time in milliseconds of a monotonic clock. */
  readonly now: () => number
  /** Resolves after a pause. */
  readonly pause: (ms: number) => Promise<void>
  readonly random: () => number
}

/** How a batch runs its operations. */
export interface BatchStages {
  readonly runner: Pick<Runner, 'open'>
  /** Takes one operation through the stages of the pipeline. */
  answer(context: RequestContext, progress: RequestProgress): Promise<Answer>
}

/**
 * Limit for each operation on how often the batch is run again because a statement had to be replaced by
 * another. The statement timeout limits the time of all runs together.
 */
const RESTARTS_MAX = 4
/** Limit on how often a batch with an isolation level is run again after a conflict. */
const CONFLICTS_MAX = 5
/** The pause before a batch is run again; it grows with each conflict. */
const CONFLICT_PAUSE_MS = 10

/** Serialization failure and deadlock (PostgreSQL manual, appendix A). */
const CONFLICTS: readonly (string | null)[] = ['40001', '40P01']

/** Operations that are started before other requests get a turn. */
const STARTED_AT_ONCE = 5

/** An answered operation. */
interface Answered {
  readonly request: Incoming
  readonly answer: Answer
  readonly progress: RequestProgress
  readonly durationMs: number
}

/** The error of an operation; `failed` is null if the operation did not start. */
interface Failed {
  readonly error: unknown
  readonly failed: Omit<Answered, 'answer'> | null
}

type Outcome = Answered | Failed

/** Answers batches. */
export class BatchHandler {
  readonly #parts: BatchParts
  readonly #stages: BatchStages

  constructor(parts: BatchParts, stages: BatchStages) {
    this.#parts = parts
    this.#stages = stages
  }

  /** Answers a batch. `claim` is the claim on its idempotency key; null without a key. */
  async answer(context: RequestContext, claim: KeyClaim | null): Promise<Answer> {
    const { incoming } = context
    if (incoming.method !== 'POST') throw methodNotAllowed(incoming, methodsOf('batch'))
    const batch = readBatch(incoming, this.#parts)
    if (claim !== null && !batch.atomic) {
      throw new GatewayError(
        'PARSE_ERROR',
        'Idempotency-Key needs one transaction; leave out "atomic": false, or send each operation as a request',
      )
    }
    for (let index = 1; index < batch.operations.length; index++) await this.#count(incoming)
    const run = new BatchRun(this.#parts, this.#stages, context, batch, claim)
    return batch.atomic ? run.together() : run.independently()
  }

  async #count(incoming: Incoming): Promise<void> {
    if (await this.#parts.countRequest(incoming)) return
    throw new GatewayError(
      'RATE_LIMITED',
      'each operation of a batch counts as a request, and there are too many from this address (rate_limit_rate, ' +
        'rate_limit_burst); send fewer per second',
      { headers: { 'Retry-After': '1' } },
    )
  }
}

/** One batch. */
class BatchRun {
  readonly #parts: BatchParts
  readonly #stages: BatchStages
  readonly #context: RequestContext
  readonly #batch: BatchRequest
  readonly #claim: KeyClaim | null
  /** Stops the work of the batch if the client disconnects. */
  #aborts: (() => void)[] = []
  #isGone = false

  constructor(
    parts: BatchParts,
    stages: BatchStages,
    context: RequestContext,
    batch: BatchRequest,
    claim: KeyClaim | null,
  ) {
    this.#parts = parts
    this.#stages = stages
    this.#context = context
    this.#batch = batch
    this.#claim = claim
    context.incoming.onAbort(() => {
      this.#isGone = true
      for (const abort of this.#aborts.splice(0)) abort()
    })
  }

  /** Runs all operations in one transaction. */
  async together(): Promise<Answer> {
    const known = new KnownFailures()
    let restarts = 0
    let conflicts = 0
    for (;;) {
      try {
        return await this.#attempt(known)
      } catch (error) {
        this.#aborts = []
        if (this.#isGone) throw gone()
        if (error instanceof RestartError) {
          if (++restarts > RESTARTS_MAX * this.#batch.operations.length) throw exhausted()
        } else {
          if (this.#batch.isolation === null || !CONFLICTS.includes(sqlstateOf(error))) throw error
          if (++conflicts > CONFLICTS_MAX) throw error
          await this.#parts.pause(CONFLICT_PAUSE_MS * 2 ** conflicts * this.#parts.random())
        }
      }
    }
  }

  /** Runs each operation in its own transaction, in order. A failed one does not prevent the others. */
  async independently(): Promise<Answer> {
    const { incoming, identity } = this.#context
    const outcomes: Outcome[] = []
    const answers: Answered[] = []
    const releases: (() => void)[] = []
    let bytes = 0
    try {
      for (const [index, operation] of this.#batch.operations.entries()) {
        if (this.#isGone) throw gone()
        const outcome = await this.#answerOperation(operation, index, outcomes, incoming.usage.worked, () => {
          if (bytes > this.#parts.maxResultBytes) throw tooManyBytes()
        })
        outcomes.push(outcome)
        const answered = 'answer' in outcome ? outcome : this.#failedAnswer(outcome)
        const size = bytesOf(answered.answer)?.length ?? 0
        bytes += size
        releases.push(this.#parts.countBytes(identity, size))
        answers.push(answered)
        this.#report(answered)
        if (index % STARTED_AT_ONCE === STARTED_AT_ONCE - 1) await nextTurn()
      }
      return this.#answer(answers)
    } finally {
      for (const release of releases) release()
    }
  }

  async #attempt(known: KnownFailures): Promise<Answer> {
    const { incoming, identity, view } = this.#context
    const { worked } = incoming.usage
    const { operations, isolation } = this.#batch
    const claim = this.#claim
    const options = { isolation, known, claim: claim?.command ?? null }
    const transaction = await this.#stages.runner.open(identity, options, worked)
    this.#aborts.push(() => transaction.cancel())
    const running: Promise<Outcome>[] = []
    for (const [index, operation] of operations.entries()) {
      running.push(this.#answerWithin(operation, index, running, transaction))
      if (index % STARTED_AT_ONCE === STARTED_AT_ONCE - 1) await nextTurn()
    }
    const outcomes = await Promise.all(running)
    if (claim !== null && !outcomes.some(outcome => 'error' in outcome)) await transaction.claim().catch(() => {})
    if (claim !== null && transaction.refusal !== null && !this.#isGone) {
      await transaction.rollback()
      return this.#replay(claim, transaction, outcomes)
    }
    const failed = outcomes.findIndex(outcome => 'error' in outcome && !(outcome.error instanceof SkippedError))
    if (this.#isGone || outcomes.some(outcome => 'error' in outcome)) {
      await transaction.rollback()
      if (this.#isGone || failed === -1) throw gone()
      throw this.#failure(outcomes[failed] as Outcome, failed)
    }
    const answers = outcomes.filter(outcome => 'answer' in outcome)
    const release = this.#parts.countBytes(
      identity,
      answers.reduce((sum, { answer }) => sum + sizeOf(answer), 0),
    )
    const answer = this.#answer(answers)
    try {
      await transaction.commit(claim === null ? [] : [await claim.storing(answer, worked)])
    } catch (error) {
      await transaction.rollback()
      if (claim !== null && transaction.refusal !== null) return this.#replay(claim, transaction, outcomes)
      throw describeViolation(error, view)
    } finally {
      release()
    }
    for (const answered of answers) this.#report(answered)
    return answer
  }

  /**
   * The stored response of a batch that has run before. Each operation must still be permitted: those without
   * references have been checked, the others are checked with the stored results.
   */
  async #replay(claim: KeyClaim, transaction: JointTransaction, outcomes: readonly Outcome[]): Promise<Answer> {
    const { refusal } = transaction
    await transaction.repeated()
    for (const [index, outcome] of outcomes.entries()) this.#refuseForbidden(outcome, index)
    const { worked } = this.#context.incoming.usage
    const stored = await claim.resolve(refusal ?? 'known', worked)
    if (stored === null) throw new RestartError()
    const { operations } = this.#batch
    if (operations.every(operation => operationsOf(operation).length === 0)) return stored
    const results = resultsIn(stored).map(body => ({ ...this.#unasked(), answer: { ...NOTHING, body } }))
    for (const [index, operation] of operations.entries()) {
      if (operationsOf(operation).length === 0) continue
      this.#refuseForbidden(
        await this.#answerOperation(operation, index, results, new PartOfWork(worked, NEVER_RUN)),
        index,
      )
    }
    return stored
  }

  #refuseForbidden(outcome: Outcome, index: number): void {
    if ('error' in outcome && outcome.error instanceof GatewayError) throw this.#failure(outcome, index)
  }

  #unasked(): Omit<Answered, 'answer'> {
    return { request: this.#context.incoming, progress: noProgress(), durationMs: 0 }
  }

  /** Runs an operation once the results that it refers to are complete. */
  async #answerWithin(
    operation: BatchOperation,
    index: number,
    earlier: readonly Promise<Outcome>[],
    transaction: JointTransaction,
  ): Promise<Outcome> {
    const outcomes: Outcome[] = []
    for (const needed of operationsOf(operation)) {
      const outcome = await (earlier[needed] as Promise<Outcome>)
      if ('error' in outcome) {
        transaction.stop(index)
        return { error: new SkippedError(), failed: null }
      }
      outcomes[needed] = outcome
    }
    const { worked } = this.#context.incoming.usage
    const within = transaction.part(index, writesRows(operation))
    const outcome = await this.#answerOperation(operation, index, outcomes, new PartOfWork(worked, within))
    if ('error' in outcome) transaction.stop(index)
    else transaction.pass(index)
    return outcome
  }

  async #answerOperation(
    operation: BatchOperation,
    index: number,
    outcomes: readonly Outcome[],
    work: Work,
    admit: () => void = () => {},
  ): Promise<Outcome> {
    const started = this.#parts.now()
    const progress = noProgress(work.trace ?? null)
    let request: Incoming | null = null
    const done = (incoming: Incoming) => ({ request: incoming, progress, durationMs: this.#parts.now() - started })
    try {
      admit()
      request = await this.#incomingOf(operation, index, outcomes, work)
      progress.tenantId = this.#context.identity.tenantId
      progress.caller = this.#context.identity
      const answer = asSent(request, await this.#stages.answer({ ...this.#context, incoming: request }, progress))
      return { ...done(request), answer }
    } catch (error) {
      return { error, failed: done(request ?? this.#context.incoming) }
    }
  }

  async #incomingOf(
    operation: BatchOperation,
    index: number,
    outcomes: readonly Outcome[],
    work: Work,
  ): Promise<Incoming> {
    const { incoming } = this.#context
    const { method, headers, body } = operation
    const answers = new ReferredAnswers((needed: number): Buffer | null => {
      const outcome = outcomes[needed]
      return outcome === undefined || 'error' in outcome ? null : bytesOf(outcome.answer)
    }, BODY_BYTES_MAX)
    const address = await fillAddress(operation.address, answers, ADDRESS_BYTES_MAX)
    refuseRoute(address)
    refuseLong(address, headers)
    const mark = address.indexOf('?')
    return {
      method,
      headers,
      isLarge: incoming.isLarge,
      requestId: incoming.requestId,
      operation: index,
      path: mark < 0 ? address : address.slice(0, mark),
      query: mark < 0 ? '' : address.slice(mark + 1),
      body: await bodyOf(body, answers),
      trace: work.trace ?? null,
      connection: incoming.connection,
      usage: new Usage(work),
      onAbort: listener => {
        if (this.#isGone) listener()
        else this.#aborts.push(listener)
      },
    }
  }

  /** The error of the batch for the operation that failed. */
  #failure(outcome: Outcome, index: number): unknown {
    if (!('error' in outcome) || outcome.error instanceof RestartError) return new RestartError()
    const error = ofOperation(outcome.error, index)
    const { failed } = outcome
    // A batch that is run again reports the operation once.
    const isRunAgain = this.#batch.isolation !== null && CONFLICTS.includes(sqlstateOf(error))
    if (failed !== null && !isRunAgain) {
      const { request, progress, durationMs } = failed
      progress.code = error.code
      const { method, requestId } = request
      this.#parts.reports.ended({ method, requestId, status: error.status, durationMs, progress, incoming: request })
    }
    return error
  }

  #failedAnswer({ error, failed }: Failed): Answered {
    const { incoming } = this.#context
    const { request, progress, durationMs } = failed ?? this.#unasked()
    return {
      request: request,
      progress,
      durationMs,
      answer: this.#parts.reports.errorAnswer(error, incoming.requestId, progress),
    }
  }

  #report({ request, answer, progress, durationMs }: Answered): void {
    const { method, requestId } = request
    const ended = { method, requestId, status: answer.status, durationMs, progress, answer }
    this.#parts.reports.ended(request === this.#context.incoming ? ended : { ...ended, incoming: request })
  }

  /** `{"results":[{"id":…,"status":…,"headers":{…},"body":…}, …]}` */
  #answer(answers: readonly Answered[]): Answer {
    const { operations } = this.#batch
    const chunks: Buffer[] = []
    for (const [index, { answer }] of answers.entries()) {
      const { status, headers } = answer
      const head = JSON.stringify({ id: operations[index]?.id ?? null, status, headers })
      chunks.push(Buffer.from(`${index === 0 ? '' : ','}${head.slice(0, -1)},"body":`), bodyValueOf(answer), END)
    }
    return {
      status: 200,
      headers: { 'Content-Type': 'application/json; charset=utf-8' },
      body: Buffer.concat([Buffer.from('{"results":['), ...chunks, Buffer.from(']}')]),
    }
  }
}

const NO_BODY = Buffer.alloc(0)
const NULL = Buffer.from('null')
const END = Buffer.from('}')

const NOTHING = { status: 200, headers: {} }

/** The runner of operations that are only checked. */
const NEVER_RUN: Part = {
  run: () => ({ result: Promise.reject(new SkippedError()), cancel() {} }),
  attempt: () => ({ result: Promise.reject(new SkippedError()), cancel() {} }),
  writesRows: true,
  onCommit() {},
  settled: Promise.resolve(),
}

/** The bodies in the response of a batch. Numbers that JavaScript cannot represent lose digits. */
function resultsIn(answer: Answer): readonly Buffer[] {
  const { results } = JSON.parse(String(bytesOf(answer))) as { readonly results: readonly { readonly body: unknown }[] }
  return results.map(({ body }) => Buffer.from(JSON.stringify(body)))
}

/** Reports whether the operation can write rows of a table after it has read. */
function writesRows({ method, address: [start] }: BatchOperation): boolean {
  const isText = typeof start === 'string' && start.startsWith('/api/_query')
  return !isText && method !== 'GET' && method !== 'HEAD'
}

function operationsOf({ address, body }: BatchOperation): readonly number[] {
  return body?.kind === 'json' ? operationsIn(address, body.value) : operationsIn(address)
}

async function bodyOf(body: BatchOperation['body'], answers: ReferredAnswers): Promise<Buffer> {
  if (body === null) return NO_BODY
  return body.kind === 'text' ? Buffer.from(body.text) : fillValue(body.value, answers, BODY_BYTES_MAX)
}

/** Applies the limit on the head of a request. */
function refuseLong(address: string, headers: BatchOperation['headers']): void {
  let size = address.length
  for (const name in headers) size += name.length + (headers[name]?.length ?? 0)
  if (size <= ADDRESS_BYTES_MAX) return
  throw new GatewayError(
    'HEADERS_TOO_LARGE',
    `the path and headers of the operation are larger than ${ADDRESS_BYTES_MAX} bytes`,
  )
}

/** The bytes of a body; null without one. Operations are not streamed. */
function bytesOf({ body }: Answer): Buffer | null {
  if (body === null) return null
  if (Buffer.isBuffer(body)) return body
  return 'latin1' in body ? Buffer.from(body.latin1, 'latin1') : null
}

function sizeOf({ body }: Answer): number {
  if (body === null) return 0
  return Buffer.isBuffer(body) ? body.length : 'latin1' in body ? body.latin1.length : 0
}

/** The answer as a client would receive it. */
function asSent(request: Incoming, answer: Answer): Answer {
  if (isNotModified(request, answer)) return notModified(answer, 'none')
  return request.method === 'HEAD' ? { ...answer, body: null } : answer
}

/** The body as a JSON value; a string if the body is not JSON. */
function bodyValueOf(answer: Answer): Buffer {
  const bytes = bytesOf(answer)
  if (bytes === null || bytes.length === 0) return NULL
  const isJson = /json/.test(answer.headers['Content-Type'] ?? '')
  return isJson ? bytes : Buffer.from(JSON.stringify(bytes.toString()))
}

function gone(): GatewayError {
  return new GatewayError('TIMEOUT', 'the request was cancelled')
}

function exhausted(): GatewayError {
  return new GatewayError('UNAVAILABLE', 'the batch was run again too many times; send fewer operations', {
    headers: { 'Retry-After': '1' },
  })
}

function tooManyBytes(): GatewayError {
  const limit = LIMIT_NAMES.maxResultBytes
  return new GatewayError('QUERY_ERROR', `the earlier results of the batch exceed ${limit}; send fewer operations`, {
    limit,
  })
}
