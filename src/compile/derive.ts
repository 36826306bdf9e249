/** Statements that are made of others, and those that no request has a part in. */
import type { TableName } from '../language/tree/ast.ts'
import { statement } from './print.ts'
import type {
  BoundStatement,
  CallStatement,
  ExplainStatement,
  PagedStatement,
  ReadStatement,
  Statement,
  StatementValue,
  StreamStatement,
} from './statement.ts'
import { TOUCHES_NOTHING, type Touches } from './touches.ts'

/** What PostgreSQL would do to answer a statement, which is not run (PostgreSQL manual, EXPLAIN). */
export function explained({ text, parameters, touches }: Exclude<Statement, CallStatement>): ExplainStatement {
  return statement({ kind: 'explain', text: `EXPLAIN (FORMAT JSON) ${text}`, parameters, touches, runs: null })
}

/** What PostgreSQL did to answer a read, which is run for it. */
export function analyzed(runs: ReadStatement | PagedStatement | StreamStatement): ExplainStatement {
  const { text, parameters, touches } = runs
  return statement({ kind: 'explain', text: `EXPLAIN (ANALYZE, FORMAT JSON) ${text}`, parameters, touches, runs })
}

/**
 * A read whose rows are wanted only when they are others than before: one row with their digest, their number, the bytes of all of them, and all of them as
 * one JSON list without its brackets – unless they are those of `digest`, or more than `bytesMax`.
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
SELECT digest, count, octet_length(list), CASE WHEN digest = ${place}::text OR octet_length(list) > ${bytesMax} THEN NULL ELSE list END FROM judged`
  return {
    statement: { ...read, text, parameters: [...read.parameters, { literal: digest ?? '' }] },
    values: [...values, digest],
  }
}

/**
 * A statement that no request has a part in but by its values: its text is made of what the catalogue of PostgreSQL says – names, the conditions of
 * policies – and of nothing else. `reads`: the tables whose policies or rows are in it.
 */
export function catalogueStatement(
  text: string,
  values: readonly StatementValue[],
  reads: readonly TableName[] = [],
): BoundStatement<ReadStatement> {
  const touches: Touches = { ...TOUCHES_NOTHING, reads }
  const read = { kind: 'read', text, parameters: [], touches, eachTime: false, extent: 'page', mentions: [] } as const
  return { statement: statement<ReadStatement>(read), values }
}
