/** Expressions: one loop over the operators, by precedence. Each function has its grammar production. */

import type {
  Arithmetic,
  Between,
  Comparison,
  ComparisonOperator,
  Exists,
  Expression,
  In,
  InValues,
  JsonStep,
  JsonTest,
  Literal,
  Logic,
  PatternMatch,
  SubQuery,
} from '../tree/ast.ts'
import { BINDING } from './binding.ts'
import { advance } from './lexer.ts'
import { parseNumber, parseParameter, parsePrimary } from './parse-primary.ts'
import { parseType } from './parse-type.ts'
import {
  accept,
  addLevel,
  enterLevel,
  expect,
  expectOneOf,
  fail,
  is,
  note,
  OPERATOR,
  parseList,
  parseWhole,
  type SyntaxParser,
  spanFrom,
} from './parser.ts'

/**
 * `expr = precedence, low to high: or · and · not · comparison · || · + - · * / % · unary - · -> ->> #> #>> ·
 * :: · primary`
 */
export function parseExpression(parser: SyntaxParser, floor: number): Expression {
  const deepest = parser.deepest
  parser.deepest = parser.levels
  const { start } = parser
  const expression = parseOperators(parser, parseOperand(parser, floor), start, floor)
  if (deepest > parser.deepest) parser.deepest = deepest
  return expression
}

/** The operand of an infix operator: `[ "not" | "-" ] … primary` */
function parseOperand(parser: SyntaxParser, floor: number): Expression {
  if (parser.token === '-') return parseNegation(parser, floor)
  if (parser.token === 'not' && floor <= BINDING.not) return parseNot(parser)
  return parsePrimary(parser)
}

function parseOperators(parser: SyntaxParser, first: Expression, start: number, floor: number): Expression {
  let left = first
  let isCompared = false
  for (;;) {
    const { infix } = parser
    if (infix === 0 || infix < floor) break
    if (infix === BINDING.comparison) {
      if (isCompared) {
        fail(
          parser,
          'comparisons cannot be chained',
          'write "between … and …", "and" between two comparisons, or parentheses',
        )
      }
      isCompared = true
      left = parseComparison(parser, left, start)
    } else if (infix <= BINDING.and) left = parseLogic(parser, left, start)
    else if (infix === BINDING.cast) left = parseCast(parser, left, start)
    else if (infix === BINDING.step) left = parseStep(parser, left, start)
    else left = parseArithmetic(parser, left, start)
  }
  if (parser.start === parser.failedAt) note(parser, OPERATOR)
  return left
}

/** Parses the right operand. The left operand is now one level deeper. */
function parseRight(parser: SyntaxParser, floor: number): Expression {
  addLevel(parser)
  parser.levels++
  const right = parseExpression(parser, floor)
  parser.levels--
  return right
}

// ---- logic ------------------------------------------------------------------------------------------------

/** `or`, `and`: one flat node, also if parentheses group operands of the same operator. */
function parseLogic(parser: SyntaxParser, left: Expression, start: number): Logic {
  const kind = parser.token === 'or' ? 'or' : 'and'
  const floor = BINDING[kind] + 1
  const operands: Expression[] = []
  addOperand(operands, left, kind)
  addLevel(parser)
  parser.levels++
  while (parser.token === kind) {
    advance(parser)
    addOperand(operands, parseExpression(parser, floor), kind)
  }
  parser.levels--
  return { kind, operands, span: spanFrom(parser, start) }
}

function addOperand(operands: Expression[], operand: Expression, kind: Logic['kind']): void {
  if (operand.kind !== kind) operands.push(operand)
  else for (const part of operand.operands) operands.push(part)
}

/** `"not" expr`; the negation of an `exists` is part of its node. */
function parseNot(parser: SyntaxParser): Expression {
  const { start } = parser
  advance(parser)
  enterLevel(parser)
  const operand = parseExpression(parser, BINDING.not)
  parser.levels--
  const span = spanFrom(parser, start)
  return operand.kind === 'exists' && !operand.negated
    ? ({ kind: 'exists', negated: true, query: operand.query, span } satisfies Exists)
    : { kind: 'not', operand, span }
}

// ---- comparisons ------------------------------------------------------------------------------------------

/**
 * `comparison = = != <> < <= > >= · [not] like, ilike, similar to · regex · ~ · ~* · @> <@ && ? ?| ?& @@ · is
 * … · [not] between a and b · [not] in … · json_exists, json_query, json_value 'path'`
 */
function parseComparison(parser: SyntaxParser, left: Expression, start: number): Expression {
  const { token } = parser
  switch (token) {
    case 'is':
      return parseIs(parser, left, start)
    case 'not':
      advance(parser)
      return parseDeniable(parser, left, start, true)
    case 'in':
    case 'between':
    case 'like':
    case 'ilike':
    case 'similar':
      return parseDeniable(parser, left, start, false)
    case 'json_exists':
    case 'json_query':
    case 'json_value':
      return parseJsonTest(parser, left, start, token)
    default: {
      // The lexer assigns this precedence to no other token.
      const operator = token as ComparisonOperator
      advance(parser)
      const right = parseRight(parser, BINDING.concatenate)
      return { kind: 'comparison', operator, left, right, span: spanFrom(parser, start) } satisfies Comparison
    }
  }
}

/** `"is" [ "not" ] ( "null" | "true" | "false" | "distinct" "from" expr )` */
function parseIs(parser: SyntaxParser, operand: Expression, start: number): Expression {
  advance(parser)
  const negated = accept(parser, 'not')
  if (accept(parser, 'distinct')) {
    expect(parser, 'from')
    const right = parseRight(parser, BINDING.concatenate)
    return { kind: 'distinct from', negated, left: operand, right, span: spanFrom(parser, start) }
  }
  addLevel(parser)
  const what = expectOneOf(parser, 'null', 'true', 'false')
  return { kind: 'is', what, negated, operand, span: spanFrom(parser, start) }
}

/** `[not] in …`, `[not] between …`, `[not] like | ilike | similar to …`, after the `not`. */
function parseDeniable(parser: SyntaxParser, operand: Expression, start: number, negated: boolean): Expression {
  if (accept(parser, 'in')) return parseIn(parser, operand, start, negated)
  if (accept(parser, 'between')) return parseBetween(parser, operand, start, negated)
  return parsePattern(parser, operand, start, negated)
}

/** `( "like" | "ilike" | "similar" "to" ) expr` */
function parsePattern(parser: SyntaxParser, operand: Expression, start: number, negated: boolean): PatternMatch {
  const word = expectOneOf(parser, 'like', 'ilike', 'similar')
  if (word === 'similar') expect(parser, 'to')
  const operator = word === 'similar' ? 'similar to' : word
  const pattern = parseRight(parser, BINDING.concatenate)
  return { kind: 'pattern', operator, negated, operand, pattern, span: spanFrom(parser, start) }
}

/** `"between" expr "and" expr`, including its `and`. */
function parseBetween(parser: SyntaxParser, operand: Expression, start: number, negated: boolean): Between {
  const low = parseRight(parser, BINDING.concatenate)
  expect(parser, 'and')
  parser.levels++
  const high = parseExpression(parser, BINDING.concatenate)
  parser.levels--
  return { kind: 'between', negated, operand, low, high, span: spanFrom(parser, start) }
}

/** `"in" ( "(" exprs ")" | "(" get ")" | parameter )` */
function parseIn(parser: SyntaxParser, operand: Expression, start: number, negated: boolean): In {
  addLevel(parser)
  parser.levels++
  const set = parser.token === '(' ? parseSet(parser) : parseArrayParameter(parser)
  parser.levels--
  return { kind: 'in', negated, operand, set, span: spanFrom(parser, start) }
}

function parseSet(parser: SyntaxParser): InValues | SubQuery {
  const { start } = parser
  expect(parser, '(')
  if (parser.token === 'get' || parser.token === 'with') {
    const query = parser.grammar.query(parser)
    expect(parser, ')')
    return { kind: 'subquery', query, span: spanFrom(parser, start) }
  }
  if (parser.token === ')') {
    note(parser, 'an expression')
    fail(parser, 'in () has no values', 'write at least one, or compare with an array parameter: in :ids')
  }
  const values = parseList(parser, parseWhole)
  expect(parser, ')')
  return { kind: 'in values', values, span: spanFrom(parser, start) }
}

/** One array instead of a list, optionally with a cast. */
function parseArrayParameter(parser: SyntaxParser): In['set'] {
  const { start } = parser
  const parameter = parseParameter(parser)
  if (parameter === null) {
    is(parser, '(')
    return fail(parser)
  }
  let set: In['set'] = parameter
  while (accept(parser, '::')) {
    addLevel(parser)
    set = { kind: 'cast', operand: set, type: parseType(parser), span: spanFrom(parser, start) }
  }
  return set
}

/** `( "json_exists" | "json_query" | "json_value" ) 'path'` */
function parseJsonTest(parser: SyntaxParser, operand: Expression, start: number, test: JsonTest['test']): JsonTest {
  addLevel(parser)
  advance(parser)
  if (parser.token !== '#text') {
    note(parser, 'a JSON path in quotes')
    fail(parser)
  }
  const path = parser.value
  advance(parser)
  return { kind: 'json test', test, operand, path, span: spanFrom(parser, start) }
}

// ---- arithmetic and JSON operators ------------------------------------------------------------------------

/** `|| · + - · * / %`, left-associative. */
function parseArithmetic(parser: SyntaxParser, left: Expression, start: number): Arithmetic {
  // The lexer assigns these precedences to no other tokens.
  const operator = parser.token as Arithmetic['operator']
  const floor = parser.infix + 1
  advance(parser)
  const right = parseRight(parser, floor)
  return { kind: 'arithmetic', operator, left, right, span: spanFrom(parser, start) }
}

/** `unary -`. The minus sign of a number is part of the number, as in PostgreSQL. */
function parseNegation(parser: SyntaxParser, floor: number): Expression {
  const { start } = parser
  advance(parser)
  // If the operator to the left has a higher precedence, the minus takes only as much as that operator would.
  const inner = floor > BINDING.negate ? floor : BINDING.negate
  if (parser.token === '#integer' || parser.token === '#decimal') {
    const numberStart = parser.start
    const number = parseNumber(parser)
    if (parser.infix < inner) {
      const literal: Literal = { ...number, value: `-${number.value}`, span: spanFrom(parser, start) }
      return literal
    }
    enterLevel(parser)
    const operand = parseOperators(parser, number, numberStart, inner)
    parser.levels--
    return { kind: 'negate', operand, span: spanFrom(parser, start) }
  }
  enterLevel(parser)
  const operand = parseExpression(parser, inner)
  parser.levels--
  return { kind: 'negate', operand, span: spanFrom(parser, start) }
}

/** `-> ->> #> #>>`, left-associative. */
function parseStep(parser: SyntaxParser, operand: Expression, start: number): JsonStep {
  // The lexer assigns this precedence to no other token.
  const operator = parser.token as JsonStep['operator']
  advance(parser)
  const step = parseRight(parser, BINDING.step + 1)
  return { kind: 'json step', operator, operand, step, span: spanFrom(parser, start) }
}

/** `expr "::" type` */
function parseCast(parser: SyntaxParser, operand: Expression, start: number): Expression {
  addLevel(parser)
  advance(parser)
  return { kind: 'cast', operand, type: parseType(parser), span: spanFrom(parser, start) }
}
