/** Answers reads of tables and views. */
import type { Table } from '../catalog/model.ts'
import type { Form } from '../compile/compile.ts'
import type { BoundStatement, ReadableStatement } from '../compile/statement.ts'
import type { Answer } from '../exchange.ts'
import type { RequestStep } from '../rest/steps.ts'
import { Values } from '../rest/values.ts'
import { parsePlans } from '../run/estimate.ts'
import type { ResultRow } from '../run/run.ts'
import type { BoundLevel, LevelBinder } from './bind.ts'
import { buildBoundedCount, buildCount, buildPlanned, buildRows, resultNames } from './build-level.ts'
import { seesEstimates } from './estimates.ts'
import { foldedValue, foldingOf } from './media-handlers.ts'
import { tableIn } from './names.ts'
import { type AppliedPreference, printApplied } from './preferences.ts'
import { describeRows, type RowRange, restricted, topLevelRange } from './range.ts'
import { addType, addWarning, type DoorRequest, rangeHeaderOf } from './request.ts'
import { printResponseBody, withReply } from './respond.ts'
import type { IsExposed } from './rpc/resolve.ts'
import type { SessionReply } from './session.ts'
import type { Caller, Statements } from './statements.ts'

/** The dependencies of reads. */
export interface ReadParts {
  readonly statements: Statements
  /** Limit on the rows of a response; 0 means none. */
  readonly maxRows: number
  /** The number of rows up to which `count=estimated` is exact. 0: it is at least the estimate. */
  readonly exactUpTo: number
  readonly binder: LevelBinder
  readonly aggregatesEnabled: boolean
  readonly isExposed: IsExposed
}

/** The step that answers a read of a table. */
export function readTableStep(
  request: DoorRequest,
  name: string,
  caller: Caller,
  reply: SessionReply,
  parts: ReadParts,
): RequestStep {
  const { incoming, schema, parameters } = request
  const table = tableIn(schema, name, caller.view)
  const range = topLevelRange(parameters.range, rangeHeaderOf(incoming))
  const values = new Values()
  const { aggregatesEnabled, isExposed } = parts
  const form = formOf(request, table)
  const context = { view: caller.view, aggregatesEnabled, isExposed, isFolded: typeof form !== 'string' }
  const { level, name: levelName } = parts.binder.bind(parameters, restricted(range, parts.maxRows), values)
  const rows = parts.statements.read(
    caller,
    `rows ${table.oid} ${levelName}`,
    { kind: 'read', form },
    () => buildRows(table, level, context),
    values,
  )
  const counts = countStatements(request, table, level, values, caller, parts)
  return {
    runs: 'read',
    parts: [rows, ...counts],
    respond([found = [], ...counted]) {
      const total = totalOf(request, counted, parts.exactUpTo)
      const answer = respondRows(request, range, found, total, () => resultNames(table, level, context))
      return withReply(answer, reply)
    },
  }
}

function formOf({ mediaType }: DoorRequest, table: Table): Form {
  const { form, stripsNulls } = mediaType
  return foldingOf(mediaType, table) ?? (form === 'csv' ? 'columns' : stripsNulls ? 'stripped' : 'rows')
}

/** The statements that count the rows without their range, for `Prefer: count`. */
function countStatements(
  { preferences }: DoorRequest,
  table: Table,
  level: BoundLevel,
  values: Values,
  caller: Caller,
  { statements, maxRows, aggregatesEnabled, isExposed }: ReadParts,
): readonly BoundStatement<ReadableStatement>[] {
  if (preferences.count === null) return []
  const context = { view: caller.view, aggregatesEnabled, isExposed }
  const key = `${table.oid} ${JSON.stringify({ where: level.where, embedded: level.embedded })}`
  const exact = () =>
    statements.read(
      caller,
      `count ${key}`,
      { kind: 'read', form: 'columns' },
      () => buildCount(table, level, context),
      values,
    )
  const planned = () => statements.planned(caller, `planned ${key}`, () => buildPlanned(table, level, context), values)
  if (preferences.count === 'exact') return [exact()]
  const counted = exact()
  if (!seesEstimates(caller, counted.statement.dependencies.reads)) return [counted]
  if (preferences.count === 'planned') return [planned()]
  // One row more tells that there are too many to count.
  const bounded = () =>
    statements.read(
      caller,
      `bounded ${key}`,
      { kind: 'read', form: 'columns' },
      () => buildBoundedCount(table, level, context, maxRows + 1),
      values,
    )
  return [maxRows > 0 ? bounded() : counted, planned()]
}

function totalOf(
  { preferences }: DoorRequest,
  counted: readonly (readonly ResultRow[])[],
  exactUpTo: number,
): number | null {
  const [first, second] = counted.map(rows => rows[0]?.[0]?.toString() ?? '')
  if (preferences.count === null || first === undefined) return null
  const exact = Number(first)
  // A plan is JSON.
  if (Number.isNaN(exact)) return plannedRows(first)
  if (second === undefined || (exactUpTo > 0 && exact <= exactUpTo)) return exact
  return Math.max(exact, plannedRows(second))
}

/** PostgreSQL's estimate of the number of rows that the whole statement returns. */
function plannedRows(plan: string): number {
  const [{ Plan: root } = {}] = parsePlans(plan)
  const rows = Number(root?.['Plan Rows'])
  return Number.isFinite(rows) ? rows : 0
}

function respondRows(
  request: DoorRequest,
  range: RowRange,
  rows: readonly ResultRow[],
  total: number | null,
  names: () => readonly string[],
): Answer {
  const { incoming, mediaType, parameters, preferences, resource } = request
  const { body, count } =
    mediaType.form === 'raw'
      ? foldedValue(rows, mediaType.handler?.isBinary ?? false)
      : { body: printResponseBody(rows, mediaType, mediaType.form === 'csv' ? names() : []), count: rows.length }
  // An estimate can be less than what was read.
  const least = total === null || count === 0 ? total : Math.max(total, range.offset + count)
  const { status, contentRange } = describeRows(range, count, least)
  const name = resource.kind === 'table' ? resource.name : ''
  const query = parameters.canonical === '' ? '' : `?${parameters.canonical}`
  const headers: Record<string, string> = {}
  addType(headers, request)
  headers['Content-Range'] = contentRange
  headers['Content-Location'] = `/${UNRESERVED.test(name) ? name : encodeURIComponent(name)}${query}`
  addWarning(headers, request)
  const applied = printApplied(preferences, APPLIED)
  if (applied !== null) headers['Preference-Applied'] = applied
  return { status, headers, rows: count, body: incoming.method === 'HEAD' ? null : body }
}

/** Names that are the same encoded, which most are. */
const UNRESERVED = /^\w*$/

const APPLIED: readonly AppliedPreference[] = ['count']
