/** The `details` of a constraint violation: its kind and its columns, but never a value of a row. */
import { allows, type View } from '../access/rights.ts'
import { resourceName, type Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import { partitionNamed, type Violated as Where } from './new-partitions.ts'

/** Class 23, integrity constraint violation (PostgreSQL manual, appendix A). */
const KIND_OF: ReadonlyMap<string, ViolationKind> = new Map([
  ['23001', 'foreign_key'],
  ['23502', 'not_null'],
  ['23503', 'foreign_key'],
  ['23505', 'unique'],
  ['23514', 'check'],
  ['23P01', 'exclusion'],
])

/** The kind of a violated constraint, as `details.kind` reports it. */
export type ViolationKind = 'unique' | 'foreign_key' | 'check' | 'not_null' | 'exclusion'

interface DatabaseDetails {
  readonly sqlstate: string
  readonly table: string | null
  readonly column: string | null
  readonly constraint: string | null
}

/**
 * Adds `kind` and `columns` to the details of a constraint violation; returns any other error unchanged.
 * PostgreSQL's DETAIL text contains row values, so the columns come from the catalog instead.
 */
export function describeViolation(error: unknown, view: View): unknown {
  if (!(error instanceof GatewayError) || error.code !== 'QUERY_ERROR') return error
  const details = databaseDetails(error)
  const kind = details === null ? undefined : KIND_OF.get(details.sqlstate)
  if (details === null || kind === undefined) return error
  const violated = violatedIn(details, schemaOf(error.cause), view)
  const table = violated?.table.name ?? details.table
  return new GatewayError(error.code, error.message, {
    details: { ...details, table, kind, columns: violated === null ? [] : columnsOf(details, violated, view) },
    cause: error.cause,
    headers: error.headers,
    ...(error.hint === undefined ? {} : { hint: error.hint }),
    ...(error.span === undefined ? {} : { span: error.span }),
  })
}

/** The table and constraint of a violation, as PostgreSQL names them; null for other errors. */
export function violatedBy(error: unknown, { catalog }: View): Where | null {
  if (!(error instanceof GatewayError) || error.code !== 'QUERY_ERROR') return null
  const details = databaseDetails(error)
  if (details === null || details.table === null || !KIND_OF.has(details.sqlstate)) return null
  const schema = schemaOf(error.cause) ?? catalog.schemas[0]
  return schema === undefined ? null : { schema, table: details.table, constraint: details.constraint }
}

/** The details of an error of PostgreSQL; null for other errors, whose details have any form. */
function databaseDetails({ details }: GatewayError): DatabaseDetails | null {
  const isFromDatabase = typeof details === 'object' && details !== null && 'sqlstate' in details
  return isFromDatabase ? (details as DatabaseDetails) : null
}

interface Violated {
  /** The resource; for a partition, its partitioned table. */
  readonly table: Table
  readonly constraints: Table['constraints']
}

function violatedIn({ table: name }: DatabaseDetails, schema: string | null, { catalog }: View): Violated | null {
  if (name === null) return null
  const resource = resourceName({ schema: schema ?? catalog.schemas[0] ?? '', name }, catalog.schemas)
  const partition = partitionNamed(resource, catalog)
  const table = catalog.tables.get(partition?.table ?? resource)
  return table === undefined ? null : { table, constraints: partition?.constraints ?? table.constraints }
}

/** The columns of the constraint that the caller can read. */
function columnsOf({ column, constraint }: DatabaseDetails, { table, constraints }: Violated, view: View): string[] {
  const { read } = view.rights.of(table)
  const columns = constraint === null ? undefined : constraints.get(constraint)
  return (columns ?? (column === null ? [] : [column])).filter(one => table.columnByName.has(one) && allows(read, one))
}

/** PostgreSQL reports the table's schema in a separate field. */
function schemaOf(cause: unknown): string | null {
  const { schema = null } = (cause ?? {}) as { readonly schema?: string | null }
  return schema
}
