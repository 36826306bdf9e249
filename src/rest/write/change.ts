/** PATCH and DELETE, of the row that the path names or of those that the filters match (docs/reference/writing.md#many-rows-at-once). */
import { compile } from '../../compile/compile.ts'
import type { WriteAnswer } from '../../compile/print-write.ts'
import type { Answer } from '../../exchange.ts'
import type { JsonObject } from '../../json/json-body.ts'
import type { Expression, Field } from '../../language/tree/ast.ts'
import type { Written } from '../../run/run.ts'
import { withArrayColumns } from '../body/array-values.ts'
import { REFUSED_ITEMS_MAX, readJsonBody } from '../body/body.ts'
import type { FilterLimits } from '../parameters/filters.ts'
import { parseQueryString } from '../parameters/query-string.ts'
import { idParameters, keyIs, notFound, SELF } from '../resource.ts'
import { respondNothing, respondWrittenRow, respondWrittenRows } from '../respond.ts'
import { Shape } from '../shape.ts'
import { nextTurn } from '../turn.ts'
import { parseBulk, parseReturning } from './request.ts'
import { buildDel, buildSet } from './tree.ts'
import {
  answerable,
  columnKeys,
  describeBody,
  naming,
  refusedBody,
  type WriteRequest,
  type Writing,
} from './writing.ts'

type ChangeMethod = 'PATCH' | 'DELETE'

export async function changeOne(
  writing: Writing,
  request: WriteRequest,
  method: ChangeMethod,
  id: string,
): Promise<Answer> {
  const { table, wanted } = request
  const shape = new Shape(`${method} one ${table.resource}`)
  const where = keyIs(table, SELF, idParameters(table, id, shape))
  const { written, fields } = await change(writing, request, method, shape, where, NOTHING_BESIDE)
  if (written.count === 0) throw notFound(table, id)
  const row = written.rows[0]?.[0]
  if (fields.length === 0 || row === undefined || row === null)
    return respondNothing(204, wanted.returned, written.count)
  return respondWrittenRow(row)
}

export async function changeMany(
  writing: Writing,
  request: WriteRequest,
  method: ChangeMethod,
  limits: FilterLimits,
): Promise<Answer> {
  const { incoming, table, wanted } = request
  const shape = new Shape(`${method} many ${table.resource}`)
  const { filter, rowsMax } = parseBulk(parseQueryString(incoming.query), incoming.headers, shape, table, limits)
  const { written, fields } = await change(writing, request, method, shape, filter, { ...NOTHING_BESIDE, rowsMax })
  if (fields.length === 0) return respondNothing(204, wanted.returned, written.count)
  return respondWrittenRows(200, written.rows)
}

const NOTHING_BESIDE: WriteAnswer = { key: [], created: false, rowsMax: null }

interface Changed {
  readonly written: Written
  /** None: the rows are not answered. */
  readonly fields: readonly Field[]
}

async function change(
  writing: Writing,
  request: WriteRequest,
  method: ChangeMethod,
  shape: Shape,
  where: Expression,
  answer: WriteAnswer,
): Promise<Changed> {
  const { table, wanted } = request
  if (method === 'DELETE') {
    const fields = parseReturning(wanted, 'nothing', answerable(request, []), shape)
    const statement = writing.plan(request, shape, context =>
      compile(buildDel(table, where, fields), context, { kind: 'write', answer }),
    )
    return { written: await writing.writeOne(request, statement), fields }
  }
  const body = changesIn(request)
  if (request.incoming.isLarge) await nextTurn()
  const columns = body.members.map(({ key }) => key).sort()
  shape.add(`set ${columns.length}`)
  for (const name of columns) shape.add(name)
  const value = shape.value(withArrayColumns(body.bytes, table, columns))
  const fields = parseReturning(wanted, 'rows', answerable(request, columns), shape)
  const statement = writing.plan(request, shape, context =>
    compile(buildSet(table, columns, value, where, fields), context, { kind: 'write', answer }),
  )
  return { written: await writing.writeOne(request, statement).catch(naming(table, body)), fields }
}

/** A PATCH body: an object with at least one column (docs/reference/writing.md#change). */
function changesIn(request: WriteRequest): JsonObject {
  const body = readJsonBody(request.incoming, REFUSED_ITEMS_MAX, columnKeys(request))
  if (body.kind === 'object' && body.members.length > 0) return body
  const what = body.kind === 'object' ? 'an object without columns' : describeBody(body)
  throw refusedBody(what, 'an object with the columns to change')
}
