/**
 * `POST /api/_inspect` (docs/reference/inspect.md): takes a read through the stages of the pipeline and
 * reports what each of them did. The inspected request passes the same checks as if it had been sent, and all
 * of its statements run under the session settings of the caller.
 */
import { limitsRows } from '../access/rights.ts'
import type { BoundStatement, CompiledStatement } from '../compile/statement.ts'
import { GatewayError } from '../errors.ts'
import type { Answer, Incoming } from '../exchange.ts'
import { settingsOf } from '../identity/settings.ts'
import { awaitResult } from '../rest/cancel-on-disconnect.ts'
import type { Compiler } from '../rest/compile.ts'
import { describeAccess, describeText, describeTree, knownTable, tablesOf } from '../rest/inspect/describe.ts'
import { type InspectedRequest, readInspectBody } from '../rest/inspect/request.ts'
import { methodNotAllowed, methodsOf } from '../rest/method.ts'
import { parseId, parsePath } from '../rest/path.ts'
import { requireTable } from '../rest/resource.ts'
import {
  type ExecutedStep,
  isStep,
  type RequestContext,
  type RequestStep,
  type StatementPart,
  type StepResult,
} from '../rest/steps.ts'
import { seesFigures } from '../run/explain-figures.ts'
import {
  type GuardVerdict,
  type InspectedPlan,
  type InspectedStatement,
  type InspectingCaller,
  InspectionReads,
  type InspectionReadsParts,
  withoutNames,
} from '../run/inspect/inspection-reads.ts'
import type { RowSecurity } from '../run/inspect/row-policies.ts'
import type { RowVisibility } from '../run/inspect/row-visibility.ts'
import type { Runner } from '../run/run.ts'
import { noRoute } from './other-routes.ts'

/** The dependencies of inspections, in addition to those of other requests. */
export interface InspectionParts {
  /** True if the route exists: plans are available to callers. */
  readonly isEnabled: boolean
  /** In development mode, every caller can inspect requests. */
  readonly isOpen: boolean
  readonly limits: InspectionReadsParts['limits']
  /** True if results are cached. */
  readonly caches: boolean
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
}

/** The stages of the pipeline that an inspection uses. */
export interface InspectionStages {
  readonly runner: Runner
  readonly reads: Runner
  readonly compiler: Pick<Compiler, 'tree'>
  /** The first step of a request, after its allow-list check. */
  readonly toStep: (request: InspectedRequest, context: RequestContext) => RequestStep | Promise<RequestStep>
  readonly compile: (
    step: RequestStep,
    context: RequestContext,
  ) => InspectedStep | Answer | Promise<InspectedStep | Answer>
}

/** A compiled step. */
export interface InspectedStep {
  readonly step: ExecutedStep
  readonly statements: readonly BoundStatement[]
}

/** Limit on the steps of one request; reads have at most two. */
const STEPS_MAX = 4

/** A time of the request, in milliseconds. */
interface Phase {
  readonly name: 'parse' | 'check' | 'run' | 'database'
  readonly start: number
  readonly ms: number
}

interface InspectedRun {
  readonly statement: InspectedStatement
  readonly verdict: GuardVerdict | null
  readonly plan: InspectedPlan | null
  /** True if the plan was executed. */
  readonly isMeasured: boolean
}

/** Everything that is known when an inspection ends, wherever the request failed. */
interface Findings {
  error: GatewayError | null
  tree: string | null
  readonly runs: InspectedRun[]
  readonly phases: Phase[]
  cache: 'HIT' | 'MISS' | null
  rows: number | null
  /** The first statement that ran. */
  first: { readonly statement: InspectedStatement | undefined; readonly rows: number } | null
}

/** Answers inspections. */
export class InspectionHandler {
  readonly #parts: InspectionParts
  readonly #stages: InspectionStages
  readonly #reads: InspectionReads

  constructor(parts: InspectionParts, stages: InspectionStages) {
    this.#parts = parts
    this.#stages = stages
    this.#reads = new InspectionReads({ runner: stages.runner, limits: parts.limits })
  }

  /** @throws {GatewayError} if the caller cannot inspect, or for an invalid body. */
  async answer(context: RequestContext): Promise<Answer> {
    const { incoming, identity } = context
    if (!this.#parts.isEnabled) throw noRoute(incoming)
    if (incoming.method !== 'POST') throw methodNotAllowed(incoming, methodsOf('inspect'))
    if (!this.#parts.isOpen && !seesFigures(identity)) {
      throw new GatewayError(
        'FORBIDDEN',
        'an inspection shows figures about all rows, so it needs a token with the scope svc:explain',
      )
    }
    const request = readInspectBody(incoming)
    const findings: Findings = { error: null, tree: null, runs: [], phases: [], cache: null, rows: null, first: null }
    const inspected = { ...context, incoming: incomingOf(request, incoming) }
    await this.#follow(request, inspected, findings)
    const { tables, security } = await this.#tables(request, inspected, findings)
    const row = await this.#row(request, inspected, findings, security)
    return this.#answerOf(request, inspected, findings, tables, security, row)
  }

  /** Takes the request through its stages. */
  async #follow(request: InspectedRequest, context: RequestContext, findings: Findings): Promise<void> {
    const started = this.#parts.now()
    try {
      let next: StepResult = await this.#timed('parse', started, findings, () => this.#stages.toStep(request, context))
      if (request.kind === 'query') findings.tree = describeText(request.text)
      for (let count = 0; isStep(next) && count < STEPS_MAX; count++) {
        const step: RequestStep = next
        const compiled = await this.#timed('check', started, findings, () => this.#stages.compile(step, context))
        if ('status' in compiled) break
        const { step: executed, statements } = compiled
        const inspected = inspectedOf(statements)
        findings.tree ??= this.#tree(executed, context)
        const estimates = await this.#reads.estimates(inspected, this.#caller(context))
        inspected.forEach((statement, index) => {
          const { plan = null, verdict = null } = estimates[index] ?? {}
          findings.runs.push({ statement, plan, verdict, isMeasured: false })
        })
        if (executed.runs !== 'read') break
        next = await this.#run(executed, inspected, started, context, findings)
      }
      if (!isStep(next)) findings.rows = next.rows ?? null
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      findings.error = error
    }
  }

  /** Runs a read as the request would, with permit, cache and cost guard. */
  async #run(
    step: ExecutedStep & { readonly runs: 'read' },
    statements: readonly InspectedStatement[],
    started: number,
    context: RequestContext,
    findings: Findings,
  ): Promise<StepResult> {
    const { incoming, identity } = context
    const { worked } = incoming.usage
    const before = worked.ms
    const from = this.#parts.now()
    const reading = this.#stages.reads.read(identity, statements as Parameters<Runner['read']>[1], worked)
    findings.cache = this.#parts.caches ? (reading.kept === undefined ? 'MISS' : 'HIT') : null
    let results: Awaited<typeof reading.result>
    try {
      results = await awaitResult(incoming, reading)
    } catch (error) {
      if (step.failed === undefined) throw error
      return step.failed(error)
    } finally {
      const start = from - started
      findings.phases.push({ name: 'run', start, ms: this.#parts.now() - from })
      if (worked.ms > before) findings.phases.push({ name: 'database', start, ms: worked.ms - before })
    }
    findings.first ??= { statement: statements[0], rows: results[0]?.length ?? 0 }
    await this.#measure(statements.length, context, findings)
    return step.respond(results, reading)
  }

  /** Executes the plans of the last statements, if the caller may know what they count. */
  async #measure(count: number, context: RequestContext, { runs }: Findings): Promise<void> {
    const last = runs.slice(-count)
    if (limitsRows(context.view) || !last.every(({ verdict }) => verdict?.passes === true)) return
    const plans = await this.#reads.plans(
      last.map(({ statement }) => statement),
      this.#caller(context),
    )
    last.forEach((run, index) => {
      runs[runs.length - count + index] = {
        ...run,
        plan: plans[index] ?? run.plan,
        isMeasured: plans[index] !== undefined,
      }
    })
  }

  /**
   * The tree of the last statement. The statement for a parent comes before that for its children, and the
   * one for a total is omitted.
   */
  #tree({ parts }: ExecutedStep, { view }: RequestContext): string | null {
    if (!Array.isArray(parts)) return null
    const trees = (parts as readonly StatementPart[]).flatMap(part =>
      'tree' in part && part.tree.kind !== 'total' ? (this.#stages.compiler.tree(part, view) ?? []) : [],
    )
    const last = trees.at(-1)
    return last === undefined ? null : describeTree(last)
  }

  async #tables(request: InspectedRequest, context: RequestContext, { runs }: Findings) {
    const { view } = context
    const statements = runs.map(({ statement }) => statement.statement as CompiledStatement)
    const read = tablesOf(statements, view)
    const route = request.kind === 'read' ? parsePath(request.path) : null
    const named = read.length > 0 || route === null || !('table' in route) ? read : knownTable(route.table, view)
    return { tables: named, security: await this.#reads.policies(named, this.#caller(context)) }
  }

  /** For the path of a row: why the caller sees it or not. */
  async #row(
    request: InspectedRequest,
    context: RequestContext,
    { first }: Findings,
    security: ReadonlyMap<number, RowSecurity>,
  ): Promise<RowVisibility | null> {
    const route = request.kind === 'read' ? parsePath(request.path) : null
    if (route?.kind !== 'one' || first?.statement === undefined) return null
    const { statement, values } = first.statement
    if (statement.kind === 'stream') return null
    const table = requireTable(context.view, route.table)
    const key = parseId(route.id, table.primaryKey)
    const row = { table, key, statement: { statement, values }, isFound: first.rows > 0 }
    return this.#reads.row(row, security.get(table.oid), !limitsRows(context.view), this.#caller(context))
  }

  async #timed<T>(name: Phase['name'], started: number, findings: Findings, work: () => T | Promise<T>): Promise<T> {
    const from = this.#parts.now()
    try {
      return await work()
    } finally {
      findings.phases.push({ name, start: from - started, ms: this.#parts.now() - from })
    }
  }

  #caller({ incoming, identity, view }: RequestContext): InspectingCaller {
    return { identity, view, worked: incoming.usage.worked, wait: running => awaitResult(incoming, running) }
  }

  #answerOf(
    request: InspectedRequest,
    { identity, view }: RequestContext,
    { error, tree, runs, phases, cache, rows }: Findings,
    tables: ReturnType<typeof tablesOf>,
    security: ReadonlyMap<number, RowSecurity>,
    row: RowVisibility | null,
  ): Answer {
    const isWithheld = [...security.values()].some(({ policies }) => policies.some(({ shown }) => !shown))
    const body = {
      request: request.kind === 'query' ? { query: request.text } : { method: 'GET', path: pathOf(request) },
      failure: error === null ? null : describeError(error),
      rows,
      caller: {
        source: identity.source,
        claims: JSON.parse(identity.claims) as unknown,
        scopes: identity.scopes,
        settings: Object.fromEntries(settingsOf(identity)),
      },
      tables: tables.map(table => {
        const access = describeAccess(table, view)
        return {
          table: table.resource,
          access: {
            refused: access.refused,
            columns: access.columns,
            rows: access.rows,
            rows_withheld: access.rowsWithheld,
            soft_delete: access.softDelete,
          },
          row_security: describeSecurity(security.get(table.oid)),
        }
      }),
      tree,
      statements: runs.map(({ statement: { statement, values }, verdict, plan, isMeasured }) => ({
        sql: statement.text,
        parameters: values.map(value => value?.toString() ?? null),
        cost_guard: verdict === null ? null : describeVerdict(verdict),
        measured: isMeasured,
        plan: isWithheld ? withoutNames(plan) : plan,
      })),
      cache,
      timings: phases.map(({ name, start, ms }) => ({ name, start_ms: toHundredths(start), ms: toHundredths(ms) })),
      row: row === null ? null : { reason: row.reason, policies: row.policies },
    }
    const headers = { 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-store' }
    return { status: 200, headers, body: Buffer.from(JSON.stringify(body)) }
  }
}

/** The inspected request in place of the inspection; only `Prefer` of its headers applies to a read. */
function incomingOf(request: InspectedRequest, incoming: Incoming): Incoming {
  if (request.kind === 'query') return incoming
  const { prefer } = incoming.headers
  const headers = prefer === undefined ? {} : { prefer }
  return {
    ...incoming,
    method: 'GET',
    path: request.path,
    query: request.query,
    headers,
    body: NO_BODY,
    isLarge: false,
  }
}

const NO_BODY = Buffer.alloc(0)

/** @throws {GatewayError} for a text that writes or that explains. */
function inspectedOf(statements: readonly BoundStatement[]): readonly InspectedStatement[] {
  return statements.map(({ statement, values }) => {
    if (statement.kind === 'read' || statement.kind === 'paged' || statement.kind === 'stream')
      return { statement, values }
    throw new GatewayError('PARSE_ERROR', 'an inspection runs the query, so it must read: get, count or export')
  })
}

function pathOf({ path, query }: InspectedRequest & { readonly kind: 'read' }): string {
  return query === '' ? path : `${path}?${query}`
}

function describeError({ code, message, status, hint, details }: GatewayError): object {
  return {
    ...{ code, message, status },
    ...(hint === undefined ? {} : { hint }),
    ...(details === undefined ? {} : { details }),
  }
}

function describeSecurity(security: RowSecurity | undefined): object | null {
  if (security === undefined) return null
  const { active, enabled, forced, complete, policies } = security
  return {
    ...{ active, enabled, forced, complete },
    policies: policies.map(({ name, permissive, command, condition, shown }) => ({
      ...{ name, permissive, command },
      condition: shown ? condition : null,
    })),
  }
}

function describeVerdict({ cost, rows, costMax, rowsMax, passes }: GuardVerdict): object {
  return { passes, estimated_cost: cost, cost_limit: costMax, estimated_rows: rows, row_limit: rowsMax }
}

function toHundredths(ms: number): number {
  return Math.round(ms * 100) / 100
}
