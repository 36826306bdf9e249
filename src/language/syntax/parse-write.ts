/** Writes: `add`, `set`, `del`, `merge`. */

import type {
  Add,
  AddValues,
  Assignment,
  Conflict,
  Del,
  Expression,
  Field,
  Merge,
  MergeAction,
  MergeWhen,
  Set as SetStatement,
  Source,
  With,
} from '../tree/ast.ts'
import { failIfMisplaced } from './clause-order.ts'
import { advance } from './lexer.ts'
import { parseField, parseJoins, parseSource } from './parse-query.ts'
import {
  accept,
  enterLevel,
  expect,
  expectOneOf,
  fail,
  is,
  parseAfter,
  parseAlias,
  parseColumnName,
  parseEnclosedQuery,
  parseList,
  parseNames,
  parseTable,
  parseWhole,
  peek,
  type SyntaxParser,
  spanFrom,
} from './parser.ts'

const NONE: readonly never[] = []

// ---- add --------------------------------------------------------------------------------------------------

/**
 * `add = ( "add" | "insert" ) table [ columns ] ( values | "from" "(" get ")" | "defaults" ) [ conflict ] [
 * returning ]`, `columns = "fields" name { "," name }`
 */
export function parseAdd(parser: SyntaxParser, clause: With | null, start: number): Add {
  advance(parser)
  enterLevel(parser)
  const table = parseTable(parser)
  const columns = accept(parser, 'fields') ? parseList(parser, parseColumnName) : NONE
  const rows = parseRows(parser)
  const conflict = is(parser, 'conflict') ? parseConflict(parser) : null
  const returning = parseReturning(parser)
  parser.levels--
  return { kind: 'add', with: clause, table, columns, rows, conflict, returning, span: spanFrom(parser, start) }
}

function parseRows(parser: SyntaxParser): Add['rows'] {
  const { start } = parser
  if (is(parser, 'values')) return parseValues(parser)
  if (accept(parser, 'defaults')) return { kind: 'defaults', span: spanFrom(parser, start) }
  if (!is(parser, 'from')) failIfMisplaced(parser, 'add')
  expect(parser, 'from')
  const query = parseEnclosedQuery(parser)
  return { kind: 'from', query, span: spanFrom(parser, start) }
}

/**
 * `values = "values" row { "," row }`, `row = expr { "," expr } | "(" exprs ")"`. If every item is in
 * parentheses, each is a row; otherwise all items together are one row.
 */
function parseValues(parser: SyntaxParser): AddValues {
  const { start } = parser
  advance(parser)
  const values: Expression[] = []
  const rows: (readonly Expression[])[] = []
  do {
    const at = parser.start
    const value = parseWhole(parser)
    values.push(value)
    if (parser.groupStart === at && parser.groupEnd === parser.before) {
      rows.push(value.kind === 'row' && value.span.start === at ? value.items : [value])
    }
  } while (accept(parser, ','))
  const isOneRow = rows.length < values.length
  if (isOneRow && rows.some(row => row.length > 1)) {
    fail(
      parser,
      'only some of these rows are in parentheses',
      'write values (1, 2), (3, 4); write a row value as row(1, 2)',
    )
  }
  return { kind: 'values', rows: isOneRow ? [values] : rows, span: spanFrom(parser, start) }
}

/**
 * `conflict = "conflict" [ "(" name { "," name } ")" ] ( "nothing" | "update" assign { "," assign } [ where ]
 * )`
 */
function parseConflict(parser: SyntaxParser): Conflict {
  const { start } = parser
  advance(parser)
  const target = is(parser, '(') ? parseNames(parser) : NONE
  if (accept(parser, 'nothing')) return { kind: 'conflict', target, update: null, span: spanFrom(parser, start) }
  expect(parser, 'update')
  const assignments = parseList(parser, parseAssignment)
  const where = parseAfter(parser, 'where')
  return { kind: 'conflict', target, update: { assignments, where }, span: spanFrom(parser, start) }
}

/** `assign = name "=" expr` */
function parseAssignment(parser: SyntaxParser): Assignment {
  const { start } = parser
  const column = parseColumnName(parser)
  expect(parser, '=')
  const value = parseWhole(parser)
  return { kind: 'assignment', column, value, span: spanFrom(parser, start) }
}

/** `returning = "returning" ( "*" | field { "," field } )`; null if absent */
function parseReturning(parser: SyntaxParser): readonly Field[] | null {
  return accept(parser, 'returning') ? parseList(parser, parseField) : null
}

// ---- set and del ------------------------------------------------------------------------------------------

/**
 * `set = ( "set" | "update" ) table [ alias ] { join } "values" assign { "," assign } [ where ] [ returning
 * ]`
 */
export function parseSet(parser: SyntaxParser, clause: With | null, start: number): SetStatement {
  advance(parser)
  enterLevel(parser)
  const table = parseTable(parser)
  const alias = parseAlias(parser)
  const joins = parseJoins(parser)
  if (!is(parser, 'values')) failIfMisplaced(parser, 'set')
  expect(parser, 'values')
  const assignments = parseList(parser, parseAssignment)
  const where = parseRequiredWhere(parser, 'set')
  const returning = parseReturning(parser)
  parser.levels--
  const span = spanFrom(parser, start)
  return { kind: 'set', with: clause, table, alias, joins, assignments, where, returning, span }
}

/** `del = ( "del" | "delete" ) table [ alias ] { join } [ where ] [ returning ]` */
export function parseDel(parser: SyntaxParser, clause: With | null, start: number): Del {
  advance(parser)
  enterLevel(parser)
  const table = parseTable(parser)
  const alias = parseAlias(parser)
  const joins = parseJoins(parser)
  const where = parseRequiredWhere(parser, 'del')
  const returning = parseReturning(parser)
  parser.levels--
  return { kind: 'del', with: clause, table, alias, joins, where, returning, span: spanFrom(parser, start) }
}

/**
 * The `where` of a statement that would otherwise change every row; `where all` states that intent
 * explicitly.
 */
function parseRequiredWhere(parser: SyntaxParser, statement: 'set' | 'del'): Expression | 'all' {
  if (!is(parser, 'where')) {
    if (parser.token !== 'returning') failIfMisplaced(parser, statement)
    if (parser.token === 'returning' || parser.token === '#end' || parser.token === ';' || parser.token === ')') {
      const what = statement === 'set' ? 'change' : 'delete'
      fail(parser, `${statement} without where would ${what} every row`, 'add a condition, or write "where all"')
    }
    fail(parser)
  }
  advance(parser)
  if (parser.token === 'all' && isEverything(parser)) {
    advance(parser)
    return 'all'
  }
  return parseWhole(parser)
}

/** Reports whether `all` is the keyword: at the end of the condition it is not a column. */
function isEverything(parser: SyntaxParser): boolean {
  const next = peek(parser)
  return next === '#end' || next === ';' || next === ')' || next === 'returning'
}

// ---- merge ------------------------------------------------------------------------------------------------

/** The alias of a merge's query if the text has none. */
const MERGE_ALIAS = 'source'

/**
 * `merge = "merge" table [ alias ] "using" ( source | "(" get ")" [ alias ] ) "on" expr { when }`, with at
 * least one `when`
 */
export function parseMerge(parser: SyntaxParser, clause: With | null, start: number): Merge {
  advance(parser)
  enterLevel(parser)
  const table = parseTable(parser)
  const alias = parseAlias(parser)
  expect(parser, 'using')
  const using = parseMergeSource(parser)
  expect(parser, 'on')
  const on = parseWhole(parser)
  const whens: MergeWhen[] = []
  if (!is(parser, 'when')) fail(parser)
  while (is(parser, 'when')) whens.push(parseWhen(parser))
  parser.levels--
  return { kind: 'merge', with: clause, table, alias, using, on, whens, span: spanFrom(parser, start) }
}

function parseMergeSource(parser: SyntaxParser): Source {
  const { start } = parser
  if (!is(parser, '(')) return parseSource(parser)
  const query = parseEnclosedQuery(parser)
  const alias = parseAlias(parser) ?? MERGE_ALIAS
  return { kind: 'query source', query, alias, span: spanFrom(parser, start) }
}

/**
 * `when = "when" ( "matched" | "not matched" [ "by" ( "source" | "target" ) ] ) [ "and" expr ] "then" action`
 */
function parseWhen(parser: SyntaxParser): MergeWhen {
  const { start } = parser
  advance(parser)
  const match = parseMatch(parser)
  const and = parseAfter(parser, 'and')
  expect(parser, 'then')
  const action = parseAction(parser)
  return { kind: 'when', match, and, action, span: spanFrom(parser, start) }
}

function parseMatch(parser: SyntaxParser): MergeWhen['match'] {
  const isNot = accept(parser, 'not')
  expect(parser, 'matched')
  if (!isNot) return 'matched'
  if (!accept(parser, 'by')) return 'not matched'
  return `not matched by ${expectOneOf(parser, 'source', 'target')}`
}

/**
 * `"update" "set" assign { "," assign } | "insert" [ "(" names ")" ] "values" "(" exprs ")" | "delete" |
 * "nothing"`
 */
function parseAction(parser: SyntaxParser): MergeAction {
  const { start } = parser
  if (accept(parser, 'nothing')) return { kind: 'merge nothing', span: spanFrom(parser, start) }
  if (accept(parser, 'delete')) return { kind: 'merge delete', span: spanFrom(parser, start) }
  if (accept(parser, 'update')) {
    expect(parser, 'set')
    const assignments = parseList(parser, parseAssignment)
    return { kind: 'merge update', assignments, span: spanFrom(parser, start) }
  }
  expect(parser, 'insert')
  const columns = is(parser, '(') ? parseNames(parser) : NONE
  expect(parser, 'values')
  expect(parser, '(')
  const values = parseList(parser, parseWhole)
  expect(parser, ')')
  return { kind: 'merge insert', columns, values, span: spanFrom(parser, start) }
}
