/** Answers the writes of the API: create, upsert, change, delete, of one row or many (specification 4.1, 4.5; decisions 4). */
import { type CheckContext, checkRead, checkWrite } from '../access/check.ts'
import type { Catalog, Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Answer, Incoming } from '../http/types.ts'
import type { Identity } from '../identity/identity.ts'
import type { Expression, Field } from '../language/ast.ts'
import type { Runner, Running, Written } from '../run/run.ts'
import { type BoundStatement, printRead, printWrite, type Statement, type WriteAnswer } from '../run/statement.ts'
import { withArrayColumns } from './array-values.ts'
import { bindValues } from './bind.ts'
import { readJsonBody } from './body.ts'
import { nameRefusedValue } from './body-error.ts'
import type { FilterLimits } from './filters.ts'
import { bytesOf, type JsonArray, type JsonObject, type JsonType } from './json-body.ts'
import { methodNotAllowed } from './method.ts'
import type { Route } from './path.ts'
import { createPlans, type Plan } from './plans.ts'
import { parseQueryString } from './query-string.ts'
import { idParameters, notFound, tableNamed } from './resource.ts'
import { respondChanged, respondCreated, respondMinimal, respondRows } from './respond.ts'
import { Shape } from './shape.ts'
import { keyIs, SELF } from './tree.ts'
import {
  parseBulk,
  parseReturning,
  parseUpsert,
  parseWanted,
  refuseOthers,
  type Upsert,
  type Wanted,
} from './write-request.ts'
import { buildAdd, buildDel, buildRepeated, buildSet } from './write-tree.ts'

export interface WriterParts {
  readonly catalog: () => Catalog
  readonly runner: Runner
  readonly limits: FilterLimits & {
    /** Rows in one batch; 0: no limit. */
    readonly maxBatchRows: number
  }
  readonly searchLanguage: string
}

export type WriteMethod = 'POST' | 'PATCH' | 'DELETE'

export type WriteRoute = Extract<Route, { readonly kind: 'list' | 'one' }>

export type Writer = (incoming: Incoming, method: WriteMethod, route: WriteRoute, identity: Identity) => Promise<Answer>

interface WritePlan extends Plan {
  readonly write: Statement
}

/** A request on its way: what every step needs to know of it. */
interface Request {
  readonly incoming: Incoming
  readonly identity: Identity
  readonly catalog: Catalog
  readonly table: Table
  readonly wanted: Wanted
}

export function createWriter(parts: WriterParts): Writer {
  const { runner, limits, searchLanguage } = parts
  const plans = createPlans<WritePlan>()
  const itemsMax = limits.maxBatchRows === 0 ? Number.POSITIVE_INFINITY : limits.maxBatchRows

  /** `once`: a plan of which there are too many in one request to keep them; they would push out everybody else's. */
  function planned(
    catalog: Catalog,
    shape: Shape,
    make: (context: CheckContext) => Statement,
    use: 'kept' | 'once' = 'kept',
  ): BoundStatement {
    if (use === 'once') return bindValues(make({ catalog, searchLanguage }), shape.values)
    const plan = plans.of(catalog, shape.key, () => {
      const write = make({ catalog, searchLanguage })
      return { write, statements: [write] }
    })
    return bindValues(plan.write, shape.values)
  }

  /** Unless the client goes away first: what nobody hears of is undone. */
  function run<T>({ incoming }: Request, running: Running<T>): Promise<T> {
    incoming.onAbort(() => running.cancel())
    return running.result
  }

  async function runOne(request: Request, statement: BoundStatement): Promise<Written> {
    const [written] = await run(request, runner.write(request.identity, [statement]))
    if (written === undefined) throw new Error('a statement has a result')
    return written
  }

  // ---- POST --------------------------------------------------------------------------------------------------

  async function create(request: Request): Promise<Answer> {
    const { incoming, table } = request
    const upsert = parseUpsert(incoming.headers, table)
    if (upsert !== null && !table.writable.update) throw notWritable(table, 'POST with X-Upsert')
    const body = readJsonBody(incoming, itemsMax)
    switch (body.kind) {
      case 'object':
        return createOne(request, body, upsert).catch(naming(table, body))
      case 'array':
        return createMany(request, body, upsert).catch(naming(table, body))
      default:
        throw new GatewayError(
          'PARSE_ERROR',
          `the body is ${body.kind === 'empty' ? 'empty' : named(body.type)}; send an object with the columns of a row, or an array of such objects`,
        )
    }
  }

  async function createOne(request: Request, body: JsonObject, upsert: Upsert | null): Promise<Answer> {
    const { table } = request
    const columns = body.members.map(({ key }) => key).sort()
    const bytes = withArrayColumns(body.bytes, table, columns)
    const statement = (key: boolean): BoundStatement =>
      insertion(request, columns, { bytes, rows: 'one' }, upsert, { ...answerOf(upsert), key })
    const hasKey = table.primaryKey.length > 0
    const { returned, returning } = request.wanted
    const minimal = returned === 'minimal' && returning === undefined
    const { rows, count } = await runOne(request, statement(hasKey)).catch((error: unknown) => {
      // Who may write and not read the key gets no address of the row, but gets it written. Nothing of the first try is left.
      const isForMore = hasKey && (minimal || returning !== undefined)
      if (isForMore && error instanceof GatewayError && error.code === 'FORBIDDEN') {
        return runOne(request, statement(false))
      }
      throw error
    })
    return respondCreated({ table, rows, count, minimal, upsert: upsert !== null })
  }

  async function createMany(request: Request, body: JsonArray, upsert: Upsert | null): Promise<Answer> {
    const found = batches(body)
    const statements = await insertions(request, found, upsert)
    const minimal = request.wanted.returned === 'minimal' && request.wanted.returning === undefined
    // What is left alone is left alone twice as well.
    if (upsert?.existing === 'update' && statements.length > 1)
      await refuseRepeated(request, body, found, upsert.target)
    const written = statements.length === 0 ? [] : await run(request, runner.write(request.identity, statements))
    const rows = written.flatMap(result => result.rows)
    const created = upsert === null || body.items.length === 0 || hasCreated(rows, minimal ? 0 : 1)
    return minimal ? respondMinimal(created ? 201 : 200) : respondRows(created ? 201 : 200, rows)
  }

  /** One statement for all rows of a batch; rows of defaults alone need one each. */
  async function insertions(
    request: Request,
    found: readonly Batch[],
    upsert: Upsert | null,
  ): Promise<readonly BoundStatement[]> {
    const known = new Map<string, BoundStatement>()
    const statements: BoundStatement[] = []
    for (const { columns, bytes: sent, count } of found) {
      const bytes = withArrayColumns(sent, request.table, columns)
      const rows = columns.length === 0 ? 'one' : 'many'
      const key = columns.join('\0')
      const before = known.get(key)
      const use = known.size < KEPT_AT_ONCE ? 'kept' : 'once'
      const answer = { ...answerOf(upsert), key: false }
      const statement = before ?? insertion(request, columns, { bytes, rows }, upsert, answer, use)
      if (before === undefined) {
        known.set(key, statement)
        // Each was planned from nothing: a batch of thousands of forms must not keep everybody else waiting.
        if (known.size % PLANNED_AT_ONCE === 0) await nextTurn()
      }
      const bound = before === undefined ? statement : withBody(statement, bytes)
      if (columns.length > 0) statements.push(bound)
      else for (let row = 0; row < count; row++) statements.push(bound)
    }
    return statements
  }

  function insertion(
    { catalog, table, wanted }: Request,
    columns: readonly string[],
    body: { readonly bytes: Buffer; readonly rows: 'one' | 'many' },
    upsert: Upsert | null,
    answer: WriteAnswer,
    use: 'kept' | 'once' = 'kept',
  ): BoundStatement {
    const shape = new Shape(`insert ${table.resource}`)
    shape.add(
      `${body.rows} ${answer.key ? 'key' : ''} ${upsert?.existing ?? ''} ${columns.length} ${upsert?.target.length ?? 0}`,
    )
    for (const name of [...columns, ...(upsert?.target ?? [])]) shape.add(name)
    const value = shape.value(body.bytes)
    const returning = parseReturning(wanted, 'rows', shape)
    const make = (context: CheckContext): Statement =>
      printWrite(checkWrite(buildAdd(table, columns, { value, rows: body.rows }, upsert, returning), context), answer)
    return planned(catalog, shape, make, use)
  }

  /** Rows that leave the whole key to its defaults are new ones, whatever they are. */
  async function refuseRepeated(
    request: Request,
    body: JsonArray,
    found: readonly Batch[],
    target: readonly string[],
  ): Promise<void> {
    const { catalog, table } = request
    const given = givenOf(target, found)
    if (given.length === 0) return
    const shape = new Shape(`repeated ${table.resource}`)
    for (const name of given) shape.add(name)
    const value = shape.value(withArrayColumns(body.bytes, table, given))
    const statement = planned(catalog, shape, context =>
      printRead(checkRead(buildRepeated(table, given, value), context), 'without keys'),
    )
    const [repeated] = await run(request, runner.read(request.identity, [statement]))
    if (repeated?.length === 0) return
    throw new GatewayError(
      'PARSE_ERROR',
      `the batch has several rows with ${String(repeated?.[0]?.[0])}; an upsert takes each key once`,
    )
  }

  // ---- PATCH and DELETE --------------------------------------------------------------------------------------

  async function changeOne(request: Request, method: 'PATCH' | 'DELETE', id: string): Promise<Answer> {
    const { table, wanted } = request
    const shape = new Shape(`${method} one ${table.resource}`)
    const where = keyIs(table, SELF, idParameters(table, id, shape))
    const { written, fields } = await change(request, method, shape, where, NOTHING_BESIDE)
    if (written.count === 0) throw notFound(table, id)
    const row = written.rows[0]?.[0]
    if (fields.length === 0 || row === undefined || row === null) return respondMinimal(204, wanted.returned)
    return respondChanged(row)
  }

  async function changeMany(request: Request, method: 'PATCH' | 'DELETE'): Promise<Answer> {
    const { incoming, table, wanted } = request
    const shape = new Shape(`${method} many ${table.resource}`)
    const { filter, rowsMax } = parseBulk(parseQueryString(incoming.query), incoming.headers, shape, table, limits)
    const { written, fields } = await change(request, method, shape, filter, { ...NOTHING_BESIDE, rowsMax })
    if (fields.length === 0) return respondMinimal(204, wanted.returned)
    return respondRows(200, written.rows)
  }

  async function change(
    request: Request,
    method: 'PATCH' | 'DELETE',
    shape: Shape,
    where: Expression,
    answer: WriteAnswer,
  ): Promise<{ readonly written: Written; readonly fields: readonly Field[] }> {
    const { catalog, table, wanted, incoming } = request
    if (method === 'DELETE') {
      const fields = parseReturning(wanted, 'nothing', shape)
      const statement = planned(catalog, shape, context =>
        printWrite(checkWrite(buildDel(table, where, fields), context), answer),
      )
      return { written: await runOne(request, statement), fields }
    }
    const body = changesIn(incoming)
    const columns = body.members.map(({ key }) => key).sort()
    shape.add(`set ${columns.length}`)
    for (const name of columns) shape.add(name)
    const value = shape.value(withArrayColumns(body.bytes, table, columns))
    const fields = parseReturning(wanted, 'rows', shape)
    const statement = planned(catalog, shape, context =>
      printWrite(checkWrite(buildSet(table, columns, value, where, fields), context), answer),
    )
    return { written: await runOne(request, statement).catch(naming(table, body)), fields }
  }

  return async (incoming, method, route, identity) => {
    const catalog = parts.catalog()
    const table = tableNamed(catalog, route.table)
    const parameters = parseQueryString(incoming.query)
    const request: Request = { incoming, identity, catalog, table, wanted: parseWanted(parameters, incoming.headers) }
    if (!takes(table, method)) throw notWritable(table, method)
    if (route.kind === 'one') {
      if (method === 'POST') throw methodNotAllowed(incoming, ['GET', 'HEAD', 'PATCH', 'DELETE'])
      refuseOthers(parameters, `${method} of one row`)
      return changeOne(request, method, route.id)
    }
    if (method !== 'POST') return changeMany(request, method)
    refuseOthers(parameters, 'POST')
    return create(request)
  }
}

function naming(table: Table, body: JsonObject | JsonArray): (error: unknown) => never {
  return error => {
    throw nameRefusedValue(error, table, body)
  }
}

/** Plans of one batch that are kept for later ones. */
const KEPT_AT_ONCE = 100

/**
 * The columns of the target that the rows give. What they leave out is the same default for all; where only some of them leave it out, nobody can tell from
 * the body which rows have the same key.
 */
function givenOf(target: readonly string[], found: readonly Batch[]): readonly string[] {
  const givenBy = ({ columns }: Batch) => target.filter(name => columns.includes(name))
  const sets = found.map(givenBy).filter(given => given.length > 0)
  const [first = []] = sets
  if (sets.every(given => isSame(given, first))) return first
  throw new GatewayError(
    'PARSE_ERROR',
    `the rows give different columns of the key ${target.join(',')}; in one upsert give the same of them in every row`,
  )
}

/** Statements planned before other requests get a turn. */
const PLANNED_AT_ONCE = 50

function nextTurn(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

/** The same statement for other rows: the body is `$1` of the tree. */
function withBody({ statement, values }: BoundStatement, bytes: Buffer): BoundStatement {
  const isBody = (index: number): boolean => {
    const parameter = statement.parameters[index]
    return parameter !== undefined && 'key' in parameter && parameter.key === 1
  }
  return { statement, values: values.map((value, index) => (isBody(index) ? bytes : value)) }
}

const NOTHING_BESIDE: WriteAnswer = { key: false, created: false, rowsMax: null }

function answerOf(upsert: Upsert | null): Omit<WriteAnswer, 'key'> {
  return { created: upsert !== null, rowsMax: null }
}

/** A PATCH body: an object with at least one column (decisions 4). */
function changesIn(incoming: Incoming): JsonObject {
  const body = readJsonBody(incoming, Number.POSITIVE_INFINITY)
  if (body.kind === 'object' && body.members.length > 0) return body
  const what =
    body.kind === 'object'
      ? 'an object without columns'
      : body.kind === 'empty'
        ? 'empty'
        : named(body.kind === 'array' ? 'array' : body.type)
  throw new GatewayError('PARSE_ERROR', `the body is ${what}; send an object with the columns to change`)
}

/** Neighbours of a batch that have the same keys. */
interface Batch {
  /** Sorted. */
  readonly columns: readonly string[]
  /** A JSON array of these rows. */
  readonly bytes: Buffer
  readonly count: number
}

/**
 * A missing key takes the column's default, and only a statement that does not name the column can make it do so: a batch becomes as many statements
 * as its rows change their keys, in the order given, all in one transaction.
 */
function batches(body: JsonArray): readonly Batch[] {
  const found: Batch[] = []
  const { items } = body
  let from = 0
  let columns: readonly string[] = []
  const end = (to: number) => {
    const first = items[from]
    const last = items[to - 1]
    if (first === undefined || last === undefined) return
    const whole = from === 0 && to === items.length
    const bytes = whole ? body.bytes : inBrackets(bytesOf(body, { ...first, end: last.end }))
    found.push({ columns, bytes, count: to - from })
  }
  items.forEach((item, index) => {
    if (item.type !== 'object') {
      throw new GatewayError(
        'PARSE_ERROR',
        `item ${index + 1} of the array is ${named(item.type)}; every item must be an object with the columns of a row`,
      )
    }
    if (index > 0 && item.keys === items[index - 1]?.keys) return
    const sorted = [...item.keys].sort()
    if (index > 0 && isSame(sorted, columns)) return
    end(index)
    from = index
    columns = sorted
  })
  end(items.length)
  return found
}

/** `an array`, `a string`, `null`. */
function named(type: JsonType): string {
  if (type === 'null') return type
  return `${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type}`
}

const OPEN = Buffer.from('[')
const CLOSE = Buffer.from(']')

function inBrackets(bytes: Buffer): Buffer {
  return Buffer.concat([OPEN, bytes, CLOSE])
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((name, index) => name === b[index])
}

const NEEDS = { POST: 'insert', PATCH: 'update', DELETE: 'delete' } as const

function takes(table: Table, method: WriteMethod): boolean {
  return table.writable[NEEDS[method]]
}

function notWritable(table: Table, what: string): GatewayError {
  const methods = (['POST', 'PATCH', 'DELETE'] as const).filter(method => takes(table, method))
  return new GatewayError('METHOD_NOT_ALLOWED', `"${table.resource}" is a ${table.kind} that takes no ${what}`, {
    headers: { Allow: ['GET', 'HEAD', ...methods].join(', ') },
  })
}

/** `at`: the column that says `t` for a row that was created. */
function hasCreated(rows: Written['rows'], at: number): boolean {
  return rows.some(row => row[at]?.toString() === 't')
}
