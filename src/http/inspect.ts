/**
 * `POST /api/_inspect` (docs/reference/inspect.md): takes a request through the stages of the pipeline
 * and reports what each of them did. The inspected request passes the same checks as if it had been sent, and
 * all of its statements run under the session settings of the caller. A write is only planned, or runs in a
 * transaction that is rolled back.
 */
import type { Approvals } from '../access/list/approvals.ts'
import { limitsRows } from '../access/rights.ts'
import type { BoundStatement, CompiledStatement, WriteStatement } from '../compile/statement.ts'
import { GatewayError } from '../errors.ts'
import type { Answer, Incoming } from '../exchange.ts'
import { settingsOf } from '../identity/settings.ts'
import { awaitResult } from '../rest/cancel-on-disconnect.ts'
import type { Compiler } from '../rest/compile.ts'
import {
  describeAccess,
  describeText,
  describeTree,
  describeWrite,
  type InspectedWrite,
  knownTable,
  tablesOf,
  writesOf,
} from '../rest/inspect/describe.ts'
import { type InspectedRequest, readInspectBody } from '../rest/inspect/request.ts'
import { methodNotAllowed, methodsOf, READING } from '../rest/method.ts'
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
  type InspectedRead,
  type InspectedStatement,
  type InspectingCaller,
  InspectionReads,
  type InspectionReadsParts,
  withoutNames,
} from '../run/inspect/inspection-reads.ts'
import type { RowSecurity, WrittenTable } from '../run/inspect/row-policies.ts'
import type { RowVisibility } from '../run/inspect/row-visibility.ts'
import { RestartError, undoable, unfinished, type Work } from '../run/joint-transaction.ts'
import type { Runner } from '../run/run.ts'
import { rehearse } from './once.ts'
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
  /** Null without an allow-list. */
  readonly approvals: Approvals | null
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

/** Limit on the steps of one request: a read has at most two, a write of related rows one for each set. */
const STEPS_MAX = 100

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
  /** Whether its changes were planned or rolled back; null for a request that reached no write. */
  changes: 'planned' | 'rolled back' | null
  /** The first statement that ran. */
  first: { readonly statement: InspectedStatement | undefined; readonly rows: number } | null
}

const NOTHING_FOUND = { error: null, tree: null, cache: null, rows: null, changes: null, first: null } as const

type InspectedTable = ReturnType<typeof tablesOf>[number]
type WriteOperation = InspectedWrite['operation']

/** What is known about the tables of a request. */
interface TableFindings {
  /** The tables that it reads or writes, with the operations of its writes. */
  readonly operations: ReadonlyMap<InspectedTable, readonly WriteOperation[]>
  readonly security: ReadonlyMap<number, RowSecurity>
  readonly triggers: ReadonlyMap<number, WrittenTable>
}

/** The operation of a write by its method. */
const OPERATION_OF: Readonly<Record<string, WriteOperation>> = { POST: 'insert', PATCH: 'update', DELETE: 'delete' }

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
    const findings: Findings = { ...NOTHING_FOUND, runs: [], phases: [] }
    const inspected = { ...context, incoming: incomingOf(request, incoming) }
    await this.#follow(request, inspected, findings)
    const about = await this.#tables(request, inspected, findings)
    const row = await this.#row(request, inspected, findings, about.security)
    return this.#answerOf(request, inspected, findings, about, row)
  }

  /** Takes the request through its stages. An error of the request is a finding. */
  async #follow(request: InspectedRequest, context: RequestContext, findings: Findings): Promise<void> {
    const started = this.#parts.now()
    const again = () => {
      Object.assign(findings, NOTHING_FOUND)
      findings.runs.length = 0
      findings.phases.length = 0
      return this.#steps(request, context, started, findings)
    }
    try {
      await (request.runs ? rehearse(context, this.#stages.runner, again) : again())
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      findings.error = error
    }
  }

  async #steps(request: InspectedRequest, context: RequestContext, started: number, findings: Findings): Promise<void> {
    const toStep = () => this.#stages.toStep(request, context)
    const first: RequestStep = await this.#timed('parse', started, findings, toStep)
    if (request.kind === 'text') findings.tree = describeText(request.text)
    let next: StepResult | null = first
    try {
      for (let count = 0; next !== null && isStep(next); count++) {
        if (count === STEPS_MAX) throw tooManySteps()
        next = await this.#next(next, request, context, started, findings)
      }
    } catch (error) {
      throw first.explain === undefined ? error : await first.explain(error)
    }
    if (next !== null) findings.rows = next.rows ?? null
  }

  /** Takes one step. Returns null if the inspection ends here. */
  async #next(
    step: RequestStep,
    { runs }: InspectedRequest,
    context: RequestContext,
    started: number,
    findings: Findings,
  ): Promise<StepResult | null> {
    if (step.runs === 'together') {
      const { usage } = context.incoming
      for (const shape of step.equivalents) this.#stages.approvals?.approve(context.incoming, shape)
      const { worked }: { worked: Work } = usage
      if (worked.within !== undefined) usage.worked = unfinished(worked, worked.within)
      return step.begin()
    }
    const compiled = await this.#timed('check', started, findings, () => this.#stages.compile(step, context))
    if ('status' in compiled) return null
    const { step: executed, statements } = compiled
    const inspected = inspectedOf(statements)
    findings.tree ??= this.#tree(executed, context)
    const instead = await this.#plan(executed, inspected, context, findings)
    if (instead !== null) return instead
    if (executed.runs === 'read') {
      return this.#run(executed, inspected as readonly InspectedRead[], started, context, findings)
    }
    if (executed.runs !== 'write') return null
    if (runs) return this.#write(executed, inspected, started, context, findings)
    findings.changes = 'planned'
    return null
  }

  /** Adds the plans of a step to the findings. Returns a step that the request takes instead, or null. */
  async #plan(
    step: ExecutedStep,
    statements: readonly InspectedStatement[],
    context: RequestContext,
    { runs }: Findings,
  ): Promise<StepResult | null> {
    const isWrite = step.runs === 'write'
    try {
      const estimates = await this.#reads.estimates(statements, this.#caller(context))
      statements.forEach((statement, index) => {
        const { plan = null, verdict = null } = estimates[index] ?? {}
        runs.push({ statement, plan, verdict: isWrite ? null : verdict, isMeasured: false })
      })
      return null
    } catch (error) {
      if (!isWrite || step.failed === undefined || error instanceof RestartError) throw error
      return step.failed(error)
    }
  }

  /** Runs a write within the transaction that is rolled back. */
  async #write(
    step: ExecutedStep & { readonly runs: 'write' },
    statements: readonly InspectedStatement[],
    started: number,
    context: RequestContext,
    findings: Findings,
  ): Promise<StepResult> {
    const { incoming, identity } = context
    const { usage } = incoming
    await this.#refuseOutside(statements, context)
    findings.changes = 'rolled back'
    const work = step.isUndoable === true ? undoable(usage.worked) : usage.worked
    const before = usage.worked.ms
    const from = this.#parts.now()
    try {
      const running = this.#stages.runner.write(identity, statements as readonly BoundStatement<WriteStatement>[], work)
      return step.respond(await awaitResult(incoming, running))
    } catch (error) {
      if (step.failed === undefined) throw error
      return step.failed(error)
    } finally {
      this.#addPhases(from, started, usage.worked.ms - before, findings)
    }
  }

  /** @throws {GatewayError} for a table whose writes have effects that a rollback may not undo. */
  async #refuseOutside(statements: readonly InspectedStatement[], context: RequestContext): Promise<void> {
    const compiled = statements.map(({ statement }) => statement as CompiledStatement)
    const tables = [...writesOf(compiled, context.view).keys()]
    const written = await this.#reads.triggers(tables, this.#caller(context))
    for (const table of tables) {
      const { foreign = false, triggers = [] } = written.get(table.oid) ?? {}
      const outside = triggers.find(({ untrusted }) => untrusted !== null)
      if (foreign) throw notRehearsed(`${table.resource} is a table of another server`)
      if (outside !== undefined) {
        throw notRehearsed(`a trigger of ${table.resource} calls a function in the language ${outside.untrusted}`)
      }
    }
  }

  #addPhases(from: number, started: number, databaseMs: number, { phases }: Findings): void {
    const start = from - started
    phases.push({ name: 'run', start, ms: this.#parts.now() - from })
    if (databaseMs > 0) phases.push({ name: 'database', start, ms: databaseMs })
  }

  /** Runs a read as the request would, with permit, cache and cost guard. */
  async #run(
    step: ExecutedStep & { readonly runs: 'read' },
    statements: readonly InspectedRead[],
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
      this.#addPhases(from, started, worked.ms - before, findings)
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
      last.map(({ statement }) => statement as InspectedRead),
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

  async #tables(request: InspectedRequest, context: RequestContext, { runs }: Findings): Promise<TableFindings> {
    const { view } = context
    const statements = runs.map(({ statement }) => statement.statement as CompiledStatement)
    const writes = writesOf(statements, view)
    const found = [...new Set([...writes.keys(), ...tablesOf(statements, view)])]
    const route = request.kind === 'line' ? parsePath(request.path) : null
    const tables = found.length > 0 || route === null || !('table' in route) ? found : knownTable(route.table, view)
    // A request that is refused has no statement.
    const operation = request.kind === 'line' ? OPERATION_OF[request.method] : undefined
    const refused = found.length > 0 || operation === undefined ? [] : [operation]
    const operations = new Map(tables.map(table => [table, [...(writes.get(table) ?? refused)]]))
    const caller = this.#caller(context)
    const written = tables.filter(table => operations.get(table)?.length !== 0)
    return {
      operations,
      security: await this.#reads.policies(tables, [...operations.values()].flat(), caller),
      triggers: await this.#reads.triggers(written, caller),
    }
  }

  /** For the path of a row: why the caller sees it or not. */
  async #row(
    request: InspectedRequest,
    context: RequestContext,
    { first }: Findings,
    security: ReadonlyMap<number, RowSecurity>,
  ): Promise<RowVisibility | null> {
    const route = request.kind === 'line' && READING.includes(request.method) ? parsePath(request.path) : null
    if (route?.kind !== 'one' || first?.statement === undefined) return null
    const { statement, values } = first.statement
    if (statement.kind === 'stream' || statement.kind === 'write') return null
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
    { error, tree, runs, phases, cache, rows, changes }: Findings,
    { operations, security, triggers }: TableFindings,
    row: RowVisibility | null,
  ): Answer {
    const isWithheld = [...security.values()].some(({ policies }) => policies.some(({ shown }) => !shown))
    const body = {
      request: request.kind === 'text' ? { query: request.text } : { method: request.method, path: pathOf(request) },
      failure: error === null ? null : describeError(error),
      rows,
      changes,
      caller: {
        source: identity.source,
        claims: JSON.parse(identity.claims) as unknown,
        scopes: identity.scopes,
        settings: Object.fromEntries(settingsOf(identity)),
      },
      tables: [...operations].map(([table, written]) => {
        const access = describeAccess(table, view)
        return {
          table: table.resource,
          access: {
            refused: access.refused,
            columns: access.columns,
            rows: access.rows,
            rows_withheld: access.rowsWithheld,
            soft_delete: access.softDelete,
            writes: written.map(operation => {
              const { rowsWithheld, ...about } = describeWrite(table, operation, view)
              return { ...about, rows_withheld: rowsWithheld }
            }),
          },
          row_security: describeSecurity(security.get(table.oid), written),
          triggers: (triggers.get(table.oid)?.triggers ?? [])
            .filter(trigger => trigger.operations.some(operation => written.includes(operation)))
            .map(({ name, timing, level, operations: on, function: called }) => ({
              ...{ name, timing, level, operations: on, function: called },
            })),
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

/** The headers of the inspection that apply to the inspected request. */
const HEADERS_KEPT = ['prefer', 'if-match', 'x-upsert', 'x-on-conflict', 'x-max-affected'] as const

/** The inspected request in place of the inspection. */
function incomingOf(request: InspectedRequest, incoming: Incoming): Incoming {
  if (request.kind === 'text') return { ...incoming, body: request.body }
  const { method, path, query, body } = request
  const kept = HEADERS_KEPT.flatMap(name => {
    const value = incoming.headers[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  const headers = Object.fromEntries(body.length === 0 ? kept : [...kept, ['content-type', 'application/json']])
  return { ...incoming, method, path, query, headers, body, isLarge: body.length > 0 && incoming.isLarge }
}

/** @throws {GatewayError} for a text that explains. */
function inspectedOf(statements: readonly BoundStatement[]): readonly InspectedStatement[] {
  return statements.map(({ statement, values }) => {
    if (statement.kind === 'call' || statement.kind === 'explain') {
      throw new GatewayError('PARSE_ERROR', 'a text that explains cannot be inspected; leave out explain')
    }
    return { statement, values }
  })
}

function notRehearsed(reason: string): GatewayError {
  return new GatewayError(
    'FORBIDDEN',
    `the write cannot be run and rolled back: ${reason}, and a rollback may not undo its effects`,
    { hint: 'Leave out "run"; the write is planned, but not executed.' },
  )
}

function tooManySteps(): GatewayError {
  return new GatewayError(
    'PARSE_ERROR',
    `an inspection follows at most ${STEPS_MAX} steps of a request; send fewer rows`,
  )
}

function pathOf({ path, query }: InspectedRequest & { readonly kind: 'line' }): string {
  return query === '' ? path : `${path}?${query}`
}

function describeError({ code, message, status, hint, details }: GatewayError): object {
  return {
    ...{ code, message, status },
    ...(hint === undefined ? {} : { hint }),
    ...(details === undefined ? {} : { details }),
  }
}

/** The policies for the operations on this table; those for reads apply to the rows that a write finds. */
function describeSecurity(security: RowSecurity | undefined, writes: readonly WriteOperation[]): object | null {
  if (security === undefined) return null
  const { active, enabled, forced, complete, policies } = security
  const checks = writes.some(operation => operation !== 'delete')
  const applied = policies.filter(
    ({ command }) => command === 'all' || command === 'select' || writes.includes(command),
  )
  return {
    ...{ active, enabled, forced, complete },
    policies: applied.map(({ name, permissive, command, condition, check, shown }) => ({
      ...{ name, permissive, command },
      condition: shown && command !== 'insert' ? condition : null,
      check: shown && checks ? check : null,
      withheld: !shown,
    })),
  }
}

function describeVerdict({ cost, rows, costMax, rowsMax, passes }: GuardVerdict): object {
  return { passes, estimated_cost: cost, cost_limit: costMax, estimated_rows: rows, row_limit: rowsMax }
}

function toHundredths(ms: number): number {
  return Math.round(ms * 100) / 100
}
