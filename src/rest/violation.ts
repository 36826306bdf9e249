/** The `details` of a constraint that a write violated: its kind and its columns, never a value of a row. */
import { allows, type View } from '../access/rights.ts'
import type { Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'

/** Class 23, integrity constraint violation (PostgreSQL manual, appendix A). */
const KIND_OF: ReadonlyMap<string, ViolationKind> = new Map([
  ['23001', 'foreign_key'],
  ['23502', 'not_null'],
  ['23503', 'foreign_key'],
  ['23505', 'unique'],
  ['23514', 'check'],
  ['23P01', 'exclusion'],
])

export type ViolationKind = 'unique' | 'foreign_key' | 'check' | 'not_null' | 'exclusion'

interface DatabaseDetails {
  readonly sqlstate: string
  readonly table: string | null
  readonly column: string | null
  readonly constraint: string | null
}

/**
 * The error with `kind` and `columns` among its details; any other error as it is. PostgreSQL's own text about the columns (DETAIL) has the values of
 * rows in it, so the columns come from the catalogue.
 */
export function describeViolation(error: unknown, view: View): unknown {
  if (!(error instanceof GatewayError) || error.code !== 'QUERY_ERROR') return error
  const details = error.details as DatabaseDetails | undefined
  const kind = details === undefined ? undefined : KIND_OF.get(details.sqlstate)
  if (details === undefined || kind === undefined) return error
  return new GatewayError(error.code, error.message, {
    details: { ...details, kind, columns: columnsOf(details, schemaOf(error.cause), view) },
    cause: error.cause,
    headers: error.headers,
    ...(error.hint === undefined ? {} : { hint: error.hint }),
    ...(error.span === undefined ? {} : { span: error.span }),
  })
}

/** Those that the caller may read. */
function columnsOf({ table: name, column, constraint }: DatabaseDetails, schema: string | null, view: View): string[] {
  const table = name === null ? undefined : tableCalled(name, schema, view)
  if (table === undefined) return []
  const { read } = view.rights.of(table)
  const columns = constraint === null ? undefined : table.constraints.get(constraint)
  return (columns ?? (column === null ? [] : [column])).filter(one => table.columnByName.has(one) && allows(read, one))
}

function tableCalled(name: string, schema: string | null, { catalog }: View): Table | undefined {
  const isFirst = schema === null || schema === catalog.schemas[0]
  return catalog.tables.get(isFirst ? name : `${schema}.${name}`)
}

/** PostgreSQL names the table's schema beside it. */
function schemaOf(cause: unknown): string | null {
  const { schema = null } = (cause ?? {}) as { readonly schema?: string | null }
  return schema
}
