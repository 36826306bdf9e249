/**
 * The smallest parts of expressions: literals, parameters, names, and everything in parentheses or brackets.
 */

import { scanJson } from '../../json/text/scan.ts'
import type {
  ArrayConstructor,
  Case,
  Cast,
  ColumnReference,
  Expression,
  Literal,
  Parameter,
  Row,
  SubQuery,
} from '../tree/ast.ts'
import { PLACEHOLDER } from '../tree/ast.ts'
import { NESTING_MAX } from '../tree/nesting.ts'
import { advance } from './lexer.ts'
import { parseCall, parseExtract, parseSubstring } from './parse-function.ts'
import { parseType } from './parse-type.ts'
import {
  accept,
  addLevel,
  enterGroup,
  enterLevel,
  expect,
  fail,
  failAt,
  is,
  isName,
  isPlaceholder,
  note,
  parseAfter,
  parseAnyName,
  parseEnclosedQuery,
  parseList,
  parseWhole,
  peek,
  type SyntaxParser,
  spanFrom,
  takeName,
  takeWord,
} from './parser.ts'
import { ROLE } from './vocabulary.ts'

/** Limit on the number of a parameter. The wire protocol counts parameters in 16 bits. */
export const PARAMETER_NUMBER_MAX = 65_535

/**
 * `primary = literal | parameter | name { "." name } | function | case | cast | "(" expr ")" | "(" get ")" |
 * "[" exprs "]" | row | "exists" "(" get ")"`
 */
export function parsePrimary(parser: SyntaxParser): Expression {
  switch (parser.token) {
    case '#word':
    case '#quoted':
      return parseNamed(parser)
    case '#text':
      return literal(parser, 'text', parser.value)
    case '#integer':
    case '#decimal':
      return parseNumber(parser)
    case '#duration':
      return literal(parser, 'duration', parser.text.slice(parser.start, parser.end))
    case '#position':
    case '#dollar':
    case ':':
      return parseParameter(parser) ?? refuse(parser)
    case '?':
      return isPlaceholder(parser, parser.token) ? takePlaceholder(parser) : refuse(parser)
    case '(':
      return parseParenthesised(parser)
    case '[':
      return parseArray(parser)
    case '{':
      return parseObject(parser)
    default:
      return parser.isWord ? parseWord(parser) : refuse(parser)
  }
}

function refuse(parser: SyntaxParser): never {
  note(parser, 'an expression')
  fail(parser)
}

/** A keyword in the position of an operand: it starts an expression, or it is a name. */
function parseWord(parser: SyntaxParser): Expression {
  if (parser.role === ROLE.opening) {
    switch (parser.token) {
      case 'true':
      case 'false':
        return literal(parser, 'boolean', parser.token)
      case 'null':
        return literal(parser, 'null', '')
      case 'case':
        return parseCase(parser)
      case 'not':
        note(parser, 'an operand')
        return fail(
          parser,
          '"not" has lower precedence than the operator before it',
          'put the negated condition in parentheses',
        )
      default:
        return refuse(parser)
    }
  }
  if (parser.role === ROLE.call && peek(parser) === '(') return parseOpening(parser)
  if (isName(parser)) return parseNamed(parser)
  // left() and right() are also functions of PostgreSQL.
  if ((parser.token === 'left' || parser.token === 'right') && peek(parser) === '(') return parseNamed(parser)
  return refuse(parser)
}

/** A keyword with its own syntax in parentheses. */
function parseOpening(parser: SyntaxParser): Expression {
  switch (parser.token) {
    case 'exists':
      return parseExists(parser)
    case 'cast':
      return parseCast(parser)
    case 'row':
      return parseRow(parser)
    case 'extract':
      return parseExtract(parser)
    case 'substring':
      return parseSubstring(parser)
    default:
      return refuse(parser)
  }
}

// ---- literals and parameters ------------------------------------------------------------------------------

/**
 * `literal = integer | decimal | 'text' | "text" | '''raw''' | true | false | null | {json} | [json] |
 * duration`
 */
function literal(parser: SyntaxParser, type: Literal['type'], value: string): Literal {
  const { start } = parser
  advance(parser)
  return { kind: 'literal', type, value, span: spanFrom(parser, start) }
}

/** `integer | decimal` */
export function parseNumber(parser: SyntaxParser): Literal {
  const type = parser.token === '#integer' ? 'integer' : 'decimal'
  return literal(parser, type, parser.text.slice(parser.start, parser.end))
}

/**
 * `parameter = "$" digits | ":" name`; null if absent. The conditions of a policy also have `$name`,
 * patterns have `?`.
 */
export function parseParameter(parser: SyntaxParser): Parameter | null {
  const { start } = parser
  switch (parser.token) {
    case '#position': {
      const n = Number(parser.text.slice(start + 1, parser.end))
      if (n < 1 || n > PARAMETER_NUMBER_MAX) fail(parser, `parameters are numbered from $1 to $${PARAMETER_NUMBER_MAX}`)
      advance(parser)
      return { kind: 'position', n, span: spanFrom(parser, start) }
    }
    case '#dollar': {
      const name = parser.value
      if (parser.dialect !== 'condition')
        fail(parser, 'write a parameter as $1 or :name', `write :${name.replaceAll('.', '_')}`)
      advance(parser)
      return { kind: 'named', name, span: spanFrom(parser, start) }
    }
    case ':': {
      advance(parser)
      if (!parser.isWord || parser.start !== parser.before) {
        note(parser, "a parameter's name")
        fail(parser)
      }
      const name = takeWord(parser)
      return { kind: 'named', name, span: spanFrom(parser, start) }
    }
    default:
      if (isPlaceholder(parser, parser.token)) return takePlaceholder(parser)
      note(parser, 'a parameter')
      return null
  }
}

/** `?` where an operand is expected; between two operands it is an operator. */
function takePlaceholder(parser: SyntaxParser): Parameter {
  const { start } = parser
  advance(parser)
  return { kind: 'named', name: PLACEHOLDER, span: spanFrom(parser, start) }
}

/** `{json}` */
function parseObject(parser: SyntaxParser): Literal {
  const { end, failedAt } = scanJson(parser.text, parser.start, NESTING_MAX)
  if (end === null) {
    const hint = 'JSON keys and strings are in double quotes; for computed values use jsonb_build_object(…)'
    return failAt(parser, failedAt, Math.min(failedAt + 1, parser.text.length), 'invalid JSON', hint)
  }
  return json(parser, end)
}

function json(parser: SyntaxParser, end: number): Literal {
  parser.end = end
  return literal(parser, 'json', parser.text.slice(parser.start, end))
}

/**
 * `[json] | "[" exprs "]"`: JSON if the whole text is valid JSON and contains an object, otherwise a
 * PostgreSQL array. JSON arrays of plain values are written as a text with a cast: `'[1, 2]'::jsonb`.
 */
function parseArray(parser: SyntaxParser): Literal | ArrayConstructor {
  const { start } = parser
  if (start >= parser.plainUntil && !parser.notJson.has(start)) {
    const { end, hasObject, unclosed } = scanJson(parser.text, start, NESTING_MAX)
    if (end !== null && hasObject) return json(parser, end)
    if (end !== null) parser.plainUntil = end
    else parser.notJson = new Set(unclosed)
  }
  enterLevel(parser)
  expect(parser, '[')
  const items = parser.token === ']' ? [] : parseList(parser, parseWhole)
  expect(parser, ']')
  parser.levels--
  return { kind: 'array', items, span: spanFrom(parser, start) }
}

// ---- names and functions ----------------------------------------------------------------------------------

/** `name { "." name } | function` */
function parseNamed(parser: SyntaxParser): Expression {
  const reference = parsePath(parser)
  return parser.token === '(' ? parseCall(parser, reference) : reference
}

function parsePath(parser: SyntaxParser): ColumnReference {
  const { start } = parser
  const path = [takeName(parser)]
  while (parser.token === '.') {
    advance(parser)
    // A column, or a key of its JSON.
    path.push(parseAnyName(parser, 'a name', takeWord))
  }
  return { kind: 'column', path, span: spanFrom(parser, start) }
}

// ---- in parentheses ---------------------------------------------------------------------------------------

/** `"(" expr ")" | "(" get ")" | row`, where `row = "(" expr "," expr { "," expr } ")"` */
function parseParenthesised(parser: SyntaxParser): Expression {
  const { start } = parser
  expect(parser, '(')
  if (parser.token === 'get' || parser.token === 'with') return parseSubQuery(parser, start)
  enterGroup(parser)
  const first = parseWhole(parser)
  let expression = first
  if (is(parser, ',')) {
    addLevel(parser)
    parser.levels++
    const items = [first]
    while (accept(parser, ',')) items.push(parseWhole(parser))
    parser.levels--
    expect(parser, ')')
    expression = { kind: 'row', items, span: spanFrom(parser, start) } satisfies Row
  } else expect(parser, ')')
  parser.groups--
  parser.groupStart = start
  parser.groupEnd = parser.before
  return expression
}

/** `"(" get ")"`, after the parenthesis. */
function parseSubQuery(parser: SyntaxParser, start: number): SubQuery {
  const query = parser.grammar.query(parser)
  expect(parser, ')')
  return { kind: 'subquery', query, span: spanFrom(parser, start) }
}

/** `"exists" "(" get ")"` */
function parseExists(parser: SyntaxParser): Expression {
  const { start } = parser
  advance(parser)
  const query = parseEnclosedQuery(parser)
  return { kind: 'exists', negated: false, query, span: spanFrom(parser, start) }
}

/** `"cast" "(" expr "as" type ")"`, equivalent to `expr::type`. */
function parseCast(parser: SyntaxParser): Cast {
  const { start } = parser
  advance(parser)
  enterLevel(parser)
  expect(parser, '(')
  const operand = parseWhole(parser)
  expect(parser, 'as')
  const type = parseType(parser)
  expect(parser, ')')
  parser.levels--
  return { kind: 'cast', operand, type, span: spanFrom(parser, start) }
}

/** `"row" "(" [ exprs ] ")"`: a row of any length. */
function parseRow(parser: SyntaxParser): Row {
  const { start } = parser
  advance(parser)
  enterLevel(parser)
  expect(parser, '(')
  const items = parser.token === ')' ? [] : parseList(parser, parseWhole)
  expect(parser, ')')
  parser.levels--
  return { kind: 'row', items, span: spanFrom(parser, start) }
}

/** `case = "case" [ expr ] { "when" expr "then" expr } [ "else" expr ] "end"`, with at least one `when` */
function parseCase(parser: SyntaxParser): Case {
  const { start } = parser
  advance(parser)
  enterLevel(parser)
  const operand = is(parser, 'when') ? null : parseWhole(parser)
  const whens: { readonly when: Expression; readonly then: Expression }[] = []
  if (!is(parser, 'when')) fail(parser)
  while (accept(parser, 'when')) {
    const when = parseWhole(parser)
    expect(parser, 'then')
    // biome-ignore lint/suspicious/noThenProperty: branches of the tree have a `then`; nothing awaits them.
    whens.push({ when, then: parseWhole(parser) })
  }
  const otherwise = parseAfter(parser, 'else')
  expect(parser, 'end')
  parser.levels--
  return { kind: 'case', operand, whens, else: otherwise, span: spanFrom(parser, start) }
}
