/**
 * The results of the tools `svc_parse_query`, `svc_transpile_query`, `svc_explain_query` and
 * `svc_format_query` (docs/guides/agents.md#tools) as plain data. `svc parse --json`, `transpile`, `explain`
 * and `format` print them too.
 */

import { format, formatStatement } from '../format/format.ts'
import { printSql } from '../sql/print.ts'
import type { ParameterMode, SqlParameter } from '../sql/printer.ts'
import type { Statement } from '../tree/ast.ts'
import { explain, type StatementExplanation } from './explain.ts'
import { guessedJoins } from './guessed-joins.ts'

/** The result of `transpile`. */
export interface TranspileAnswer {
  readonly ok: true
  readonly sql: string
  /** Entry n-1 is the value of `$n`. */
  readonly parameters: readonly SqlParameter[]
  /** Join conditions that were guessed; absent without any. */
  readonly notes?: readonly string[]
}

/** The result of `parse`. */
export interface ParseAnswer extends TranspileAnswer {
  /** The tree without its spans. */
  readonly ast: object
  readonly formatted: string
}

/** The result of `format`. */
export interface FormatAnswer {
  readonly ok: true
  readonly formatted: string
}

/** The result of `explain`. */
export interface ExplainAnswer extends StatementExplanation {
  readonly ok: true
}

/** Returns the tree of a statement with its SQL. */
export function answerParse(statement: Statement, mode: ParameterMode): ParseAnswer {
  const { ok, ...transpiled } = answerTranspile(statement, mode)
  return { ok, ast: withoutPlaces(statement), formatted: formatStatement(statement), ...transpiled }
}

/** Returns the SQL of a statement with its parameters. */
export function answerTranspile(statement: Statement, mode: ParameterMode): TranspileAnswer {
  const { text, parameters } = printSql(statement, { parameters: mode })
  const notes = guessedJoins(statement).map(({ note }) => note)
  return { ok: true, sql: text, parameters, ...(notes.length > 0 ? { notes } : {}) }
}

/** Returns the explanation of a statement. */
export function answerExplain(statement: Statement): ExplainAnswer {
  return { ok: true, ...explain(statement) }
}

/** Formats one or several statements and keeps their comments. */
export function answerFormat(text: string): FormatAnswer {
  return { ok: true, formatted: format(text) }
}

/**
 * Removes the spans, which are half of a tree's JSON and irrelevant to the meaning of the text. The recursion
 * is as deep as the tree, which the parser limits.
 */
function withoutPlaces(node: object): object {
  if (Array.isArray(node)) return node.map(bare)
  const copy: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(node)) if (name !== 'span') copy[name] = bare(value)
  return copy
}

function bare(value: unknown): unknown {
  return typeof value === 'object' && value !== null ? withoutPlaces(value) : value
}
