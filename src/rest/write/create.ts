/**
 * `POST /api/{table}`: inserts (docs/reference/writing.md#create) or upserts
 * (docs/reference/writing.md#upsert) one row or an array of rows.
 */
import { allowsAll, type ColumnSet } from '../../access/rights.ts'
import { GatewayError } from '../../errors.ts'
import type { JsonArray, JsonBody, ObjectOutline } from '../../json/json-body.ts'
import type { ResultRow, WriteResult } from '../../run/run.ts'
import { withTextColumns } from '../body/text-values.ts'
import { type CreatedOutcome, respondCreatedRow, respondNothing, respondWrittenRows } from '../respond.ts'
import { sqlstateOf } from '../sqlstate.ts'
import type { RequestStep, StatementPart } from '../steps.ts'
import { Values } from '../values.ts'
import { batches, givenOf, inBodyOrder, type KeySetBatch, withoutDuplicates } from './batch.ts'
import { newTag, returnedVersion } from './precondition.ts'
import { type BodyTree, type InsertTree, type ParsedUpsert, parseReturning } from './request.ts'
import { answerable, describeBody, explaining, finished, refusedBody, type Writing, writeResultOf } from './writing.ts'

/**
 * Inserts or upserts the rows of a body.
 * @throws {GatewayError} `PARSE_ERROR` for a body that is neither an object nor an array.
 */
export function create(writing: Writing, body: JsonBody, upsert: ParsedUpsert | null, keySetsMax: number): RequestStep {
  switch (body.kind) {
    case 'object':
      return createOne(writing, body, upsert)
    case 'array':
      return { ...new BatchCreation(writing, body, upsert, keySetsMax).toStep(), explain: explaining(writing, body) }
    default:
      throw refusedBody(describeBody(body), 'an object with the columns of a row, or an array of such objects')
  }
}

/** Rows of a body that have exactly these columns, which are sorted. */
interface Inserted {
  readonly columns: readonly string[]
  readonly bytes: Buffer
  readonly rows: 'one' | 'many'
}

/** The statement that inserts rows. The values of the columns in `key` are returned after each row. */
export function insertion(
  writing: Writing,
  { columns, bytes, rows }: Inserted,
  upsert: ParsedUpsert | null,
  key: readonly string[],
): StatementPart {
  const { table, view, wanted } = writing
  const values = new Values()
  const value = values.add(withTextColumns(bytes, table, columns, view.limits))
  const returning = parseReturning(wanted, 'rows', answerable(writing, columns), values)
  const tree: InsertTree = { kind: 'insert', table, columns, value, rows, upsert, key, returning }
  return { tree, values }
}

function createOne(writing: Writing, body: ObjectOutline, upsert: ParsedUpsert | null): RequestStep {
  const { table, wanted } = writing
  const columns = body.members.map(({ key }) => key).sort()
  const answered = answerable(writing, columns)
  // The `Location` of a row reveals its key, so the key must be readable.
  const hasKey = table.primaryKey.length > 0 && allowsAll(answered, table.primaryKey)
  const minimal = isMinimal(writing) || isNothing(answered)
  const write = (key: readonly string[]): RequestStep & { readonly runs: 'write' } => ({
    runs: 'write',
    parts: [insertion(writing, { columns, bytes: body.bytes, rows: 'one' }, upsert, key)],
    respond([written]) {
      const { rows, count } = writeResultOf(written)
      const outcome: CreatedOutcome = {
        table,
        rows,
        count,
        minimal,
        upsert: upsert !== null,
        hasVersion: key.length > table.primaryKey.length,
        tagOf: (values, version) => (written === undefined ? null : newTag(writing, written, values, version)),
      }
      return finished(writing, written, respondCreatedRow(outcome))
    },
    explain: explaining(writing, body),
  })
  // A caller who can write but not read the key gets the row inserted without a `Location`. The first attempt
  // is rolled back.
  const isForMore = hasKey && (minimal || wanted.returning !== undefined)
  const key = [...table.primaryKey, ...returnedVersion(writing)]
  if (!isForMore) return write(hasKey ? key : NO_KEY)
  return {
    failed(error) {
      if (error instanceof GatewayError && error.code === 'FORBIDDEN') return write(NO_KEY)
      throw error
    },
    ...write(key),
  }
}

const NO_KEY: readonly string[] = []

/** Inserts the rows of an array: one statement for each set of columns, all in one transaction. */
class BatchCreation {
  readonly #writing: Writing
  readonly #body: JsonArray
  readonly #upsert: ParsedUpsert | null
  readonly #minimal: boolean
  readonly #found: readonly KeySetBatch[]
  /** The columns that identify equal rows across statements; empty if equal rows make no difference. */
  readonly #target: readonly string[]

  constructor(writing: Writing, body: JsonArray, upsert: ParsedUpsert | null, keySetsMax: number) {
    const found = batches(body, keySetsMax)
    const silent = found.length > 0 && found.every(({ columns }) => isNothing(answerable(writing, columns)))
    this.#writing = writing
    this.#body = body
    this.#upsert = upsert
    this.#minimal = isMinimal(writing) || silent
    this.#found = found
    // The first of several rows with the same key applies, whichever statement it is in. Existing rows are
    // missing from the response, and the key shows which rows remain.
    this.#target = upsert?.existing === 'ignore' && found.length > 1 ? upsert.target : NO_KEY
  }

  toStep(): RequestStep {
    const giving = this.#found.filter(batch => this.#keyOf(batch).length > 0)
    if (giving.length === 0) return this.#insert(this.#found, [])
    return {
      runs: 'read',
      parts: giving.map(batch => this.#part('keys', this.#keyOf(batch), batch.bytes)),
      respond: results => {
        const keys = this.#keysIn(results, giving)
        return this.#insert(withoutDuplicates(this.#found, keys, this.#body), keys)
      },
    }
  }

  #keyOf({ columns }: KeySetBatch): readonly string[] {
    return this.#target.filter(name => columns.includes(name))
  }

  #part(kind: BodyTree['kind'], columns: readonly string[], bytes: Buffer): StatementPart {
    const { table, view } = this.#writing
    const values = new Values()
    const value = values.add(withTextColumns(bytes, table, columns, view.limits))
    return { tree: { kind, table, columns, value }, values }
  }

  /**
   * The keys of the rows as PostgreSQL prints them, by position in the body. Undefined for a row without a
   * key or with NULL in it, because such a row equals no other.
   */
  #keysIn(results: readonly (readonly ResultRow[])[], giving: readonly KeySetBatch[]): readonly (string | undefined)[] {
    const keys: (string | undefined)[] = []
    for (const [index, batch] of giving.entries()) {
      for (const [n, row] of (results[index] ?? []).entries()) {
        if (row.every(value => value !== null)) keys[batch.positions[n] ?? 0] = keyText(this.#keyOf(batch), row)
      }
    }
    return keys
  }

  #insert(found: readonly KeySetBatch[], keys: readonly (string | undefined)[]): RequestStep {
    const write = (statements: readonly StatementPart[]): RequestStep => ({
      runs: 'write',
      parts: statements,
      respond: written => this.#answer(found, written, keys),
      // PostgreSQL detects equal keys within one statement but does not report the row.
      failed: error => {
        const raise = () => {
          throw error
        }
        return isCardinality(error) ? this.#refuseRepeated(found, raise) : raise()
      },
    })
    return {
      runs: 'nothing',
      parts: this.#insertions(found),
      respond: statements => {
        if (found.length === 0) return this.#answer(found, [], keys)
        return found.length > 1 ? this.#refuseRepeated(found, () => write(statements)) : write(statements)
      },
    }
  }

  *#insertions(found: readonly KeySetBatch[]): Generator<StatementPart> {
    const upsert = this.#upsert
    for (const batch of found) {
      const key = this.#minimal ? NO_KEY : this.#keyOf(batch)
      yield insertion(this.#writing, { ...batch, rows: 'many' }, upsert, key)
    }
    // An empty array is checked like any other: the columns to return and those of the key.
    const none: Inserted = { columns: [], bytes: NO_ROW, rows: 'one' }
    if (found.length === 0) yield insertion(this.#writing, none, upsert && { ...upsert, existing: 'ignore' }, NO_KEY)
  }

  #answer(found: readonly KeySetBatch[], written: readonly WriteResult[], keys: readonly (string | undefined)[]) {
    const minimal = this.#minimal
    const answered = written.map(({ rows }) => rows)
    const rows = inBodyOrder(found, answered, (batch, answer) => placesOf(answer, batch, keys, this.#target))
    const created = this.#upsert === null || this.#body.items.length === 0 || hasCreated(rows, minimal ? 0 : 1)
    const status = created ? 201 : 200
    const count = written.reduce((sum, one) => sum + one.count, 0)
    const answer = minimal ? respondNothing(status, 'minimal', count) : respondWrittenRows(status, rows)
    return finished(this.#writing, written[0], answer)
  }

  /**
   * Rejects an upsert with several rows of the same key. For `ignore` repeated rows are harmless. Rows that
   * use the defaults of the whole key are always new.
   */
  #refuseRepeated(found: readonly KeySetBatch[], otherwise: () => RequestStep): RequestStep {
    const given = this.#upsert?.existing === 'update' ? givenOf(this.#upsert.target, found) : NO_KEY
    if (given.length === 0) return otherwise()
    return {
      runs: 'read',
      parts: [this.#part('repeated', given, this.#body.bytes)],
      respond([rows]) {
        const repeated = rows?.[0]
        if (repeated === undefined) return otherwise()
        throw new GatewayError(
          'PARSE_ERROR',
          `the array has several rows with ${String(repeated[0])}; a key can appear only once in an upsert`,
        )
      },
    }
  }
}

const NO_ROW = Buffer.from('{}')

function keyText(given: readonly string[], values: ResultRow): string {
  return JSON.stringify([given, values.map(String)])
}

/**
 * The position in the body of each returned row; null if the positions cannot be determined. The rows are in
 * the order of the body, and each is followed by `created` and its key.
 */
function placesOf(
  answered: readonly ResultRow[],
  { positions, columns }: KeySetBatch,
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

/**
 * Reports whether this is a cardinality violation (PostgreSQL manual, appendix A): the statement would change
 * a row twice, or a subquery of a trigger returned several rows.
 */
function isCardinality(error: unknown): boolean {
  return sqlstateOf(error) === '21000'
}

/** Reports whether the response has no rows. A list of columns takes precedence over `return=minimal`. */
function isMinimal({ wanted }: Writing): boolean {
  return wanted.returned === 'minimal' && wanted.returning === undefined
}

function isNothing(answered: ColumnSet): boolean {
  return answered !== 'any' && answered.size === 0
}

/** Reports whether a row was created; column `at` is `t` for such a row. */
function hasCreated(rows: WriteResult['rows'], at: number): boolean {
  return rows.some(row => row[at]?.toString() === 't')
}
