/**
 * Determines why a row is visible to a caller or not. Nothing is read with other rights than the caller's: a
 * row that row-level security hides is only known from the number of rows that a plan of the caller's own
 * statement removed, which the scope `svc:explain` reveals in any plan (explain-figures.ts).
 */
import type { Table } from '../../catalog/model.ts'
import { analyzed, catalogueStatement } from '../../compile/derive.ts'
import type { BoundStatement, PagedStatement, ReadStatement } from '../../compile/statement.ts'
import { quoteIdentifier } from '../../language/sql/quote.ts'
import { tableName } from '../../language/tree/build.ts'
import { parsePlans } from '../estimate.ts'
import type { ResultRow } from '../run.ts'
import type { RowPolicy, RowSecurity } from './row-policies.ts'

/** The reason. `unknown`: it cannot be determined without revealing more than the caller may know. */
export type VisibilityReason = 'visible' | 'missing' | 'deleted' | 'hidden' | 'unknown'

/** A policy with its value for one row. */
export interface PolicyResult {
  readonly policy: string
  readonly permissive: boolean
  /** Null if it is not known. */
  readonly result: boolean | null
}

/** The result for one row. */
export interface RowVisibility {
  readonly reason: VisibilityReason
  readonly policies: readonly PolicyResult[]
}

/** Runs reads in one transaction, under the session settings of the caller. */
export type ReadAsCaller = (
  statements: readonly BoundStatement<ReadStatement | ReturnType<typeof analyzed>>[],
) => Promise<readonly (readonly ResultRow[])[]>

/** A row of a table, named by its key. */
export interface NamedRow {
  readonly table: Table
  /** The values of the primary key. */
  readonly key: readonly string[]
  /** The request's own statement. */
  readonly statement: BoundStatement<ReadStatement | PagedStatement>
  /** True if the statement returned the row. */
  readonly isFound: boolean
}

/** `counts`: whether the caller may learn that rows exist which they cannot read. */
export async function explainRow(
  read: ReadAsCaller,
  row: NamedRow,
  security: RowSecurity | undefined,
  counts: boolean,
): Promise<RowVisibility> {
  const policies = security?.active === true ? security.policies : []
  const unevaluated = policies.map(policy => ({ ...named(policy), result: null }))
  if (!row.isFound && !counts) return { reason: 'unknown', policies: unevaluated }
  const [found = [], constants = []] = await read([valuesOf(row, policies), constantsOf(row.table, policies)])
  const [values] = found
  if (values !== undefined) {
    const reason = row.isFound ? 'visible' : values[0]?.toString() === 't' ? 'unknown' : 'deleted'
    return {
      reason,
      policies: policies.map((policy, index) => ({ ...named(policy), result: own(policy, values[index + 1]) })),
    }
  }
  if (row.isFound) return { reason: 'visible', policies: unevaluated }
  const known = policies.map((policy, index) => (policy.constant ? own(policy, constants[0]?.[index]) : null))
  const exists = await existence(read, row)
  if (exists !== true) {
    const results = policies.map((policy, index) => ({ ...named(policy), result: known[index] ?? null }))
    return { reason: exists === false ? 'missing' : 'unknown', policies: results }
  }
  const results = security?.complete === true ? deduced(policies, known) : known
  return {
    reason: 'hidden',
    policies: policies.map((policy, index) => ({ ...named(policy), result: results[index] ?? null })),
  }
}

function named({ name, permissive }: RowPolicy): Omit<PolicyResult, 'result'> {
  return { policy: name, permissive }
}

/** The value of a policy whose condition is withheld would reveal values of hidden columns. */
function own({ shown }: RowPolicy, value: Buffer | null | undefined): boolean | null {
  return shown && value !== undefined && value !== null ? value.toString() === 't' : null
}

/**
 * A statement that reads, from the row that the caller can see, whether it is marked as deleted and the value
 * of each policy.
 */
function valuesOf({ table, key }: NamedRow, policies: readonly RowPolicy[]): BoundStatement<ReadStatement> {
  const marker = table.managed?.softDelete ?? null
  const live = marker === null ? 'true' : `${quoteIdentifier(marker)} IS NULL`
  const conditions = policies.map(({ shown, condition }) => (shown ? `(${condition}) IS TRUE` : 'NULL'))
  const where = table.primaryKey.map(
    (name, index) => `${quoteIdentifier(name)} = $${index + 1}::${typeOf(table, name)}`,
  )
  // The table has no alias, because the conditions name it.
  const text =
    `SELECT ${[live, ...conditions].join(', ')} FROM ${quoteIdentifier(table.schema)}.${quoteIdentifier(table.name)} ` +
    `WHERE ${where.join(' AND ')}`
  return catalogueStatement(text, key, [tableName(table)])
}

/** The policies that mention no column. */
function constantsOf(table: Table, policies: readonly RowPolicy[]): BoundStatement<ReadStatement> {
  const values = policies.map(({ shown, constant, condition }) =>
    shown && constant ? `(${condition}) IS TRUE` : 'NULL',
  )
  return catalogueStatement(`SELECT ${values.join(', ')}`, [], [tableName(table)])
}

function typeOf(table: Table, name: string): string {
  const type = table.columnByName.get(name)?.type
  if (type === undefined) throw new Error('the primary key must consist of columns of the table')
  return `${quoteIdentifier(type.schema)}.${quoteIdentifier(type.name)}`
}

/**
 * The results that follow from a row being hidden: no permissive policy is true, or a restrictive one is not.
 */
function deduced(policies: readonly RowPolicy[], known: readonly (boolean | null)[]): readonly (boolean | null)[] {
  const isRestricted = policies.some(({ permissive }, index) => !permissive && known[index] !== true)
  if (!isRestricted) return policies.map(({ permissive }) => !permissive)
  const isPermitted = policies.some(({ permissive }, index) => permissive && known[index] === true)
  const unknown = policies.filter(({ permissive }, index) => !permissive && known[index] === null)
  const isDecided = policies.some(({ permissive }, index) => !permissive && known[index] === false)
  if (!isPermitted || isDecided || unknown.length !== 1) return known
  return policies.map((policy, index) => (policy === unknown[0] ? false : (known[index] ?? null)))
}

/** Scans of the key's index, whose removed rows are the rows with the key. */
const BY_KEY = catalogueStatement(
  `SELECT pg_catalog.set_config('enable_seqscan', 'off', true),
    pg_catalog.set_config('enable_bitmapscan', 'off', true)`,
  [],
)

/** Reports whether row-level security hides a row with this key; null if the plan does not show it. */
async function existence(read: ReadAsCaller, { table, statement }: NamedRow): Promise<boolean | null> {
  const plan = { statement: analyzed(statement.statement), values: statement.values }
  const [, rows] = await read([BY_KEY, plan])
  const scans = scansOf(parsePlans(rows?.[0]?.[0]?.toString() ?? '[]'), table)
  if (scans.length === 0 || !scans.every(scan => isByKey(scan, table))) return null
  return scans.some(scan => Number(scan['Rows Removed by Filter'] ?? 0) > 0)
}

type Node = Readonly<Record<string, unknown>>

function scansOf(plan: unknown, table: Table): readonly Node[] {
  if (Array.isArray(plan)) return plan.flatMap(inner => scansOf(inner, table))
  if (typeof plan !== 'object' || plan === null) return []
  const node = plan as Node
  const within = [...scansOf(node.Plan, table), ...scansOf(node.Plans, table)]
  return node['Relation Name'] === table.name ? [node, ...within] : within
}

/** Reports whether a scan finds rows by the key alone, so that a removed row is the row with the key. */
function isByKey(scan: Node, { primaryKey }: Table): boolean {
  const condition = scan['Index Cond']
  if (typeof condition !== 'string') return false
  const terms = condition.split(') AND (')
  const column = (term: string): string | undefined =>
    COMPARED.exec(term)?.[1]?.replace(/^"|"$/g, '').replaceAll('""', '"')
  return terms.length === primaryKey.length && primaryKey.every(name => terms.some(term => column(term) === name))
}

/** The column at the beginning of `((id = '1'::bigint)` or `((code)::text = 'a'::text)`. */
const COMPARED = /^\(*("(?:[^"]|"")+"|\w+)\)*(?:::[^=]+?)? = /
