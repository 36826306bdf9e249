/**
 * Answers a request with the execution plan of its statement. PostgreSQL estimates from the rows of all
 * callers, and an executed plan counts the rows that row-level security removed. So figures are shown only to
 * callers with the scope for them, and to those from whom nothing hides a row of the statement. With
 * `row_security = off`, PostgreSQL refuses a statement to which a policy would apply.
 */
import { hidesRows } from '../access/rights.ts'
import { catalogueStatement, type PlanRequest, requestedPlan } from '../compile/derive.ts'
import type { BoundStatement } from '../compile/statement.ts'
import { GatewayError } from '../errors.ts'
import type { Answer } from '../exchange.ts'
import { DatabaseError } from '../postgres/errors.ts'
import type { RequestStep } from '../rest/steps.ts'
import { parsePlans } from '../run/estimate.ts'
import { seesFigures, withoutFigures } from '../run/explain-figures.ts'
import type { ResultRow } from '../run/run.ts'
import { notImplemented } from './errors.ts'
import { type PlanForm, withPlan } from './media-types.ts'
import type { DoorRequest } from './request.ts'
import { withReply } from './respond.ts'
import type { SessionReply } from './session.ts'
import type { Caller } from './statements.ts'

/** The step that answers with the plan of `step`. */
export function planStep(
  step: RequestStep,
  request: DoorRequest,
  form: PlanForm,
  caller: Caller,
  reply: SessionReply,
): RequestStep {
  if (form.options.includes('analyze') && !onlyReads(step)) {
    throw notImplemented('A plan with options=analyze of a request that can change data, because it is executed')
  }
  const statements = statementsOf(step)
  const showing = (figures: boolean): RequestStep => {
    const wanted: PlanRequest = figures ? { ...form, costs: true } : { ...withoutExecution(form), costs: false }
    return {
      runs: 'read',
      parts: explained(statements, wanted),
      respond: plans => withReply(respondPlans(request, plans, wanted), reply),
    }
  }
  if (seesFigures(caller.identity)) return showing(true)
  const { catalog, rights } = caller.view
  if (Array.from(catalog.tables.values()).some(table => hidesRows(table, rights))) return showing(false)
  return {
    runs: 'read',
    parts: [WITHOUT_POLICIES, ...explained(statements, { format: 'json', options: [], costs: true })],
    respond: () => showing(true),
    failed(error) {
      if (isFiltered(error)) return showing(false)
      throw error
    },
  }
}

/** The setting ends with the transaction. */
const WITHOUT_POLICIES = catalogueStatement("SELECT set_config('row_security', 'off', true)", [])

function onlyReads(step: RequestStep): boolean {
  return step.runs === 'read' || (step.runs === 'call' && step.how.access === 'read only')
}

/** The statements of the request itself, without those that estimate. */
function statementsOf({ parts }: RequestStep): readonly BoundStatement[] {
  return [...parts].flatMap(part => ('statement' in part && part.statement.kind !== 'explain' ? [part] : []))
}

function explained(statements: readonly BoundStatement[], wanted: PlanRequest) {
  return statements.map(({ statement, values }) => ({ statement: requestedPlan(statement, wanted), values }))
}

/** Options that show nothing without figures, or that require the execution. */
function withoutExecution({ format, options }: PlanForm): PlanForm {
  return { format, options: options.filter(option => option === 'verbose') }
}

/** PostgreSQL: `query would be affected by row-level security policy for table …`. */
function isFiltered(error: unknown): boolean {
  const cause = error instanceof GatewayError ? error.cause : null
  return cause instanceof DatabaseError && cause.sqlstate === '42501' && cause.routine === 'check_enable_rls'
}

function respondPlans(
  { incoming, mediaType }: DoorRequest,
  plans: readonly (readonly ResultRow[])[],
  { format, options, costs }: PlanRequest,
): Answer {
  const body = format === 'json' ? jsonOf(plans, costs) : textOf(plans, costs)
  return {
    status: 200,
    headers: { 'Content-Type': withPlan(mediaType, { format, options }).contentType },
    body: incoming.method === 'HEAD' ? null : body,
  }
}

function jsonOf(plans: readonly (readonly ResultRow[])[], costs: boolean): Buffer {
  const texts = plans.map(([row]) => row?.[0] ?? EMPTY_LIST)
  const [only] = texts
  const whole =
    texts.length === 1 && only !== undefined
      ? only
      : Buffer.from(JSON.stringify(texts.flatMap(text => parsePlans(text.toString()))))
  return costs ? whole : withoutFigures(whole)
}

const EMPTY_LIST = Buffer.from('[]')

/** Without costs, the number of workers is the only figure. */
function textOf(plans: readonly (readonly ResultRow[])[], costs: boolean): Buffer {
  const lines = plans.flatMap(rows => rows.map(([line]) => line?.toString() ?? ''))
  return Buffer.from(lines.filter(line => costs || !/^\s*Workers Planned: /.test(line)).join('\n'))
}
