/** `POST /api/{table}`: one row or a batch, created (docs/reference/writing.md#create) or upserted (docs/reference/writing.md#upsert). */
import { allows, type Columns } from '../../access/rights.ts'
import { compile } from '../../compile/compile.ts'
import type { BoundStatement, WriteStatement } from '../../compile/statement.ts'
import { GatewayError } from '../../errors.ts'
import type { Answer } from '../../exchange.ts'
import type { JsonArray, JsonBody, JsonObject } from '../../json/json-body.ts'
import type { Row, Written } from '../../run/run.ts'
import { withArrayColumns } from '../body/array-values.ts'
import { respondCreatedRow, respondNothing, respondWrittenRows } from '../respond.ts'
import { Shape } from '../shape.ts'
import { sqlstateOf } from '../sqlstate.ts'
import { type Batch, batches, givenOf, inOrder, withoutRepeated } from './batch.ts'
import { insertion, insertions } from './insertion.ts'
import type { Upsert } from './request.ts'
import { buildKeys, buildRepeated } from './tree.ts'
import { answerable, describeBody, naming, refusedBody, type WriteRequest, type Writing } from './writing.ts'

export async function create(
  writing: Writing,
  request: WriteRequest,
  body: JsonBody,
  upsert: Upsert | null,
  keySetsMax: number,
): Promise<Answer> {
  switch (body.kind) {
    case 'object':
      return createOne(writing, request, body, upsert).catch(naming(request.table, body))
    case 'array':
      return createMany(writing, request, body, upsert, keySetsMax).catch(naming(request.table, body))
    default:
      throw refusedBody(describeBody(body), 'an object with the columns of a row, or an array of such objects')
  }
}

async function createOne(
  writing: Writing,
  request: WriteRequest,
  body: JsonObject,
  upsert: Upsert | null,
): Promise<Answer> {
  const { table, wanted } = request
  const columns = body.members.map(({ key }) => key).sort()
  const statement = (key: readonly string[]): BoundStatement<WriteStatement> =>
    insertion(writing, request, { columns, bytes: body.bytes, rows: 'one' }, upsert, { key })
  const answered = answerable(request, columns)
  // The address of a row tells its key.
  const hasKey = table.primaryKey.length > 0 && table.primaryKey.every(name => allows(answered, name))
  const minimal = isMinimal(request) || isNothing(answered)
  const answer = ({ rows, count }: Written): Answer =>
    respondCreatedRow({ table, rows, count, minimal, upsert: upsert !== null })
  return writing.writeOne(request, statement(hasKey ? table.primaryKey : NO_KEY)).then(answer, (error: unknown) => {
    // Who may write and not read the key gets no address of the row, but gets it written. Nothing of the first try is left.
    const isForMore = hasKey && (minimal || wanted.returning !== undefined)
    if (isForMore && error instanceof GatewayError && error.code === 'FORBIDDEN') {
      return writing.writeOne(request, statement(NO_KEY)).then(answer)
    }
    throw error
  })
}

const NO_KEY: readonly string[] = []

async function createMany(
  writing: Writing,
  request: WriteRequest,
  body: JsonArray,
  upsert: Upsert | null,
  keySetsMax: number,
): Promise<Answer> {
  let found = batches(body, keySetsMax)
  const silent = found.length > 0 && found.every(({ columns }) => isNothing(answerable(request, columns)))
  const minimal = isMinimal(request) || silent
  // Of rows with one key the first in the body counts, whichever statement it is in. Rows that are there already are left out of the answer; the key tells
  // which remain.
  const target = upsert?.existing === 'ignore' && found.length > 1 ? upsert.target : NO_KEY
  const keyOf = ({ columns }: Batch) => (target === NO_KEY ? NO_KEY : target.filter(name => columns.includes(name)))
  const keys = target === NO_KEY ? [] : await keysOf(writing, request, found, keyOf)
  if (target !== NO_KEY) found = withoutRepeated(found, keys, body)
  const statements = await insertions(writing, request, found, upsert, minimal ? () => NO_KEY : keyOf)
  // What is left alone is left alone twice as well.
  const once = upsert?.existing === 'update' ? upsert.target : null
  // In one statement PostgreSQL notices it, and does not say which row it speaks of.
  const explain = async (error: unknown): Promise<never> => {
    if (once !== null && isCardinality(error)) await refuseRepeated(writing, request, body, found, once)
    throw error
  }
  if (once !== null && found.length > 1) await refuseRepeated(writing, request, body, found, once)
  const written = statements.length === 0 ? [] : await writing.write(request, statements).catch(explain)
  const answered = written.map(({ rows }) => rows)
  const rows = inOrder(found, answered, (batch, answer) => placesOf(answer, batch, keys, target))
  const created = upsert === null || body.items.length === 0 || hasCreated(rows, minimal ? 0 : 1)
  const status = created ? 201 : 200
  return minimal
    ? respondNothing(
        status,
        'minimal',
        written.reduce((sum, { count }) => sum + count, 0),
      )
    : respondWrittenRows(status, rows)
}

/** By position in the body: the key that its row gives, as PostgreSQL prints it; nothing for a row that gives none or NULL, which equals no other. */
async function keysOf(
  writing: Writing,
  request: WriteRequest,
  found: readonly Batch[],
  keyOf: (batch: Batch) => readonly string[],
): Promise<readonly (string | undefined)[]> {
  const { table } = request
  const giving = found.filter(batch => keyOf(batch).length > 0)
  if (giving.length === 0) return []
  const read = await writing.readAll(
    request,
    giving.map(batch => {
      const given = keyOf(batch)
      const shape = new Shape(`keys ${table.resource}`)
      for (const name of given) shape.add(name)
      const value = shape.value(withArrayColumns(batch.bytes, table, given))
      return writing.plan(request, shape, context =>
        compile(buildKeys(table, given, value), context, { kind: 'read', form: 'columns' }),
      )
    }),
  )
  const keys: (string | undefined)[] = []
  for (const [index, batch] of giving.entries()) {
    const given = keyOf(batch)
    for (const [n, row] of (read[index] ?? []).entries()) {
      if (row.every(value => value !== null)) keys[batch.positions[n] ?? 0] = keyText(given, row)
    }
  }
  return keys
}

function keyText(given: readonly string[], values: Row): string {
  return JSON.stringify([given, values.map(String)])
}

/** Which rows of a batch were answered: they come in its order, each with its key behind the row and `created`. Null: nobody can tell. */
function placesOf(
  answered: readonly Row[],
  { positions, columns }: Batch,
  keys: readonly (string | undefined)[],
  target: readonly string[],
): readonly number[] | null {
  const given = target.filter(name => columns.includes(name))
  if (given.length === 0) return null
  const places: number[] = []
  let at = 0
  for (const row of answered) {
    const key = keyText(given, row.slice(2))
    while (at < positions.length && keys[positions[at] ?? 0] !== key) at++
    if (at === positions.length) return null
    places.push(at++)
  }
  return places
}

/** "Cardinality violation" (PostgreSQL manual, appendix A): a row would be changed twice; also a subquery of a trigger that has several rows. */
function isCardinality(error: unknown): boolean {
  return sqlstateOf(error) === '21000'
}

/** The list of columns is the more exact wish. */
function isMinimal({ wanted }: WriteRequest): boolean {
  return wanted.returned === 'minimal' && wanted.returning === undefined
}

function isNothing(answered: Columns): boolean {
  return answered !== 'any' && answered.size === 0
}

/** `at`: the column that says `t` for a row that was created. */
function hasCreated(rows: Written['rows'], at: number): boolean {
  return rows.some(row => row[at]?.toString() === 't')
}

/** Rows that leave the whole key to its defaults are new ones, whatever they are. */
async function refuseRepeated(
  writing: Writing,
  request: WriteRequest,
  body: JsonArray,
  found: readonly Batch[],
  target: readonly string[],
): Promise<void> {
  const { table } = request
  const given = givenOf(target, found)
  if (given.length === 0) return
  const shape = new Shape(`repeated ${table.resource}`)
  for (const name of given) shape.add(name)
  const value = shape.value(withArrayColumns(body.bytes, table, given))
  const statement = writing.plan(request, shape, context =>
    compile(buildRepeated(table, given, value), context, { kind: 'read', form: 'rows' }),
  )
  const [[repeated] = []] = await writing.readAll(request, [statement])
  if (repeated === undefined) return
  throw new GatewayError(
    'PARSE_ERROR',
    `the batch has several rows with ${String(repeated[0])}; an upsert takes each key once`,
  )
}
