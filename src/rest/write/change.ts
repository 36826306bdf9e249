/**
 * PATCH and DELETE of the row in the path or of all rows that match the filters
 * (docs/reference/writing.md#many-rows-at-once).
 */
import type { Table } from '../../catalog/model.ts'
import type { ObjectOutline } from '../../json/json-body.ts'
import type { WriteResult } from '../../run/run.ts'
import { toArrayLiteral } from '../../text/array-text.ts'
import { withTextColumns } from '../body/text-values.ts'
import { nextTurn } from '../next-turn.ts'
import type { FilterLimits } from '../parameters/filters.ts'
import { parseId } from '../path.ts'
import { idParameters, notFound } from '../resource.ts'
import { respondNothing, respondWrittenRow, respondWrittenRows, withTag } from '../respond.ts'
import { versionColumn } from '../row-version.ts'
import { isStep, type RequestStep, type StepResult } from '../steps.ts'
import { Values } from '../values.ts'
import { changesIn, type PartialChanges } from './changes.ts'
import { changeRelated, type RelatedWriteLimits } from './nested/answer.ts'
import { newTag, preconditionOf, returnedVersion } from './precondition.ts'
import { type DeleteTree, parseBulk, parseReturning, type SetTree, type WriteTarget } from './request.ts'
import { answerable, explaining, finished, refusedBody, type Writing, writeResultOf } from './writing.ts'

type ChangeMethod = 'PATCH' | 'DELETE'

/**
 * Changes or deletes the row with this id.
 * @throws {GatewayError} for an invalid id or body.
 */
export function changeOne(
  writing: Writing,
  method: ChangeMethod,
  id: string,
  limits: RelatedWriteLimits,
): RequestStep | Promise<RequestStep> {
  const { table, wanted } = writing
  const values = new Values()
  const key = idParameters(table, id, values)
  const precondition = preconditionOf(writing, id)
  const column = versionColumn(table, writing.view, writing.tables)
  // Without a version there is nothing that a write could compare.
  if (precondition !== null && column === null) return precondition.judge()
  const changes = method === 'DELETE' ? null : changesIn(writing)
  if (changes !== null && (changes.hasRelated === true || wanted.expand !== undefined)) {
    return changeRelated(writing, changes, id, limits)
  }
  const isCompared = precondition !== null && column !== null
  const target: WriteTarget = {
    kind: 'row',
    id: key,
    version: isCompared ? { column, values: values.add(toArrayLiteral(precondition.versions)) } : null,
  }
  return change(writing, changes, { target, values }, (written, { isAnswered, columns }) => {
    const { rows, count } = written
    if (count === 0) return precondition?.judge() ?? missing(table, id)
    const row = rows[0]?.[0]
    const answer = isAnswered && row ? respondWrittenRow(row) : respondNothing(204, wanted.returned, count)
    // A row with another key has another address, which the answer does not name.
    const isThere = method === 'PATCH' && !columns.some(name => table.primaryKey.includes(name))
    if (!isThere) return answer
    const version = returnedVersion(writing).length === 0 ? null : (rows[0]?.at(-1)?.toString() ?? null)
    const tag = newTag(writing, written, parseId(id, table.primaryKey), version)
    return tag === null ? answer : withTag(answer, tag)
  })
}

function missing(table: Table, id: string): never {
  throw notFound(table, id)
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
  const changes = method === 'DELETE' ? null : changesIn(writing)
  if (changes?.hasRelated === true) {
    throw refusedBody('an object with related rows', 'it to one row: PATCH /api/{table}/{id}')
  }
  return change(writing, changes, { target, values }, ({ rows, count }, { isAnswered }) =>
    isAnswered ? respondWrittenRows(200, rows) : respondNothing(204, wanted.returned, count),
  )
}

interface Chosen {
  readonly target: WriteTarget
  readonly values: Values
}

interface Asking {
  /** True if rows were requested. */
  readonly isAnswered: boolean
  /** The columns that the write sets; none for a deletion. */
  readonly columns: readonly string[]
}

/** Builds the response, or requests the reads that it needs first. */
type Respond = (written: WriteResult, asking: Asking) => StepResult

/** Without `changes`, the rows are deleted. */
function change(
  writing: Writing,
  changes: PartialChanges | null,
  chosen: Chosen,
  respond: Respond,
): RequestStep | Promise<RequestStep> {
  if (changes === null) return remove(writing, chosen, respond)
  const ask = () => set(writing, chosen, changes, respond)
  return writing.incoming.isLarge ? nextTurn().then(ask) : ask()
}

function remove(writing: Writing, { target, values }: Chosen, respond: Respond): RequestStep {
  const { table, wanted } = writing
  const returning = parseReturning(wanted, 'nothing', answerable(writing, []), values)
  return asWrite(writing, { kind: 'delete', table, target, returning }, values, respond, null)
}

function set(writing: Writing, { target, values }: Chosen, changes: PartialChanges, respond: Respond): RequestStep {
  const { table, view, wanted } = writing
  const { columns, bytes, partial, body } = changes
  const value = values.add(partial?.kind === 'operations' ? bytes : withTextColumns(bytes, table, columns, view.limits))
  const returning = parseReturning(wanted, 'rows', answerable(writing, columns), values)
  return asWrite(
    writing,
    {
      kind: 'set',
      table,
      columns,
      value,
      target,
      returning,
      key: target.kind === 'row' ? returnedVersion(writing) : [],
      ...(partial === undefined ? {} : { partial }),
    },
    values,
    respond,
    body,
  )
}

function asWrite(
  writing: Writing,
  tree: SetTree | DeleteTree,
  values: Values,
  respond: Respond,
  body: ObjectOutline | null,
): RequestStep {
  return {
    runs: 'write',
    parts: [{ tree, values }],
    respond([written]) {
      const columns = tree.kind === 'set' ? tree.columns : []
      const next = respond(writeResultOf(written), { isAnswered: tree.returning.length > 0, columns })
      return isStep(next) ? next : finished(writing, written, next)
    },
    explain: explaining(writing, body),
  }
}
