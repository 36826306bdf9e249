/**
 * What can be said about a text, as plain data: the objects of the tools `svc_parse_query`,
 * `svc_transpile_query`, `svc_explain_query` and `svc_format_query` (docs/guides/agents.md#tools), which `svc
 * parse --json`, `transpile`, `explain` and `format` print too.
 */

import { format, formatStatement } from '../format/format.ts'
import { printSql } from '../sql/print.ts'
import type { ParameterMode, SqlParameter } from '../sql/printer.ts'
import type { Statement } from '../tree/ast.ts'
import { type Explanation, explain } from './explain.ts'
import { guessesIn } from './guesses.ts'

export interface TranspileAnswer {
  readonly ok: true
  readonly sql: string
  /** Entry n-1 is what `$n` stands for. */
  readonly parameters: readonly SqlParameter[]
  /** What was guessed; left out where nothing was. */
  readonly notes?: readonly string[]
}

export interface ParseAnswer extends TranspileAnswer {
  /** The tree without its places in the text. */
  readonly ast: object
  readonly formatted: string
}

export interface FormatAnswer {
  readonly ok: true
  readonly formatted: string
}

export interface ExplainAnswer extends Explanation {
  readonly ok: true
}

export function answerParse(statement: Statement, mode: ParameterMode): ParseAnswer {
  const { ok, ...transpiled } = answerTranspile(statement, mode)
  return { ok, ast: withoutPlaces(statement), formatted: formatStatement(statement), ...transpiled }
}

export function answerTranspile(statement: Statement, mode: ParameterMode): TranspileAnswer {
  const { text, parameters } = printSql(statement, { parameters: mode })
  const notes = guessesIn(statement).map(({ note }) => note)
  return { ok: true, sql: text, parameters, ...(notes.length > 0 ? { notes } : {}) }
}

export function answerExplain(statement: Statement): ExplainAnswer {
  return { ok: true, ...explain(statement) }
}

/** Of one statement or several, comments kept. */
export function answerFormat(text: string): FormatAnswer {
  return { ok: true, formatted: format(text) }
}

/**
 * Places are half of a tree's JSON, and say nothing to who has only asked what a text means. No deeper than
 * the parser lets a tree be.
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
