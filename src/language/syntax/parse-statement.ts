/** Statements: dispatches on the keyword, after an optional `with`. */

import type { Call, Explain, Statement, Transaction, With } from '../tree/ast.ts'
import { advance } from './lexer.ts'
import { parseIndex, parseMake } from './parse-definition.ts'
import { parseExpression } from './parse-expression.ts'
import { parseCountRows, parseGet, parseQuery, parseWith } from './parse-query.ts'
import { parseAdd, parseDel, parseMerge, parseSet } from './parse-write.ts'
import {
  enterLevel,
  expect,
  fail,
  type Grammar,
  is,
  note,
  parseList,
  parseTable,
  parseWhole,
  type SyntaxParser,
  spanFrom,
} from './parser.ts'

/** The productions that refer to each other recursively. */
export const GRAMMAR: Grammar = { expression: parseExpression, query: parseQuery, statement: parseStatement }

/**
 * `statement = [ with ] ( get | count | export | add | set | del | merge | make | index | call | transaction
 * | explain )`
 */
export function parseStatement(parser: SyntaxParser): Statement {
  const { start } = parser
  const clause = parseWith(parser)
  switch (parser.token) {
    case 'get':
    case 'export':
      return parseGet(parser, clause, start)
    case 'count':
    case 'cnt':
      return parseCountRows(parser, clause, start)
    case 'add':
    case 'insert':
      return parseAdd(parser, clause, start)
    case 'set':
    case 'update':
      return parseSet(parser, clause, start)
    case 'del':
    case 'delete':
      return parseDel(parser, clause, start)
    case 'merge':
      return parseMerge(parser, clause, start)
    default:
      return parsePlain(parser, clause, start)
  }
}

/** Statements that cannot have common tables. */
function parsePlain(parser: SyntaxParser, clause: With | null, start: number): Statement {
  if (clause !== null && parser.isWord && PLAIN.has(parser.token)) {
    fail(parser, `"with" is not allowed before ${parser.token}`)
  }
  switch (parser.token) {
    case 'make':
    case 'create':
      return parseMake(parser, start)
    case 'index':
      return parseIndex(parser, start)
    case 'call':
      return parseCallStatement(parser, start)
    case 'begin':
    case 'commit':
    case 'rollback':
      return parseTransaction(parser, parser.token, start)
    case 'explain':
      return parseExplain(parser, start)
    default:
      for (const word of clause === null ? [...FIRST, ...LATER] : FIRST) note(parser, word)
      return fail(parser)
  }
}

const FIRST = ['get', 'count', 'export', 'add', 'set', 'del', 'merge'] as const
const LATER = ['make', 'index', 'call', 'begin', 'commit', 'rollback', 'explain'] as const

const PLAIN: ReadonlySet<string> = new Set(['create', ...LATER])

/** `call = "call" qname "(" [ args ] ")"` */
function parseCallStatement(parser: SyntaxParser, start: number): Call {
  advance(parser)
  const procedure = parseTable(parser, 'the name of a procedure')
  expect(parser, '(')
  const args = is(parser, ')') ? [] : parseList(parser, parseWhole)
  expect(parser, ')')
  return { kind: 'call', function: procedure, arguments: args, span: spanFrom(parser, start) }
}

/** `transaction = "begin" | "commit" | "rollback"` */
function parseTransaction(parser: SyntaxParser, kind: Transaction['kind'], start: number): Transaction {
  advance(parser)
  return { kind, span: spanFrom(parser, start) }
}

/** `explain = "explain" statement` */
function parseExplain(parser: SyntaxParser, start: number): Explain {
  advance(parser)
  enterLevel(parser)
  const statement = parser.grammar.statement(parser)
  parser.levels--
  return { kind: 'explain', statement, span: spanFrom(parser, start) }
}
