/** The response to an inspection (docs/reference/inspect.md#the-response). */
import type { GatewayError } from '../errors.ts'
import type { Answer } from '../exchange.ts'
import { settingsOf } from '../identity/settings.ts'
import { describeAccess, describeWrite, type InspectedWrite, type tablesOf } from '../rest/inspect/describe.ts'
import type { InspectedRequest } from '../rest/inspect/request.ts'
import type { RequestContext } from '../rest/steps.ts'
import { type GuardVerdict, withoutNames } from '../run/inspect/inspection-reads.ts'
import type { RowSecurity, WrittenTable } from '../run/inspect/row-policies.ts'
import type { RowVisibility } from '../run/inspect/row-visibility.ts'
import type { Findings } from './inspection-steps.ts'

type InspectedTable = ReturnType<typeof tablesOf>[number]
type WriteOperation = InspectedWrite['operation']

/** What is known about the tables of a request. */
export interface TableFindings {
  /** The tables that it reads or writes, with the operations of its writes. */
  readonly operations: ReadonlyMap<InspectedTable, readonly WriteOperation[]>
  readonly security: ReadonlyMap<number, RowSecurity>
  readonly triggers: ReadonlyMap<number, WrittenTable>
}

/** Describes what the stages of a request did. */
export function inspectionResponse(
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
