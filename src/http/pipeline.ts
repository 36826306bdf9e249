/**
 * The stages of a request, in order (docs/internals/a-request.md). Limits on the bytes of a request, CORS and
 * the rate limit are checked earlier, in `server.ts` and `admission.ts`. Every request for data goes through
 * the same stages:
 *
 * | stage   | task                                                           | where                        |
 * |---------|----------------------------------------------------------------|------------------------------|
 * | parse   | path, query string and headers, or a query text                | rest/path, request; query    |
 * | approve | compare the request shape with the allow-list, if there is one | rest/allow-list, access/list |
 * | prepare | return trees, values and the response (`rest/steps.ts`)        | rest/read, write, rpc; query |
 * | compile | tree → checked statement, cached by plan key                   | rest/compile, compile        |
 * | permit  | check the tenant's limit on running statements                 | run/limited-runner           |
 * | cache   | answer a read from the cache, or estimate its cost             | run/cache, run/cost-guard    |
 * | run     | send session settings and statements in one packet             | run/run                      |
 * | respond | rows → response, or the next step                              | rest/respond, rpc/respond    |
 */
import type { Approvals } from '../access/list/approvals.ts'
import type { View } from '../access/rights.ts'
import type { PlanCache, Plans } from '../compile/plans.ts'
import type {
  BoundStatement,
  CallStatement,
  CompiledStatement,
  ReadableStatement,
  StreamStatement,
  WriteStatement,
} from '../compile/statement.ts'
import { type ErrorCode, GatewayError } from '../errors.ts'
import type { Answer, Incoming } from '../exchange.ts'
import type { Identity } from '../identity/identity.ts'
import type { Timed } from '../ops/server-timing.ts'
import type { HttpBroadcasts } from '../phoenix/http-broadcasts.ts'
import type { Door } from '../postgrest/door.ts'
import type { QueryHandler } from '../query/query.ts'
import { type AnswerEvents, asksForEvents } from '../realtime/event-stream.ts'
import { prefersCsv } from '../rest/accept.ts'
import { printLine } from '../rest/allow-list/line.ts'
import { answerRead, answerResult } from '../rest/cancel-on-disconnect.ts'
import type { Compiler } from '../rest/compile.ts'
import type { InspectedRequest } from '../rest/inspect/request.ts'
import { NEEDS, READING } from '../rest/method.ts'
import type { NewPartitions } from '../rest/new-partitions.ts'
import { nextTurn } from '../rest/next-turn.ts'
import { parsePath, type ResourceRoute, ROUTE_PATTERN } from '../rest/path.ts'
import type { ReadHandler, ReadRoute } from '../rest/read/read.ts'
import { createRequestCache } from '../rest/read/request-cache.ts'
import { type DataRoute, isData, type RequestLimits, readRequest, type WrittenRequest } from '../rest/request.ts'
import { respondStream } from '../rest/respond.ts'
import type { CallHandler } from '../rest/rpc/call.ts'
import {
  type ExecutedStep,
  isStep,
  type RequestContext,
  type RequestStep,
  type StatementPart,
  type StepResult,
} from '../rest/steps.ts'
import { violatedBy } from '../rest/violation.ts'
import { handleWrite, type WriteLimits, type WriteRoute } from '../rest/write/write.ts'
import type { IdempotencyKeys, KeyClaim } from '../run/idempotency.ts'
import { undoable, unfinished } from '../run/joint-transaction.ts'
import type { Runner, Work } from '../run/run.ts'
import { optionsAnswer, shapeRefusal } from '../shapes/shape-answers.ts'
import type { Shapes } from '../shapes/shapes.ts'
import type { Traced } from '../tracing/tracing.ts'
import { unreachable } from '../unreachable.ts'
import { BatchHandler, type BatchParts } from './batch.ts'
import { assertExplainable, type CallerParts, callerOf, isAdminExplaining, isOfApi } from './callers.ts'
import { keepOnPrimary, requireConsistency, STRONG } from './consistency.ts'
import { ImportHandler, type ImportParts } from './import.ts'
import { InspectionHandler, type InspectionParts } from './inspect.ts'
import { answerTogether, claimOf } from './once.ts'
import { answerDocument, answerPage, type Documents, noRoute, type PageParts } from './other-routes.ts'

/** The dependencies of the pipeline. */
export interface PipelineParts extends CallerParts, PageParts {
  /** The schema and rights of a caller. */
  readonly view: (identity: Identity) => View
  /**
   * The allow-list, or null if every query is accepted. Query texts are compared with it where they are
   * parsed.
   */
  readonly approvals: Approvals | null
  readonly read: ReadHandler
  readonly requestLimits: RequestLimits
  readonly writeLimits: WriteLimits
  readonly call: CallHandler
  readonly text: QueryHandler
  readonly compiler: Compiler
  readonly newPartitions: Pick<NewPartitions, 'learn'>
  readonly plans: PlanCache
  /** Acquires a permit and runs the statements. */
  readonly runner: Runner
  /** For reads: permit, cache, cost guard, run. */
  readonly reads: Runner
  /**
   * True if results are cached; requests are then likely to be repeated, so their plans are cached by the
   * whole request too.
   */
  readonly cachesRequests: boolean
  readonly documents: Documents
  /** Answers a list request for the changes of a table. */
  readonly events: AnswerEvents
  /** The route of shapes; null if it is disabled. */
  readonly shapes: Shapes | null
  /** The route of broadcasts over HTTP; null if it is disabled. */
  readonly broadcasts: HttpBroadcasts | null
  readonly batch: BatchParts
  readonly imports: ImportParts
  readonly inspect: InspectionParts
  readonly idempotencyKeys: IdempotencyKeys
  /** @throws {GatewayError} for a caller whose unread responses exceed a limit. */
  readonly assertRoom: (caller: Identity, method: string) => void
}

/** The progress of a request: what is known about it if it fails. */
export interface RequestProgress extends Timed, Traced {
  route: string
  /** The route below `/api/`; null until it is known. */
  at: ResourceRoute | null
  /** The data request; null until it is parsed. */
  written: WrittenRequest | null
  tenantId: string
  /** The caller; null until it is known. */
  caller: Identity | null
  /** The code of the error that ended the request; null if it succeeded. */
  code: ErrorCode | null
}

/**
 * Handles a request; synchronous if nothing has to be awaited.
 * @throws {GatewayError} also as a rejection.
 */
export type Pipeline = (incoming: Incoming, progress: RequestProgress) => Answer | Promise<Answer>

/** Creates the pipeline. */
export function createPipeline(parts: PipelineParts): Pipeline {
  const stages = new Stages(parts)
  return (incoming, progress) => stages.answer(incoming, progress)
}

/** The statements to run for a request, or a response if nothing has to run. */
type Compiled = { readonly step: ExecutedStep; readonly statements: readonly BoundStatement[] } | Answer

/** The plans of a whole request. */
interface RequestPlan {
  readonly written: WrittenRequest
  readonly compiled: Compiled | Promise<Compiled>
}

/** Limit on the plans of one request that are cached. */
const KEPT_AT_ONCE = 100

/**
 * Number of statements compiled before other requests get a turn; compiling one takes a few milliseconds at
 * most.
 */
const COMPILED_AT_ONCE = 5

class Stages {
  readonly #parts: PipelineParts
  readonly #batches: BatchHandler
  readonly #imports: ImportHandler
  readonly #inspections: InspectionHandler
  /** The plans of whole requests for one row and for lists; null if they are not cached. */
  readonly #requestPlans: { readonly one: Plans<RequestPlan>; readonly list: Plans<RequestPlan> } | null

  constructor(parts: PipelineParts) {
    const { plans, cachesRequests } = parts
    this.#parts = parts
    const answer = (context: RequestContext, progress: RequestProgress) => this.#answerRequest(context, progress)
    this.#batches = new BatchHandler(parts.batch, { runner: parts.runner, answer: async (...of) => answer(...of) })
    this.#imports = new ImportHandler(parts.imports, { ...parts, limits: parts.writeLimits })
    this.#inspections = new InspectionHandler(parts.inspect, {
      ...parts,
      toStep: (request, context) => this.#inspectedStep(request, context),
      compile: (step, context) => this.#compile(step, context),
    })
    this.#requestPlans = cachesRequests
      ? {
          one: createRequestCache(plans, 'row request', charactersOf),
          list: createRequestCache(plans, 'list request', charactersOf),
        }
      : null
  }

  answer(incoming: Incoming, progress: RequestProgress): Answer | Promise<Answer> {
    const { door, shapes, broadcasts } = this.#parts
    if (broadcasts?.owns(incoming.path)) return this.#answerBroadcast(broadcasts, incoming, progress)
    if (door?.owns(incoming.path)) return this.#answerDoor(door, incoming, progress)
    if (shapes !== null && incoming.path === shapes.path) return this.#answerShape(shapes, incoming, progress)
    if (!isOfApi(incoming)) return answerPage(incoming, progress, this.#parts)
    const identity = callerOf(incoming, this.#parts)
    return identity instanceof Promise
      ? identity.then(caller => this.#answerCaller(incoming, progress, caller))
      : this.#answerCaller(incoming, progress, identity)
  }

  /** A request in another dialect takes the same stages from the first step on. */
  #answerDoor(door: Door, incoming: Incoming, progress: RequestProgress): Answer | Promise<Answer> {
    progress.route = door.route
    const preflight = door.preflight(incoming)
    if (preflight !== null) return preflight
    const known = (caller: Identity): Answer | Promise<Answer> => {
      this.#enter(caller, incoming, progress)
      requireConsistency(incoming)
      if (!incoming.isLarge) return ask(caller)
      return nextTurn()
        .then(() => door.prepare(incoming))
        .then(() => ask(caller))
    }
    const ask = (caller: Identity): Answer | Promise<Answer> => {
      const step = door.toStep(incoming, caller)
      return 'status' in step ? step : this.#proceed(step.step, step.context, step.runner)
    }
    const finish = (answer: Answer): Answer => door.finish(answer, incoming)
    const identity = door.identify(incoming)
    const answer = identity instanceof Promise ? identity.then(known) : known(identity)
    return answer instanceof Promise ? answer.then(finish) : finish(answer)
  }

  async #answerBroadcast(broadcasts: HttpBroadcasts, incoming: Incoming, progress: RequestProgress): Promise<Answer> {
    progress.route = broadcasts.route
    const preflight = broadcasts.preflight(incoming)
    if (preflight !== null) return preflight
    const caller = await broadcasts.identify(incoming)
    this.#enter(caller, incoming, progress)
    return await broadcasts.answer(incoming, caller)
  }

  /** A shape is answered by its own subscription; errors have the form that its clients expect. */
  async #answerShape(shapes: Shapes, incoming: Incoming, progress: RequestProgress): Promise<Answer> {
    progress.route = shapes.path
    try {
      if (incoming.method === 'OPTIONS') return optionsAnswer(shapes.methods)
      const identity = await callerOf(incoming, this.#parts)
      this.#enter(identity, incoming, progress)
      return await shapes.answer(incoming, identity)
    } catch (error) {
      const refusal = shapeRefusal(error)
      if (refusal === null) throw error
      progress.code = refusal.code
      return refusal
    }
  }

  #answerCaller(incoming: Incoming, progress: RequestProgress, identity: Identity): Answer | Promise<Answer> {
    this.#enter(identity, incoming, progress)
    return this.#answerRequest({ incoming, identity, view: this.#parts.view(identity) }, progress)
  }

  /** @throws {GatewayError} for a caller whose unread responses exceed a limit. */
  #enter(caller: Identity, { method }: Incoming, progress: RequestProgress): void {
    progress.tenantId = caller.tenantId
    progress.caller = caller
    this.#parts.assertRoom(caller, method)
  }

  #answerRequest(context: RequestContext, progress: RequestProgress): Answer | Promise<Answer> {
    const { incoming } = context
    const route = parsePath(incoming.path)
    requireConsistency(incoming)
    if (route === null || (route.kind !== 'explain' && isAdminExplaining(incoming, this.#parts)))
      throw noRoute(incoming)
    progress.route = ROUTE_PATTERN[route.kind]
    progress.at = route
    if (route.kind === 'inspect') {
      keepOnPrimary(incoming)
      return this.#inspections.answer(context)
    }
    if (route.kind === 'list' && asksForEvents(incoming)) {
      if (incoming.operation !== undefined) throw streamed()
      return this.#parts.events(route.table, incoming, context.identity)
    }
    const claim = claimOf(context, this.#parts.idempotencyKeys)
    if (route.kind === 'batch') return this.#batches.answer(context, claim)
    if (claim === null) return this.#answerAllowed(route, context, progress)
    return this.#answerOnce(claim, route, context, progress)
  }

  #answerOnce(
    claim: KeyClaim,
    route: ResourceRoute,
    context: RequestContext,
    progress: RequestProgress,
  ): Promise<Answer> {
    return answerTogether(context, claim, this.#parts.runner, async () => this.#answerAllowed(route, context, progress))
  }

  #answerAllowed(route: ResourceRoute, context: RequestContext, progress: RequestProgress): Answer | Promise<Answer> {
    const { approvals } = this.#parts
    if (approvals === null) return this.#answerRoute(route, context, progress)
    return this.#answerApproved(approvals, route, context, progress)
  }

  async #answerApproved(
    approvals: Approvals,
    route: ResourceRoute,
    context: RequestContext,
    progress: RequestProgress,
  ): Promise<Answer> {
    const answer = await this.#answerRoute(route, context, progress)
    approvals.answered(context.incoming)
    return answer
  }

  #answerRoute(route: ResourceRoute, context: RequestContext, progress: RequestProgress): Answer | Promise<Answer> {
    const { incoming, view } = context
    switch (route.kind) {
      case 'schema':
      case 'contracts':
      case 'openapi':
        return answerDocument(incoming, () => this.#parts.documents[route.kind](view))
      case 'query':
        return this.#answerText(context)
      case 'progress':
        return this.#imports.status(route.id, context)
      case 'batch':
      case 'inspect':
        throw new Error(`a ${route.kind} takes no further stage`)
      default:
        return this.#answerData(route, context, progress)
    }
  }

  /**
   * The compiled plan of a query text is cached with its line, so the line is approved when the text is
   * compiled.
   */
  async #answerText(context: RequestContext): Promise<Answer> {
    const { text, reads } = this.#parts
    const request = await text.parse(context.incoming)
    return this.#proceed(await text.toStep(request, context), context, reads)
  }

  #answerData(route: DataRoute, context: RequestContext, progress: RequestProgress): Answer | Promise<Answer> {
    const { incoming, identity, view } = context
    const { approvals, reads } = this.#parts
    const parsed = () => {
      progress.written ??= readRequest(incoming, route, this.#parts.requestLimits)
      return progress.written
    }
    // Checked before names are looked up, so an unapproved query reveals nothing about the schema.
    approvals?.approve(incoming, printLine(parsed()))
    if (this.#requestPlans === null || !isKept(route, incoming)) return this.#answerWritten(parsed(), context)
    const { written, compiled } = this.#requestPlans[route.kind].of(identity, view, addressOf(incoming), () => {
      const request = parsed()
      return { written: request, compiled: this.#compile(this.#parts.read.toStep(request, route, context), context) }
    })
    progress.written = written
    return compiled instanceof Promise
      ? compiled.then(ready => this.#run(ready, context, reads))
      : this.#run(compiled, context, reads)
  }

  /** The first step of an inspected request, whose shape must be approved like that of any other. */
  #inspectedStep(request: InspectedRequest, context: RequestContext): RequestStep | Promise<RequestStep> {
    const { approvals, read, text } = this.#parts
    if (request.kind === 'text') return text.parse(context.incoming).then(parsed => text.toStep(parsed, context))
    const route = parsePath(request.path)
    if (route === null || !isReadRoute(route)) throw noRoute(context.incoming)
    const written = readRequest(context.incoming, route, this.#parts.requestLimits)
    approvals?.approve(context.incoming, printLine(written))
    if (isWrite(route, request.method)) return handleWrite(written, route, context, this.#parts.writeLimits)
    return read.toStep(written, route, context)
  }

  #answerWritten(written: WrittenRequest, context: RequestContext): Answer | Promise<Answer> {
    const { read, call, runner, reads, writeLimits } = this.#parts
    const { route, method } = written
    if (route.kind === 'rpc') return this.#proceed(call.toStep(written, route, context), context, runner)
    const { upload, usage } = context.incoming
    // A write depends on what it reads.
    if (isWrite(route, method)) usage.worked.consistency = STRONG
    if (upload !== undefined && isWrite(route, method)) return this.#imports.answer(written, route, upload, context)
    if (isWrite(route, method)) return this.#proceed(handleWrite(written, route, context, writeLimits), context, runner)
    if (route.kind === 'explain') assertExplainable(context.incoming, this.#parts)
    return this.#step(read.toStep(written, route, context), context, reads)
  }

  /** Takes the steps of a handler to the response. Errors are translated as the handler specifies. */
  #proceed(
    step: RequestStep | Promise<RequestStep>,
    context: RequestContext,
    runner: Runner,
  ): Answer | Promise<Answer> {
    if (step instanceof Promise) return step.then(ready => this.#proceed(ready, context, runner))
    const explain = (error: unknown) => (step.explain === undefined ? error : step.explain(error))
    const failed = async (error: unknown): Promise<never> => {
      const violated = violatedBy(error, context.view)
      if (violated !== null) await this.#parts.newPartitions.learn(violated, context.view)
      throw await explain(error)
    }
    try {
      const answer = this.#step(step, context, runner)
      return answer instanceof Promise ? answer.catch(failed) : answer
    } catch (error) {
      const explained = explain(error)
      if (!(explained instanceof Promise)) throw explained
      return explained.then(found => Promise.reject(found))
    }
  }

  #step(step: RequestStep, context: RequestContext, runner: Runner): Answer | Promise<Answer> {
    const compiled = this.#compile(step, context)
    return compiled instanceof Promise
      ? compiled.then(ready => this.#run(ready, context, runner))
      : this.#run(compiled, context, runner)
  }

  #compile(step: RequestStep, context: RequestContext): Compiled | Promise<Compiled> {
    const { parts } = step
    if (!isList(parts)) return this.#compileInTurns(parts, context).then(all => this.#compiled(step, all, context))
    if (!parts.every(isReady)) {
      return Promise.all(parts.map(finished)).then(ready => this.#compile({ ...step, parts: ready }, context))
    }
    const { compiler } = this.#parts
    return this.#compiled(
      step,
      parts.map(part => compiler.statement(part, context, 'kept')),
      context,
    )
  }

  /** Compiles the parts in several turns: a body with many sets of columns must not block other requests. */
  async #compileInTurns(parts: Iterable<StatementPart>, context: RequestContext): Promise<readonly BoundStatement[]> {
    const { compiler } = this.#parts
    const statements: BoundStatement[] = []
    await nextTurn()
    for (const part of parts) {
      if (!isReady(part)) await finished(part)
      statements.push(compiler.statement(part, context, statements.length < KEPT_AT_ONCE ? 'kept' : 'once'))
      if (statements.length % COMPILED_AT_ONCE === 0) await nextTurn()
    }
    return statements
  }

  #compiled(
    step: RequestStep,
    statements: readonly BoundStatement[],
    context: RequestContext,
  ): Compiled | Promise<Compiled> {
    if (step.runs !== 'nothing') return { step, statements }
    const next = step.respond(statements)
    return isStep(next) ? this.#compile(next, context) : next
  }

  /**
   * Runs a compiled step with permit and cache, then lets the handler respond, which can return another step.
   */
  #run(compiled: Compiled, context: RequestContext, runner: Runner): Answer | Promise<Answer> {
    if ('status' in compiled) return compiled
    const { step, statements } = compiled
    const { incoming, identity } = context
    const { usage } = incoming
    const next = (what: StepResult) => (isStep(what) ? this.#step(what, context, runner) : what)
    switch (step.runs) {
      case 'read': {
        const reading = runner.read(identity, statements as readonly BoundStatement<ReadableStatement>[], usage.worked)
        return answerRead(incoming, reading, results => next(step.respond(results, reading)), failing(step, next))
      }
      case 'stream': {
        if (incoming.operation !== undefined) throw streamed()
        if ('within' in usage.worked) throw unstorable()
        const rows = runner.stream(identity, only<StreamStatement>(statements), usage.worked)
        return respondStream(rows, incoming, step.format)
      }
      case 'write': {
        const work = step.isUndoable === true ? undoable(usage.worked) : usage.worked
        const running = runner.write(identity, statements as readonly BoundStatement<WriteStatement>[], work)
        return answerResult(incoming, running, written => next(step.respond(written)), failing(step, next))
      }
      case 'parse': {
        const running = runner.parse(identity, only<CallStatement>(statements).statement, usage.worked)
        return answerResult(incoming, running, () => next(step.respond()), failing(step, next))
      }
      case 'call': {
        const running = runner.call(identity, only<CallStatement>(statements), step.how, usage.worked)
        return answerResult(incoming, running, called => next(step.respond(called)), failing(step, next))
      }
      case 'together': {
        for (const shape of step.equivalents) this.#parts.approvals?.approve(incoming, shape)
        return this.#together(() => step.begin(), context)
      }
      default:
        return unreachable(step)
    }
  }

  /** Takes steps in one transaction: that of the request, if it has one. The cost guard applies to reads. */
  async #together(begin: () => StepResult, context: RequestContext): Promise<Answer> {
    const { runner, reads } = this.#parts
    const { usage } = context.incoming
    const steps: Runner = { ...runner, read: reads.read }
    const { worked }: { worked: Work } = usage
    if (worked.within === undefined) {
      return answerTogether(context, null, runner, () => this.#together(begin, context))
    }
    usage.worked = unfinished(worked, worked.within)
    // A client that disconnects ends the transaction, and with it all steps.
    const within = { ...context, incoming: { ...context.incoming, onAbort() {} } }
    try {
      const first = begin()
      return await (isStep(first) ? this.#step(first, within, steps) : first)
    } finally {
      usage.worked = worked
    }
  }
}

/** Handles an error as the step specifies; undefined if the step lets errors pass. */
function failing(
  { failed }: Pick<Extract<ExecutedStep, { readonly runs: 'read' }>, 'failed'>,
  next: (what: StepResult) => Answer | Promise<Answer>,
): ((error: unknown) => Answer | Promise<Answer>) | undefined {
  return failed === undefined ? undefined : error => next(failed(error))
}

function streamed(): GatewayError {
  return new GatewayError(
    'PARSE_ERROR',
    'an operation of a batch cannot be streamed; leave out stream, or write get instead of export',
  )
}

function unstorable(): GatewayError {
  return new GatewayError(
    'PARSE_ERROR',
    'a response with an Idempotency-Key is stored, so it cannot be streamed; leave out the key, or write get ' +
      'instead of export',
  )
}

/** Reports whether all values are finished. Values of large bodies take several turns of the event loop. */
function isReady(part: StatementPart): boolean {
  return 'statement' in part || part.values.isReady
}

async function finished(part: StatementPart): Promise<StatementPart> {
  if ('tree' in part) await part.values.finish()
  return part
}

function isList(parts: RequestStep['parts']): parts is readonly StatementPart[] {
  return Array.isArray(parts)
}

function only<S extends CompiledStatement>([statement]: readonly BoundStatement[]): BoundStatement<S> {
  if (statement === undefined) throw new Error('the step must have a statement')
  return statement as BoundStatement<S>
}

function isReadRoute(route: ResourceRoute): route is ReadRoute {
  return isData(route) && route.kind !== 'rpc'
}

function isWrite(route: DataRoute, method: string): route is WriteRoute {
  return (route.kind === 'one' || route.kind === 'list') && method in NEEDS
}

/** Reports whether plans of the whole request are cached. */
function isKept(route: DataRoute, { method }: Incoming): route is DataRoute & { readonly kind: 'one' | 'list' } {
  return (route.kind === 'one' || route.kind === 'list') && READING.includes(method)
}

function charactersOf({ compiled }: RequestPlan): number {
  return !('statements' in compiled)
    ? 0
    : compiled.statements.reduce((sum, { statement }) => sum + statement.text.length, 0)
}

/** The text of a request, as sent. It usually is the unchanged text, which needs no concatenation. */
function addressOf({ path, query, headers: { prefer, accept } }: Incoming): string {
  const address = query === '' ? path : `${path}?${query}`
  // After the address, where no preference can look the same.
  const form = prefersCsv(accept) ? `${address}\ncsv` : address
  return prefer === undefined ? form : `${prefer}\n${form}`
}
