/**
 * The stages of a request, in order (docs/internals/a-request.md). Limits on the bytes of a request, CORS and
 * the rate limit are checked earlier, in `server.ts` and `admission.ts`. Every request for data goes through
 * the same stages:
 *
 * | stage   | task                                                           | where                        |
 * |---------|----------------------------------------------------------------|------------------------------|
 * | parse   | path, query string and headers, or a query text                | rest/path, request; query    |
 * | approve | compare the request shape with the allow-list, if there is one | rest/allow-list, access/list |
 * | ask     | return trees, values and the response (`rest/steps.ts`)        | rest/read, write, rpc; query |
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
  Readable,
  Statement,
  StreamStatement,
  WriteStatement,
} from '../compile/statement.ts'
import type { ErrorCode } from '../errors.ts'
import type { Answer, Incoming } from '../exchange.ts'
import type { Identity } from '../identity/identity.ts'
import type { Timed } from '../ops/server-timing.ts'
import type { QueryHandler } from '../query/query.ts'
import { printLine } from '../rest/allow-list/line.ts'
import { awaitRead, awaitResult } from '../rest/cancel-on-disconnect.ts'
import type { Compiler } from '../rest/compile.ts'
import { NEEDS, READING } from '../rest/method.ts'
import type { NewPartitions } from '../rest/new-partitions.ts'
import { nextTurn } from '../rest/next-turn.ts'
import { parsePath, ROUTE_PATTERN, type Route } from '../rest/path.ts'
import type { ReadHandler } from '../rest/read/read.ts'
import { createRequestCache } from '../rest/read/request-cache.ts'
import { type DataRoute, readRequest, type WrittenRequest } from '../rest/request.ts'
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
import type { Runner } from '../run/run.ts'
import { unreachable } from '../unreachable.ts'
import { assertExplainable, type CallerParts, callerOf, isAdminExplaining, isOfApi } from './callers.ts'
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
  /** @throws {GatewayError} for a caller whose unread responses exceed a limit. */
  readonly assertRoom: (caller: Identity, method: string) => void
}

/** The progress of a request: what is known about it if it fails. */
export interface RequestProgress extends Timed {
  route: string
  /** The route below `/api/`; null until it is known. */
  at: Route | null
  /** The data request; null until it is parsed. */
  written: WrittenRequest | null
  tenantId: string
  /** The caller; null until it is known. */
  caller: Identity | null
  /** The code of the error that ended the request; null if there was none. */
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
  /** The plans of whole requests for one row and for lists; null if they are not cached. */
  readonly #requestPlans: { readonly one: Plans<RequestPlan>; readonly list: Plans<RequestPlan> } | null

  constructor(parts: PipelineParts) {
    const { plans, cachesRequests } = parts
    this.#parts = parts
    this.#requestPlans = cachesRequests
      ? {
          one: createRequestCache(plans, 'row request', charactersOf),
          list: createRequestCache(plans, 'list request', charactersOf),
        }
      : null
  }

  answer(incoming: Incoming, progress: RequestProgress): Answer | Promise<Answer> {
    if (!isOfApi(incoming)) return answerPage(incoming, progress, this.#parts)
    const identity = callerOf(incoming, this.#parts)
    const known = (caller: Identity) => this.#answerCaller(incoming, progress, caller)
    return identity instanceof Promise ? identity.then(known) : known(identity)
  }

  #answerCaller(incoming: Incoming, progress: RequestProgress, identity: Identity): Answer | Promise<Answer> {
    progress.tenantId = identity.tenantId
    progress.caller = identity
    this.#parts.assertRoom(identity, incoming.method)
    const route = parsePath(incoming.path)
    if (route === null || (route.kind !== 'explain' && isAdminExplaining(incoming, this.#parts)))
      throw noRoute(incoming)
    progress.route = ROUTE_PATTERN[route.kind]
    progress.at = route
    const { approvals } = this.#parts
    const asker = { incoming, identity, view: this.#parts.view(identity) }
    if (approvals === null) return this.#answerRoute(route, asker, progress)
    return this.#answerApproved(approvals, route, asker, progress)
  }

  async #answerApproved(
    approvals: Approvals,
    route: Route,
    asker: RequestContext,
    progress: RequestProgress,
  ): Promise<Answer> {
    const answer = await this.#answerRoute(route, asker, progress)
    approvals.answered(asker.incoming)
    return answer
  }

  #answerRoute(route: Route, asker: RequestContext, progress: RequestProgress): Answer | Promise<Answer> {
    const { incoming, view } = asker
    switch (route.kind) {
      case 'schema':
      case 'contracts':
      case 'openapi':
        return answerDocument(incoming, () => this.#parts.documents[route.kind](view))
      case 'query':
        return this.#answerText(asker)
      default:
        return this.#answerData(route, asker, progress)
    }
  }

  /**
   * The compiled plan of a query text is cached with its line, so the line is approved when the text is
   * compiled.
   */
  async #answerText(asker: RequestContext): Promise<Answer> {
    const { text, reads } = this.#parts
    const request = await text.parse(asker.incoming)
    return this.#proceed(await text.ask(request, asker), asker, reads)
  }

  #answerData(route: DataRoute, asker: RequestContext, progress: RequestProgress): Answer | Promise<Answer> {
    const { incoming, identity, view } = asker
    const { approvals, reads } = this.#parts
    const parsed = () => {
      progress.written ??= readRequest(incoming, route)
      return progress.written
    }
    // Checked before names are looked up, so an unapproved query reveals nothing about the schema.
    approvals?.approve(incoming, printLine(parsed()))
    if (this.#requestPlans === null || !isKept(route, incoming)) return this.#answerWritten(parsed(), asker)
    const { written, compiled } = this.#requestPlans[route.kind].of(identity, view, addressOf(incoming), () => {
      const request = parsed()
      return { written: request, compiled: this.#compile(this.#parts.read.ask(request, route, asker), asker) }
    })
    progress.written = written
    return compiled instanceof Promise
      ? compiled.then(ready => this.#run(ready, asker, reads))
      : this.#run(compiled, asker, reads)
  }

  #answerWritten(written: WrittenRequest, asker: RequestContext): Answer | Promise<Answer> {
    const { read, call, runner, reads, writeLimits } = this.#parts
    const { route, method } = written
    if (route.kind === 'rpc') return this.#proceed(call.ask(written, route, asker), asker, runner)
    if (isWrite(route, method)) return this.#proceed(handleWrite(written, route, asker, writeLimits), asker, runner)
    if (route.kind === 'explain') assertExplainable(asker.incoming, this.#parts)
    return this.#step(read.ask(written, route, asker), asker, reads)
  }

  /** Takes the steps of a handler to the response. Errors are translated as the handler specifies. */
  #proceed(asked: RequestStep | Promise<RequestStep>, asker: RequestContext, runner: Runner): Answer | Promise<Answer> {
    if (asked instanceof Promise) return asked.then(ready => this.#proceed(ready, asker, runner))
    const fail = (error: unknown): never => {
      throw asked.explain === undefined ? error : asked.explain(error)
    }
    const failed = async (error: unknown): Promise<never> => {
      const violated = violatedBy(error, asker.view)
      if (violated !== null) await this.#parts.newPartitions.learn(violated, asker.view)
      return fail(error)
    }
    try {
      const answer = this.#step(asked, asker, runner)
      return answer instanceof Promise ? answer.catch(failed) : answer
    } catch (error) {
      return fail(error)
    }
  }

  #step(asked: RequestStep, asker: RequestContext, runner: Runner): Answer | Promise<Answer> {
    const compiled = this.#compile(asked, asker)
    return compiled instanceof Promise
      ? compiled.then(ready => this.#run(ready, asker, runner))
      : this.#run(compiled, asker, runner)
  }

  #compile(asked: RequestStep, asker: RequestContext): Compiled | Promise<Compiled> {
    const { parts } = asked
    if (!isList(parts)) return this.#compileInTurns(parts, asker).then(all => this.#compiled(asked, all, asker))
    if (!parts.every(isReady)) {
      return Promise.all(parts.map(finished)).then(ready => this.#compile({ ...asked, parts: ready }, asker))
    }
    const { compiler } = this.#parts
    return this.#compiled(
      asked,
      parts.map(part => compiler.statement(part, asker, 'kept')),
      asker,
    )
  }

  /** Compiles the parts in several turns: a body with many sets of columns must not block other requests. */
  async #compileInTurns(parts: Iterable<StatementPart>, asker: RequestContext): Promise<readonly BoundStatement[]> {
    const { compiler } = this.#parts
    const statements: BoundStatement[] = []
    for (const part of parts) {
      if (!isReady(part)) await finished(part)
      statements.push(compiler.statement(part, asker, statements.length < KEPT_AT_ONCE ? 'kept' : 'once'))
      if (statements.length % COMPILED_AT_ONCE === 0) await nextTurn()
    }
    return statements
  }

  #compiled(
    asked: RequestStep,
    statements: readonly BoundStatement[],
    asker: RequestContext,
  ): Compiled | Promise<Compiled> {
    if (asked.runs !== 'nothing') return { step: asked, statements }
    const next = asked.respond(statements)
    return isStep(next) ? this.#compile(next, asker) : next
  }

  /**
   * Runs a compiled step with permit and cache, then lets the handler respond, which can return another step.
   */
  #run(compiled: Compiled, asker: RequestContext, runner: Runner): Answer | Promise<Answer> {
    if ('status' in compiled) return compiled
    const { step, statements } = compiled
    const { incoming, identity } = asker
    const { usage } = incoming
    const next = (what: StepResult) => (isStep(what) ? this.#step(what, asker, runner) : what)
    switch (step.runs) {
      case 'read': {
        const reading = runner.read(identity, statements as readonly BoundStatement<Readable>[], usage.worked)
        const failed = (error: unknown) => {
          if (step.failed === undefined) throw error
          return next(step.failed(error))
        }
        return awaitRead(incoming, reading, results => next(step.respond(results, reading)), failed)
      }
      case 'stream': {
        const rows = runner.stream(identity, only<StreamStatement>(statements), usage.worked)
        return respondStream(rows, incoming)
      }
      case 'write': {
        const running = runner.write(identity, statements as readonly BoundStatement<WriteStatement>[], usage.worked)
        const failed = (error: unknown) => {
          if (step.failed === undefined) throw error
          return next(step.failed(error))
        }
        return awaitResult(incoming, running).then(written => next(step.respond(written)), failed)
      }
      case 'parse': {
        const running = runner.parse(identity, only<CallStatement>(statements).statement, usage.worked)
        return awaitResult(incoming, running).then(
          () => next(step.respond()),
          error => next(step.failed(error)),
        )
      }
      case 'call': {
        const running = runner.call(identity, only<CallStatement>(statements), step.how, usage.worked)
        return awaitResult(incoming, running).then(
          rows => next(step.respond(rows)),
          error => next(step.failed(error)),
        )
      }
      default:
        return unreachable(step)
    }
  }
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

function only<S extends Statement>([statement]: readonly BoundStatement[]): BoundStatement<S> {
  if (statement === undefined) throw new Error('the step must have a statement')
  return statement as BoundStatement<S>
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
function addressOf({ path, query, headers: { prefer } }: Incoming): string {
  const address = query === '' ? path : `${path}?${query}`
  return prefer === undefined ? address : `${prefer}\n${address}`
}
