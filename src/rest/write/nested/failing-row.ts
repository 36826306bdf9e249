/**
 * Finds the row of a statement that failed (docs/reference/writing.md#rules-of-related-rows). The failed
 * statement has ended the transaction, so the first attempt to write a part of the rows has it run again. In
 * that run, the parts are written in savepoints.
 */
import type { Table } from '../../../catalog/model.ts'
import { GatewayError } from '../../../errors.ts'
import { type Script, write } from '../../script.ts'
import type { StatementPart } from '../../steps.ts'
import { at, type GraphRow } from './graph.ts'

/** Rows that one statement writes. */
export interface RowGroup {
  readonly table: Table
  readonly rows: readonly GraphRow[]
  /** The list that the rows are in. */
  readonly path: string
  /** The statement for some of the rows. */
  part(rows: readonly GraphRow[]): StatementPart
}

/** The errors that can be caused by one row of several. */
const ROW_ERRORS: readonly string[] = ['PARSE_ERROR', 'QUERY_ERROR', 'FORBIDDEN', 'NOT_FOUND']

/** Adds the path of a row to an error that is about this row alone. */
type Explain = (error: unknown, row: GraphRow) => Script<unknown>

/** The error of statements, with the path of the first row that fails, or else of the list. */
export function* located(groups: readonly RowGroup[], error: unknown, explain: Explain): Script<unknown> {
  const [first] = groups
  if (!isOfRow(error) || first === undefined) return error
  const [only] = first.rows
  if (groups.length === 1 && first.rows.length === 1 && only !== undefined) return yield* explain(error, only)
  for (const group of groups) {
    const found = yield* failing(group, group.rows, explain)
    if (found !== null) return found
  }
  return at(first.path, translated(error, first.table))
}

/** The error of the first row that fails; null if none does. */
function* failing(group: RowGroup, rows: readonly GraphRow[], explain: Explain): Script<unknown> {
  const [only] = rows
  try {
    yield* write([group.part(rows)], true)
    return null
  } catch (error) {
    if (!isOfRow(error) || only === undefined) throw error
    if (rows.length === 1) return yield* explain(error, only)
    const middle = rows.length >> 1
    return (
      (yield* failing(group, rows.slice(0, middle), explain)) ?? (yield* failing(group, rows.slice(middle), explain))
    )
  }
}

function isOfRow(error: unknown): error is GatewayError {
  return error instanceof GatewayError && ROW_ERRORS.includes(error.code)
}

/** The error for a key that no row has, or none that belongs to the parent row. */
export function noSuchRow(table: Table): GatewayError {
  return new GatewayError(
    'NOT_FOUND',
    `"${table.resource}" has no row with this key that belongs to the parent row and that you can write`,
  )
}

/** A row that was not found does not belong to the parent row. */
export function translated(error: GatewayError, table: Table): GatewayError {
  return error.code === 'NOT_FOUND' ? noSuchRow(table) : error
}
