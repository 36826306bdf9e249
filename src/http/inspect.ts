/**
 * `POST /api/_inspect` (docs/reference/inspect.md): takes a request through the stages of the pipeline
 * and reports what each of them did. The inspected request passes the same checks as if it had been sent, and
 * all of its statements run under the session settings of the caller. A write is only planned, or runs in a
 * transaction that is rolled back.
 */
import { limitsRows } from '../access/rights.ts'
import type { CompiledStatement } from '../compile/statement.ts'
import { GatewayError } from '../errors.ts'
import type { Answer, Incoming } from '../exchange.ts'
import { type InspectedWrite, knownTable, tablesOf, writesOf } from '../rest/inspect/describe.ts'
import { type InspectedRequest, readInspectBody } from '../rest/inspect/request.ts'
import { methodNotAllowed, methodsOf, READING } from '../rest/method.ts'
import { parseId, parsePath } from '../rest/path.ts'
import { requireTable } from '../rest/resource.ts'
import type { RequestContext } from '../rest/steps.ts'
import { seesFigures } from '../run/explain-figures.ts'
import { InspectionReads, type InspectionReadsParts } from '../run/inspect/inspection-reads.ts'
import type { RowSecurity } from '../run/inspect/row-policies.ts'
import type { RowVisibility } from '../run/inspect/row-visibility.ts'
import { inspectionResponse, type TableFindings } from './inspection-response.ts'
import { type Findings, type InspectionStages, InspectionSteps, inspectingCaller } from './inspection-steps.ts'
import { noRoute } from './other-routes.ts'

/** The dependencies of inspections, in addition to those of other requests. */
export interface InspectionParts {
  /** True if the route exists: plans are available to callers. */
  readonly isEnabled: boolean
  /** In development mode, every caller can inspect requests. */
  readonly isOpen: boolean
  readonly limits: InspectionReadsParts['limits']
  /** Limit on the steps of one request; 0 for none. */
  readonly maxInspectSteps: number
  /** True if results are cached. */
  readonly caches: boolean
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
}

/** The operation of a write by its method. */
const OPERATION_OF: Readonly<Record<string, InspectedWrite['operation']>> = {
  ...{ POST: 'insert', PATCH: 'update', DELETE: 'delete' },
}

/** Answers inspections. */
export class InspectionHandler {
  readonly #parts: InspectionParts
  readonly #steps: InspectionSteps
  readonly #reads: InspectionReads

  constructor(parts: InspectionParts, stages: InspectionStages) {
    this.#parts = parts
    this.#reads = new InspectionReads({ runner: stages.runner, limits: parts.limits })
    this.#steps = new InspectionSteps(parts, stages, this.#reads)
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
    const inspected = { ...context, incoming: incomingOf(request, incoming) }
    const findings = await this.#steps.take(request, inspected)
    const about = await this.#tables(request, inspected, findings)
    const row = await this.#row(request, inspected, findings, about.security)
    return inspectionResponse(request, inspected, findings, about, row)
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
    const caller = inspectingCaller(context)
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
    return this.#reads.row(row, security.get(table.oid), !limitsRows(context.view), inspectingCaller(context))
  }
}

/** The headers of the inspection that apply to the inspected request. */
const HEADERS_KEPT = ['prefer', 'if-match', 'x-upsert', 'x-on-conflict', 'x-max-affected'] as const

/** The inspected request in place of the inspection. */
function incomingOf(request: InspectedRequest, incoming: Incoming): Incoming {
  if (request.kind === 'text') return { ...incoming, body: request.body }
  const { method, path, query, body, contentType } = request
  const kept = HEADERS_KEPT.flatMap(name => {
    const value = incoming.headers[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  const headers = Object.fromEntries(body.length === 0 ? kept : [...kept, ['content-type', contentType]])
  return { ...incoming, method, path, query, headers, body, isLarge: body.length > 0 && incoming.isLarge }
}
