/** Definitions: `make` and `index`. */

import type { ColumnDefinition, Expression, Index, Make, Name, TableConstraint } from '../tree/ast.ts'
import { advance } from './lexer.ts'
import { parseType } from './parse-type.ts'
import {
  accept,
  expect,
  fail,
  failAt,
  is,
  parseAfter,
  parseAnyName,
  parseColumnName,
  parseList,
  parseName,
  parseNameNode,
  parseNames,
  parseTable,
  parseWhole,
  peek,
  type SyntaxParser,
  spanFrom,
  takeName,
} from './parser.ts'

/** `make = ( "make" | "create" ) table coldef { "," coldef } { tconstraint }` */
export function parseMake(parser: SyntaxParser, start: number): Make {
  advance(parser)
  const table = parseTable(parser)
  const columns = parseList(parser, parseColumn)
  const constraints: TableConstraint[] = []
  while (is(parser, 'primary') || is(parser, 'unique')) constraints.push(parseConstraint(parser))
  return { kind: 'make', table, columns, constraints, span: spanFrom(parser, start) }
}

interface Options {
  primaryKey: boolean
  unique: boolean
  nullable: boolean
  default: Expression | null
  check: Expression | null
  references: ColumnDefinition['references']
}

/** `coldef = name ":" type { ":" option }` */
function parseColumn(parser: SyntaxParser): ColumnDefinition {
  const { start } = parser
  const name = parseDefinedName(parser)
  expect(parser, ':')
  const type = parseType(parser)
  const options: Options = {
    primaryKey: false,
    unique: false,
    nullable: false,
    default: null,
    check: null,
    references: null,
  }
  while (accept(parser, ':')) parseOption(parser, options)
  return { kind: 'column definition', name, type, ...options, span: spanFrom(parser, start) }
}

/** Before a colon, every word is a name. */
function parseDefinedName(parser: SyntaxParser): Name {
  const { start } = parser
  if (!parser.isWord || peek(parser) !== ':') return parseColumnName(parser)
  const text = takeName(parser)
  return { kind: 'name', text, span: spanFrom(parser, start) }
}

/** `"pk" | "unique" | "nullable" | "default=" expr | "check=" expr | "ref=" table "." name`, each once */
function parseOption(parser: SyntaxParser, options: Options): void {
  const { start } = parser
  const once = (isGiven: boolean): void => {
    if (isGiven) failAt(parser, start, parser.before, 'this option is repeated', null)
  }
  if (accept(parser, 'pk')) {
    once(options.primaryKey)
    options.primaryKey = true
  } else if (accept(parser, 'unique')) {
    once(options.unique)
    options.unique = true
  } else if (accept(parser, 'nullable')) {
    once(options.nullable)
    options.nullable = true
  } else if (accept(parser, 'default')) {
    once(options.default !== null)
    expect(parser, '=')
    options.default = parseWhole(parser)
  } else if (accept(parser, 'check')) {
    once(options.check !== null)
    expect(parser, '=')
    options.check = parseWhole(parser)
  } else if (accept(parser, 'ref')) {
    once(options.references !== null)
    expect(parser, '=')
    options.references = parseReference(parser)
  } else fail(parser)
}

/** `table "." name`, where the table may have a schema */
function parseReference(parser: SyntaxParser): ColumnDefinition['references'] {
  const { start } = parser
  const first = parseName(parser, 'a table name')
  const firstEnd = parser.before
  expect(parser, '.')
  const second = parseAnyName(parser, 'a column name')
  const secondEnd = parser.before
  if (!accept(parser, '.')) {
    return { table: { kind: 'table', schema: null, name: first, span: { start, end: firstEnd } }, column: second }
  }
  const column = parseAnyName(parser, 'a column name')
  return { table: { kind: 'table', schema: first, name: second, span: { start, end: secondEnd } }, column }
}

/** `tconstraint = ( "primary key" | "unique" ) "(" names ")"` */
function parseConstraint(parser: SyntaxParser): TableConstraint {
  const { start } = parser
  const isPrimary = parser.token === 'primary'
  advance(parser)
  if (isPrimary) expect(parser, 'key')
  if (!is(parser, '(')) fail(parser)
  const columns = parseNames(parser)
  return { kind: isPrimary ? 'primary key' : 'unique', columns, span: spanFrom(parser, start) }
}

/** `index = "index" name "on" table name { "," name } [ "unique" ] [ "where" expr ]` */
export function parseIndex(parser: SyntaxParser, start: number): Index {
  advance(parser)
  const name = parseNameNode(parser, 'the name of the index')
  expect(parser, 'on')
  const table = parseTable(parser)
  const columns = parseList(parser, parseColumnName)
  const unique = accept(parser, 'unique')
  const where = parseAfter(parser, 'where')
  return { kind: 'index', name, table, columns, unique, where, span: spanFrom(parser, start) }
}
