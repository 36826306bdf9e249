/** Takes an inspected request through the stages of the pipeline, and collects what each of them did. */
import type { Approvals } from '../access/list/approvals.ts'
import { limitsRows } from '../access/rights.ts'
import type { BoundStatement, CompiledStatement, WriteStatement } from '../compile/statement.ts'
import { GatewayError } from '../errors.ts'
import type { Answer } from '../exchange.ts'
import { awaitResult } from '../rest/cancel-on-disconnect.ts'
import type { Compiler } from '../rest/compile.ts'
import { describeText, describeTree, writesOf } from '../rest/inspect/describe.ts'
import type { InspectedRequest } from '../rest/inspect/request.ts'
import {
  type ExecutedStep,
  isStep,
  type RequestContext,
  type RequestStep,
  type StatementPart,
  type StepResult,
} from '../rest/steps.ts'
import type {
  GuardVerdict,
  InspectedPlan,
  InspectedRead,
  InspectedStatement,
  InspectingCaller,
  InspectionReads,
} from '../run/inspect/inspection-reads.ts'
import { RestartError, undoable, unfinished, type Work } from '../run/joint-transaction.ts'
import type { Runner } from '../run/run.ts'
import { LIMIT_NAMES } from '../statement-limits.ts'
import { rehearse } from './once.ts'

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
export interface Findings {
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

/** Settings of the steps of an inspection. */
interface InspectionStepsParts {
  /** True if results are cached. */
  readonly caches: boolean
  /** Limit on the steps of one request; 0 for none. */
  readonly maxInspectSteps: number
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
}

/** Takes requests through their stages. Nothing is kept between two requests. */
export class InspectionSteps {
  readonly #parts: InspectionStepsParts
  readonly #stages: InspectionStages
  readonly #reads: InspectionReads

  constructor(parts: InspectionStepsParts, stages: InspectionStages, reads: InspectionReads) {
    this.#parts = parts
    this.#stages = stages
    this.#reads = reads
  }

  /** Takes the request through its stages. An error of the request is a finding. */
  async take(request: InspectedRequest, context: RequestContext): Promise<Findings> {
    const findings: Findings = { ...NOTHING_FOUND, runs: [], phases: [] }
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
    return findings
  }

  async #steps(request: InspectedRequest, context: RequestContext, started: number, findings: Findings): Promise<void> {
    const toStep = () => this.#stages.toStep(request, context)
    const first: RequestStep = await this.#timed('parse', started, findings, toStep)
    if (request.kind === 'text') findings.tree = describeText(request.text)
    const { maxInspectSteps: max } = this.#parts
    let next: StepResult | null = first
    try {
      for (let count = 0; next !== null && isStep(next); count++) {
        if (max > 0 && count === max) throw tooManySteps(max)
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
      const estimates = await this.#reads.estimates(statements, inspectingCaller(context))
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
    const written = await this.#reads.triggers(tables, inspectingCaller(context))
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
      inspectingCaller(context),
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

  async #timed<T>(name: Phase['name'], started: number, findings: Findings, work: () => T | Promise<T>): Promise<T> {
    const from = this.#parts.now()
    try {
      return await work()
    } finally {
      findings.phases.push({ name, start: from - started, ms: this.#parts.now() - from })
    }
  }
}

/** The caller of an inspected request, for the reads of the inspection itself. */
export function inspectingCaller({ incoming, identity, view }: RequestContext): InspectingCaller {
  return { identity, view, worked: incoming.usage.worked, wait: running => awaitResult(incoming, running) }
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

function tooManySteps(max: number): GatewayError {
  return new GatewayError(
    'PARSE_ERROR',
    `the request has too many steps to inspect; ${LIMIT_NAMES.maxInspectSteps} is ${max}. Send fewer related rows`,
  )
}
