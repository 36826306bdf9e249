/** Statements derived from other statements, and statements that do not come from a request. */
import type { TableName } from '../language/tree/ast.ts'
import { statement } from './print.ts'
import type {
  BoundStatement,
  CompiledStatement,
  ExplainStatement,
  PagedStatement,
  ReadStatement,
  StatementValue,
  StreamStatement,
} from './statement.ts'
import { NO_TABLE_DEPENDENCIES, type TableDependencies } from './table-dependencies.ts'

/**
 * Asks PostgreSQL for the execution plan of a statement without executing it (PostgreSQL manual, EXPLAIN).
 */
export function explained({ text, parameters, dependencies }: CompiledStatement): ExplainStatement {
  return statement({ kind: 'explain', text: `EXPLAIN (FORMAT JSON) ${text}`, parameters, dependencies, runs: null })
}

/** The options of a requested execution plan (PostgreSQL manual, EXPLAIN). */
export interface PlanRequest {
  readonly format: 'json' | 'text'
  /** Names of options, from a list of the program. */
  readonly options: readonly PlanOption[]
  /** False for a plan without estimates. */
  readonly costs: boolean
}

/** An option of a plan. */
export type PlanOption = 'analyze' | 'verbose' | 'settings' | 'buffers' | 'wal'

/** Asks for the execution plan of any statement. With `analyze`, PostgreSQL executes it. */
export function requestedPlan(of: CompiledStatement, { format, options, costs }: PlanRequest): ExplainStatement {
  const list = [`FORMAT ${format}`, ...(costs ? [] : ['COSTS false']), ...options].join(', ')
  const { text, parameters, dependencies } = of
  const isRead = of.kind === 'read' || of.kind === 'paged' || of.kind === 'stream'
  const runs = options.includes('analyze') && isRead ? of : null
  return statement({ kind: 'explain', text: `EXPLAIN (${list}) ${text}`, parameters, dependencies, runs })
}

/** Executes a read and returns PostgreSQL's execution plan with actual counts. */
export function analyzed(runs: ReadStatement | PagedStatement | StreamStatement): ExplainStatement {
  const { text, parameters, dependencies } = runs
  return statement({ kind: 'explain', text: `EXPLAIN (ANALYZE, FORMAT JSON) ${text}`, parameters, dependencies, runs })
}

/**
 * A read whose rows are returned only if they have changed: one row with the digest of the rows, their
 * number, their size in bytes, and the rows as one JSON list without brackets. The list is NULL if the digest
 * equals `digest` or the size exceeds `bytesMax`.
 */
export function ifChanged(
  { statement: read, values }: BoundStatement<ReadStatement>,
  digest: string | null,
  bytesMax: number,
): BoundStatement<ReadStatement> {
  const place = `$${values.length + 1}`
  const text = `WITH answer(item) AS MATERIALIZED (${read.text}), whole AS (
  SELECT count(*) AS count, coalesce(string_agg(item::text, ','), '') AS list FROM answer
), judged AS (SELECT *, encode(sha256(convert_to(count || ' ' || list, 'UTF8')), 'base64') AS digest FROM whole)
SELECT digest, count, octet_length(list),
  CASE WHEN digest = ${place}::text OR octet_length(list) > ${bytesMax} THEN NULL ELSE list END FROM judged`
  return {
    statement: { ...read, text, parameters: [...read.parameters, { literal: digest ?? '' }] },
    values: [...values, digest],
  }
}

/**
 * A statement made by the gateway, in which requests supply values only. Its text consists of names and
 * policy conditions from PostgreSQL's catalog. `reads` are the tables whose policies or rows it contains.
 */
export function catalogueStatement(
  text: string,
  values: readonly StatementValue[],
  reads: readonly TableName[] = [],
): BoundStatement<ReadStatement> {
  const dependencies: TableDependencies = { ...NO_TABLE_DEPENDENCIES, reads }
  const read = {
    kind: 'read',
    text,
    parameters: [],
    dependencies,
    valueDependent: false,
    keyLists: [],
    extent: 'page',
    mentions: [],
  } as const
  return { statement: statement<ReadStatement>(read), values }
}
