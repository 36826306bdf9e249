/**
 * PATCH and DELETE of the row in the path or of all rows that match the filters
 * (docs/reference/writing.md#many-rows-at-once).
 */
import type { Answer } from '../../exchange.ts'
import type { JsonObject } from '../../json/json-body.ts'
import type { WriteResult } from '../../run/run.ts'
import { withArrayColumns } from '../body/array-values.ts'
import { REFUSED_ITEMS_MAX, readJsonBody } from '../body/body.ts'
import { nextTurn } from '../next-turn.ts'
import type { FilterLimits } from '../parameters/filters.ts'
import { idParameters, notFound } from '../resource.ts'
import { respondNothing, respondWrittenRow, respondWrittenRows } from '../respond.ts'
import type { RequestStep } from '../steps.ts'
import { Values } from '../values.ts'
import { type DeleteTree, parseBulk, parseReturning, type SetTree, type WriteTarget } from './request.ts'
import {
  answerable,
  columnKeys,
  describeBody,
  explaining,
  finished,
  refusedBody,
  type Writing,
  writeResultOf,
} from './writing.ts'

type ChangeMethod = 'PATCH' | 'DELETE'

/**
 * Changes or deletes the row with this id.
 * @throws {GatewayError} for an invalid id or body.
 */
export function changeOne(writing: Writing, method: ChangeMethod, id: string): RequestStep | Promise<RequestStep> {
  const { table, wanted } = writing
  const values = new Values()
  const target: WriteTarget = { kind: 'row', id: idParameters(table, id, values) }
  return change(writing, method, { target, values }, ({ rows, count }, isAnswered) => {
    if (count === 0) throw notFound(table, id)
    const row = rows[0]?.[0]
    return isAnswered && row ? respondWrittenRow(row) : respondNothing(204, wanted.returned, count)
  })
}

/**
 * Changes or deletes all rows that match the filters.
 * @throws {GatewayError} for invalid filters or an invalid body.
 */
export function changeMany(
  writing: Writing,
  method: ChangeMethod,
  limits: FilterLimits,
): RequestStep | Promise<RequestStep> {
  const { written, table, wanted } = writing
  const values = new Values()
  const target = parseBulk(written, table, values, limits)
  return change(writing, method, { target, values }, ({ rows, count }, isAnswered) =>
    isAnswered ? respondWrittenRows(200, rows) : respondNothing(204, wanted.returned, count),
  )
}

interface Chosen {
  readonly target: WriteTarget
  readonly values: Values
}

/** Builds the response; `isAnswered` is whether rows were requested. */
type Respond = (written: WriteResult, isAnswered: boolean) => Answer

function change(
  writing: Writing,
  method: ChangeMethod,
  chosen: Chosen,
  respond: Respond,
): RequestStep | Promise<RequestStep> {
  if (method === 'DELETE') return remove(writing, chosen, respond)
  const body = changesIn(writing)
  const ask = () => set(writing, chosen, body, respond)
  return writing.incoming.isLarge ? nextTurn().then(ask) : ask()
}

function remove(writing: Writing, { target, values }: Chosen, respond: Respond): RequestStep {
  const { table, wanted } = writing
  const returning = parseReturning(wanted, 'nothing', answerable(writing, []), values)
  return asWrite(writing, { kind: 'delete', table, target, returning }, values, respond, null)
}

function set(writing: Writing, { target, values }: Chosen, body: JsonObject, respond: Respond): RequestStep {
  const { table, wanted } = writing
  const columns = body.members.map(({ key }) => key).sort()
  const value = values.add(withArrayColumns(body.bytes, table, columns))
  const returning = parseReturning(wanted, 'rows', answerable(writing, columns), values)
  return asWrite(writing, { kind: 'set', table, columns, value, target, returning }, values, respond, body)
}

function asWrite(
  writing: Writing,
  tree: SetTree | DeleteTree,
  values: Values,
  respond: Respond,
  body: JsonObject | null,
): RequestStep {
  return {
    runs: 'write',
    parts: [{ tree, values }],
    respond: ([written]) => finished(writing, written, respond(writeResultOf(written), tree.returning.length > 0)),
    explain: explaining(writing, body),
  }
}

/** The body of a PATCH: an object with at least one column (docs/reference/writing.md#change). */
function changesIn(writing: Writing): JsonObject {
  const body = readJsonBody(writing.incoming, REFUSED_ITEMS_MAX, columnKeys(writing))
  if (body.kind === 'object' && body.members.length > 0) return body
  const what = body.kind === 'object' ? 'an object without columns' : describeBody(body)
  throw refusedBody(what, 'an object with the columns to change')
}
