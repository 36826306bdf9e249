/** The statements that insert the rows of a body. */
import { checkWrite } from '../../access/check.ts'
import { type BoundStatement, printWrite, type WriteAnswer } from '../../run/statement.ts'
import { withArrayColumns } from '../array-values.ts'
import { Shape } from '../shape.ts'
import { nextTurn } from '../turn.ts'
import type { Batch } from './batch.ts'
import { parseReturning, type Upsert } from './request.ts'
import { buildAdd } from './tree.ts'
import { answerable, type PlanUse, type WriteRequest, type Writing } from './writing.ts'

/** What is inserted: the value of a body that has exactly these columns. */
interface Inserted {
  /** Sorted. */
  readonly columns: readonly string[]
  readonly bytes: Buffer
  readonly rows: 'one' | 'many'
}

/** `key`: whether the answer has the values of the primary key besides. */
export function insertion(
  writing: Writing,
  request: WriteRequest,
  { columns, bytes, rows }: Inserted,
  upsert: Upsert | null,
  { key, use = 'kept' }: { readonly key: boolean; readonly use?: PlanUse },
): BoundStatement {
  const { table, wanted } = request
  const answer: WriteAnswer = { key, created: upsert !== null, rowsMax: null }
  const shape = new Shape(`insert ${table.resource}`)
  shape.add(`${rows} ${key ? 'key' : ''} ${upsert?.existing ?? ''} ${columns.length} ${upsert?.target.length ?? 0}`)
  for (const name of [...columns, ...(upsert?.target ?? [])]) shape.add(name)
  const value = shape.value(withArrayColumns(bytes, table, columns))
  const returning = parseReturning(wanted, 'rows', answerable(request, columns), shape)
  return writing.plan(
    request,
    shape,
    context => printWrite(checkWrite(buildAdd(table, columns, { value, rows }, upsert, returning), context), answer),
    use,
  )
}

/** Plans of one body that are kept for later ones. */
const KEPT_AT_ONCE = 100

/** Statements planned before other requests get a turn; planning one takes some milliseconds at worst. */
const PLANNED_AT_ONCE = 5

/** No row says nothing is wrong with what was asked besides: the columns to return, and those of the key, are looked up as for any other. */
function refuseMistaken(writing: Writing, request: WriteRequest, upsert: Upsert | null): void {
  const row: Inserted = { columns: [], bytes: NO_ROW, rows: 'one' }
  insertion(writing, request, row, upsert && { ...upsert, existing: 'ignore' }, { key: false })
}

const NO_ROW = Buffer.from('{}')

/** One statement for all rows of a batch; rows of defaults alone need one each. */
export async function insertions(
  writing: Writing,
  request: WriteRequest,
  found: readonly Batch[],
  upsert: Upsert | null,
): Promise<readonly BoundStatement[]> {
  if (found.length === 0) refuseMistaken(writing, request, upsert)
  const known = new Map<string, BoundStatement>()
  const statements: BoundStatement[] = []
  for (const { columns, bytes, count } of found) {
    const form = columns.join('\0')
    const before = known.get(form)
    const statement =
      before === undefined
        ? insertion(writing, request, { columns, bytes, rows: columns.length === 0 ? 'one' : 'many' }, upsert, {
            key: false,
            use: known.size < KEPT_AT_ONCE ? 'kept' : 'once',
          })
        : withBody(before, withArrayColumns(bytes, request.table, columns))
    const times = columns.length === 0 ? count : 1
    for (let time = 0; time < times; time++) statements.push(statement)
    if (before !== undefined) continue
    known.set(form, statement)
    // Each was planned from nothing: a body of thousands of forms must not keep everybody else waiting.
    if (known.size % PLANNED_AT_ONCE === 0) await nextTurn()
  }
  return statements
}

/** The same statement for other rows: the body is `$1` of the tree. */
function withBody({ statement, values }: BoundStatement, bytes: Buffer): BoundStatement {
  const isBody = (index: number): boolean => {
    const parameter = statement.parameters[index]
    return parameter !== undefined && 'key' in parameter && parameter.key === 1
  }
  return { statement, values: values.map((value, index) => (isBody(index) ? bytes : value)) }
}
