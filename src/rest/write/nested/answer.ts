/**
 * The responses to writes of related rows, and to writes with `expand`
 * (docs/reference/writing.md#related-rows). The steps share a transaction, and `expand` reads the rows again
 * at its end.
 */
import { forbiddenColumn } from '../../../access/refusals.ts'
import { allows, allowsAll } from '../../../access/rights.ts'
import { GatewayError } from '../../../errors.ts'
import type { Answer } from '../../../exchange.ts'
import type { JsonArray, ObjectOutline } from '../../../json/json-body.ts'
import type { WriteResult } from '../../../run/run.ts'
import { toArrayLiteral } from '../../../text/array-text.ts'
import { withTextColumns } from '../../body/text-values.ts'
import { nextTurn } from '../../next-turn.ts'
import { parseExpand } from '../../parameters/expand.ts'
import { parseId } from '../../path.ts'
import { type RelatedLimits, withParameters } from '../../read/expand.ts'
import { idParameters, notFound } from '../../resource.ts'
import { respondCreatedRow, respondNothing, respondWrittenRow, respondWrittenRows, withTag } from '../../respond.ts'
import { versionColumn } from '../../row-version.ts'
import { firstStep, read, type Script, write } from '../../script.ts'
import type { RequestStep } from '../../steps.ts'
import { Values } from '../../values.ts'
import { describeViolation } from '../../violation.ts'
import type { PartialChanges } from '../changes.ts'
import { newTag, preconditionOf, returnedVersion } from '../precondition.ts'
import { parseReturning, type SetTree, type WriteTarget } from '../request.ts'
import { answerable, explaining, finished, type Writing } from '../writing.ts'
import { GraphReader, type GraphRow } from './graph.ts'
import { assertRights, equivalentsOf } from './rights.ts'
import { GraphRun, type RunLimits } from './run.ts'

/** Limits on related rows, read and written. */
export interface RelatedWriteLimits extends RunLimits, RelatedLimits {}

/** Creates the row of an object, or the rows of an array. */
export async function createRelated(
  writing: Writing,
  body: ObjectOutline | JsonArray,
  limits: RelatedWriteLimits,
): Promise<RequestStep> {
  const reader = new GraphReader(writing.view, limits)
  const { table } = writing
  const rows =
    body.kind === 'object'
      ? [await inTurns(reader.row(body, table, 'create', '', 1))]
      : await inTurns(reader.items(body, table, 'create', '', 1))
  assertExpandable(writing)
  return together(writing, rows, () => {
    const run = new GraphRun(writing, limits)
    const [row] = rows
    return body.kind === 'object' && row !== undefined
      ? createdOne(writing, run, row, limits)
      : createdMany(writing, run, rows, limits)
  })
}

/** Changes the row with this id and its related rows. `changes` are those of the body. */
export async function changeRelated(
  writing: Writing,
  { hasRelated = false, ...changes }: PartialChanges,
  id: string,
  limits: RelatedWriteLimits,
): Promise<RequestStep> {
  const { table, view } = writing
  const { body } = changes
  const isGraph = hasRelated && body !== null
  const row: ChangedRow = isGraph
    ? await inTurns(new GraphReader(view, limits).row(body, table, 'update', '', 1))
    : { table, path: '', columns: changes.columns, bytes: NO_ROW, ones: [], manys: [], changes }
  assertExpandable(writing)
  return together(writing, [row], () => changedOne(writing, new GraphRun(writing, limits), row, id, limits))
}

/** Checks that written rows can be found again. */
function assertExpandable({ table, wanted, view }: Writing): void {
  if (wanted.expand === undefined) return
  if (table.primaryKey.length === 0) {
    throw new GatewayError(
      'PARSE_ERROR',
      `"${table.resource}" has no primary key, which expand needs to find the written rows; leave out expand`,
    )
  }
  const hidden = table.primaryKey.find(name => !allows(view.rights.of(table).read, name))
  if (hidden !== undefined) throw forbiddenColumn(hidden, table, 'read')
}

async function inTurns<T>(reading: Generator<void, T>): Promise<T> {
  for (;;) {
    const { done, value } = reading.next()
    if (done === true) return value
    await nextTurn()
  }
}

/** Runs the steps of a script in one transaction. */
function together(writing: Writing, rows: readonly GraphRow[], script: () => Script<Answer>): RequestStep {
  assertRights(writing, rows)
  return {
    ...{ runs: 'together', parts: [], equivalents: equivalentsOf(rows) },
    begin: () => firstStep(script()),
    explain: error => describeViolation(error, writing.view),
  }
}

// ---- create ----

function* createdOne(writing: Writing, run: GraphRun, row: GraphRow, limits: RelatedWriteLimits): Script<Answer> {
  const { table, wanted } = writing
  const { primaryKey } = table
  const answered = answerable(writing, row.columns)
  const expands = wanted.expand !== undefined
  const minimal = isMinimal(writing) || (!expands && answered !== 'any' && answered.size === 0)
  const hasKey = primaryKey.length > 0 && allowsAll(answered, primaryKey)
  const version = hasKey ? returnedVersion(writing) : []
  const key = hasKey ? [...primaryKey, ...version] : []
  const json = yield* run.create([row], '', {
    ...(expands ? { needed: primaryKey, optional: key } : { needed: [], optional: key, writing }),
  })
  const known = key.map(name => run.valueOf(row, name))
  const texts = known.every(text => text !== undefined) ? known.map(textBuffer) : []
  const shown = expands ? (yield* reread(writing, run, [row], limits))[0] : json.get(row)
  const answer = respondCreatedRow({
    ...{ table, count: 1, minimal, upsert: false, hasVersion: version.length > 0 && texts.length > 0 },
    rows: [minimal ? texts : [shown ?? null, ...texts]],
    tagOf: (values, text) => (run.written === undefined ? null : newTag(writing, run.written, values, text)),
  })
  return finished(writing, run.written, answer)
}

function* createdMany(
  writing: Writing,
  run: GraphRun,
  rows: readonly GraphRow[],
  limits: RelatedWriteLimits,
): Script<Answer> {
  const { table, wanted } = writing
  const expands = wanted.expand !== undefined
  const json = yield* run.create(rows, '', expands ? { needed: table.primaryKey } : { needed: [], writing })
  const shown = expands ? yield* reread(writing, run, rows, limits) : rows.flatMap(row => json.get(row) ?? [])
  const isSilent = isMinimal(writing) || (!expands && shown.length === 0)
  const answer = isSilent
    ? respondNothing(201, 'minimal', rows.length)
    : respondWrittenRows(
        201,
        shown.map(one => [one]),
      )
  return finished(writing, run.written, answer)
}

// ---- change ----

/** The row of a PATCH; `changes` if its body is not a row. */
interface ChangedRow extends GraphRow {
  readonly changes?: PartialChanges
}

const NO_ROW = Buffer.from('{}')

function* changedOne(
  writing: Writing,
  run: GraphRun,
  row: ChangedRow,
  id: string,
  limits: RelatedWriteLimits,
): Script<Answer> {
  const { table, wanted, view, tables } = writing
  const { primaryKey } = table
  const key = parseId(id, primaryKey)
  run.learn(
    row,
    primaryKey,
    key.map(text => Buffer.from(text)),
  )
  yield* run.createReferenced([row])
  const changes = row.changes ?? run.changesOf(row)
  const expands = wanted.expand !== undefined
  const isChanged = changes.columns.length > 0
  const written = isChanged ? yield* setRow(writing, run, row, changes, id) : null
  if (written === null) yield* findRow(writing, run, row, id)
  yield* run.writeRelated([row])
  const returning = parseReturning(wanted, 'rows', answerable(writing, changes.columns), new Values())
  const isAnswered = returning.length > 0
  const json =
    isAnswered && (expands || written === null)
      ? (yield* reread(writing, run, [row], limits))[0]
      : (written?.rows[0]?.[0] ?? undefined)
  const answer = isAnswered && json !== undefined ? respondWrittenRow(json) : respondNothing(204, wanted.returned, 1)
  const isMoved = changes.columns.some(name => primaryKey.includes(name))
  const column = versionColumn(table, view, tables)
  const version = column === null ? null : (run.valueOf(row, column) ?? null)
  const tag = written === null || isMoved ? null : newTag(writing, written, key, version)
  return finished(writing, written ?? run.written, tag === null ? answer : withTag(answer, tag))
}

/** Changes the row of the path. */
function* setRow(
  writing: Writing,
  run: GraphRun,
  row: ChangedRow,
  changes: PartialChanges,
  id: string,
): Script<WriteResult> {
  const { table, wanted, view, tables } = writing
  const precondition = preconditionOf(writing, id)
  const column = versionColumn(table, view, tables)
  const moved = changes.columns.filter(name => table.primaryKey.includes(name))
  const key = [...new Set([...run.neededBelow(row), ...moved, ...returnedVersion(writing)])]
  const values = new Values()
  const target: WriteTarget = {
    ...{ kind: 'row', id: idParameters(table, id, values) },
    version:
      precondition === null || column === null
        ? null
        : { column, values: values.add(toArrayLiteral(precondition.versions)) },
  }
  const { columns, bytes, partial } = changes
  const value = values.add(partial?.kind === 'operations' ? bytes : withTextColumns(bytes, table, columns, view.limits))
  const isShown = wanted.expand === undefined
  const returning = isShown ? parseReturning(wanted, 'rows', answerable(writing, changes.columns), values) : []
  const tree: SetTree = {
    ...{ kind: 'set', table, columns, value, target, returning, key },
    ...(partial === undefined ? {} : { partial }),
  }
  let written: WriteResult | undefined
  try {
    ;[written] = yield* write([{ tree, values }])
  } catch (error) {
    throw row.changes === undefined ? yield* run.explained(error, row) : explaining(writing, row.changes.body)(error)
  }
  if (written === undefined || written.count === 0) {
    if (precondition !== null) yield* judged(precondition.judge())
    throw notFound(table, id)
  }
  const [answered = []] = written.rows
  run.learn(row, key, answered.slice(answered.length - key.length))
  return written
}

/** Reads the row in the path, if the body has no column of it. */
function* findRow(writing: Writing, run: GraphRun, row: GraphRow, id: string): Script<void> {
  const { table } = writing
  // The row is not written, so its version is compared first.
  const precondition = preconditionOf(writing, id)
  if (precondition !== null && !(yield* hasVersion(writing, id, precondition.versions))) {
    yield* judged(precondition.judge())
  }
  const columns = run.neededBelow(row).filter(name => !table.primaryKey.includes(name))
  const [found] = yield* run.find(table, [row], table.primaryKey, { columns })
  if (found === undefined) throw notFound(table, id)
  run.learn(row, columns, found.slice(1))
}

function* hasVersion(writing: Writing, id: string, versions: readonly string[]): Script<boolean> {
  const { table, view, tables, written } = writing
  const values = new Values()
  const [first = ''] = table.primaryKey
  const tree = {
    ...({ kind: 'one', written: { ...written, parameters: [] }, table, expand: [] } as const),
    select: [{ kind: 'column', path: { column: first, steps: [] }, alias: null }] as const,
    id: idParameters(table, id, values),
    version: versionColumn(table, view, tables),
  }
  const [rows = []] = yield* read([{ tree, values }])
  const [, version] = rows[0] ?? []
  return version != null && versions.includes(version.toString())
}

/** Runs the read by which a precondition responds. */
function* judged(step: RequestStep): Script<never> {
  if (step.runs !== 'read') throw new Error('a precondition reads the row')
  const results = yield* read([...step.parts])
  step.respond(results, {})
  throw new Error('a precondition that failed has an error')
}

// ---- the rows after the write ----

function isMinimal({ wanted }: Writing): boolean {
  return wanted.returned === 'minimal' && wanted.returning === undefined && wanted.expand === undefined
}

/** The rows with their related rows, in the given order. Rows that the caller cannot see are left out. */
function* reread(
  writing: Writing,
  run: GraphRun,
  rows: readonly GraphRow[],
  limits: RelatedWriteLimits,
): Script<readonly Buffer[]> {
  const { table, wanted } = writing
  if (rows.length === 0) return []
  const values = new Values()
  const select = parseReturning({ ...wanted, returned: null }, 'rows', 'any', values)
  const relations = parseExpand(wanted.expand, limits.maxExpandDepth)
  const expand = withParameters(relations, wanted.related ?? [], values, limits, { filters: 0 })
  const found = yield* run.find(table, rows, table.primaryKey, { select, expand }, values)
  return found.flatMap(([json]) => json ?? [])
}

function textBuffer(text: string | null | undefined): Buffer | null {
  return text == null ? null : Buffer.from(text)
}
