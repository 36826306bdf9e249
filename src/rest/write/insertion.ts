/** The statements that insert the rows of a body. */
import { compile } from '../../compile/compile.ts'
import type { WriteAnswer } from '../../compile/print-write.ts'
import type { BoundStatement, WriteStatement } from '../../compile/statement.ts'
import { withArrayColumns } from '../body/array-values.ts'
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

/** `key`: columns whose values are answered beside the row. */
export function insertion(
  writing: Writing,
  request: WriteRequest,
  { columns, bytes, rows }: Inserted,
  upsert: Upsert | null,
  { key, use = 'kept' }: { readonly key: readonly string[]; readonly use?: PlanUse },
): BoundStatement<WriteStatement> {
  const { table, wanted } = request
  const answer: WriteAnswer = { key, created: upsert !== null, rowsMax: null }
  const shape = new Shape(`insert ${table.resource}`)
  shape.add(`${rows} ${key.length} ${upsert?.existing ?? ''} ${columns.length} ${upsert?.target.length ?? 0}`)
  for (const name of [...columns, ...(upsert?.target ?? []), ...key]) shape.add(name)
  const value = shape.value(withArrayColumns(bytes, table, columns))
  const returning = parseReturning(wanted, 'rows', answerable(request, columns), shape)
  return writing.plan(
    request,
    shape,
    context =>
      compile(buildAdd(table, columns, { value, rows }, upsert, returning), context, { kind: 'write', answer }),
    use,
  )
}

/** Plans of one body that are kept for later ones. */
const KEPT_AT_ONCE = 100

/** Statements planned before other requests get a turn; planning one takes some milliseconds at worst. */
const PLANNED_AT_ONCE = 5

/** Checks what else is asked with an empty array: the columns to return and those of the key are looked up as for any other. */
function refuseMistaken(writing: Writing, request: WriteRequest, upsert: Upsert | null): void {
  const row: Inserted = { columns: [], bytes: NO_ROW, rows: 'one' }
  insertion(writing, request, row, upsert && { ...upsert, existing: 'ignore' }, { key: [] })
}

const NO_ROW = Buffer.from('{}')

/** The statement of each batch. `keyOf`: as `key` of an insertion. */
export async function insertions(
  writing: Writing,
  request: WriteRequest,
  found: readonly Batch[],
  upsert: Upsert | null,
  keyOf: (batch: Batch) => readonly string[],
): Promise<readonly BoundStatement<WriteStatement>[]> {
  if (found.length === 0) refuseMistaken(writing, request, upsert)
  const statements: BoundStatement<WriteStatement>[] = []
  for (const batch of found) {
    const use = statements.length < KEPT_AT_ONCE ? 'kept' : 'once'
    statements.push(insertion(writing, request, { ...batch, rows: 'many' }, upsert, { key: keyOf(batch), use }))
    // Each is planned from nothing: a body of many key sets must not keep other requests waiting.
    if (statements.length % PLANNED_AT_ONCE === 0) await nextTurn()
  }
  return statements
}
