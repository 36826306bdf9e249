/** Function calls, with their windows. */

import type {
  ColumnReference,
  Expression,
  Frame,
  FrameBound,
  FunctionCall,
  Literal,
  Order,
  WindowBody,
} from '../tree/ast.ts'
import { BINDING } from './binding.ts'
import { advance } from './lexer.ts'
import {
  accept,
  enterLevel,
  expect,
  expectOneOf,
  failAt,
  is,
  isName,
  note,
  parseAfter,
  parseAnyName,
  parseList,
  parseName,
  parseWhole,
  peek,
  type SyntaxParser,
  spanFrom,
  takeName,
} from './parser.ts'

const NONE: readonly never[] = []

/** `qname "(" [ "distinct" ] args [ order ] ")" [ filter ] [ over ]`, or `f(*)`; starts after the name. */
export function parseCall(parser: SyntaxParser, { path, span }: ColumnReference): FunctionCall {
  const [first = '', second] = path
  if (path.length > 2)
    failAt(parser, span.start, span.end, 'a function name has the form function or schema.function', null)
  enterLevel(parser)
  expect(parser, '(')
  const star = accept(parser, '*')
  const distinct = !star && parser.token === 'distinct' && !isName(parser) && accept(parser, 'distinct')
  const args = star || parser.token === ')' || (!distinct && isOrder(parser)) ? NONE : parseList(parser, parseWhole)
  const orderBy = star ? NONE : parseOrder(parser)
  expect(parser, ')')
  const filter = parser.token === 'filter' ? parseFilter(parser) : null
  const over = parser.token === 'over' ? parseOver(parser) : null
  if (parser.start === parser.failedAt) {
    is(parser, 'filter')
    is(parser, 'over')
  }
  parser.levels--
  return {
    kind: 'function',
    schema: second === undefined ? null : first,
    name: second ?? first,
    distinct,
    star,
    arguments: args,
    orderBy,
    filter,
    over,
    span: spanFrom(parser, span.start),
  }
}

/** Reports whether an order follows, as in `mode(order by x)`; `order` alone can be a column. */
function isOrder(parser: SyntaxParser): boolean {
  return parser.token === 'order' && !isName(parser)
}

/** `"filter" "(" "where" expr ")"` */
function parseFilter(parser: SyntaxParser): Expression {
  advance(parser)
  expect(parser, '(')
  expect(parser, 'where')
  const filter = parseWhole(parser)
  expect(parser, ')')
  return filter
}

/** `"over" ( name | "(" over-body ")" )` */
function parseOver(parser: SyntaxParser): string | WindowBody {
  advance(parser)
  return is(parser, '(') ? parseWindowBody(parser) : parseName(parser, 'the name of a window')
}

// ---- functions with special syntax ------------------------------------------------------------------------

/** `"extract" "(" name "from" expr ")"`: a call whose first argument is the field as a text */
export function parseExtract(parser: SyntaxParser): FunctionCall {
  const { start } = parser
  advance(parser)
  enterLevel(parser)
  expect(parser, '(')
  const isText = parser.token === '#text'
  const field = parseExtractField(parser, isText)
  // The ordinary call syntax also works: extract('day', x).
  if (!isText || !accept(parser, ',')) expect(parser, 'from')
  const source = parseWhole(parser)
  expect(parser, ')')
  parser.levels--
  return plainCall(parser, start, 'extract', [field, source])
}

/** `day`, or `'day'`, which PostgreSQL accepts too. */
function parseExtractField(parser: SyntaxParser, isText: boolean): Literal {
  const { start } = parser
  const text = parser.value
  if (isText) advance(parser)
  const value = isText ? text : parseAnyName(parser, 'a field such as day')
  return { kind: 'literal', type: 'text', value: value.toLowerCase(), span: spanFrom(parser, start) }
}

/** `"substring" "(" expr [ "from" expr ] [ "for" expr ] ")"`, or with commas. */
export function parseSubstring(parser: SyntaxParser): FunctionCall {
  const { start } = parser
  advance(parser)
  enterLevel(parser)
  expect(parser, '(')
  const args = [...parseList(parser, parseWhole)]
  if (args.length === 1) {
    const from = parseAfter(parser, 'from')
    const { start: at } = parser
    const length = parseAfter(parser, 'for')
    if (from !== null) args.push(from)
    // Without "from", the substring starts at the first character.
    else if (length !== null) args.push({ kind: 'literal', type: 'integer', value: '1', span: { start: at, end: at } })
    if (length !== null) args.push(length)
  }
  expect(parser, ')')
  parser.levels--
  return plainCall(parser, start, 'substring', args)
}

function plainCall(parser: SyntaxParser, start: number, name: string, args: readonly Expression[]): FunctionCall {
  return {
    kind: 'function',
    schema: null,
    name,
    distinct: false,
    star: false,
    arguments: args,
    orderBy: NONE,
    filter: null,
    over: null,
    span: spanFrom(parser, start),
  }
}

// ---- order and windows ------------------------------------------------------------------------------------

/**
 * `order = "order by" expr [ "asc" | "desc" ] [ "nulls" ( "first" | "last" ) ] { "," … }`; empty if absent.
 */
export function parseOrder(parser: SyntaxParser): readonly Order[] {
  if (!accept(parser, 'order')) return NONE
  expect(parser, 'by')
  return parseList(parser, parseOrderItem)
}

function parseOrderItem(parser: SyntaxParser): Order {
  const { start } = parser
  const expression = parseWhole(parser)
  const descending = accept(parser, 'desc')
  if (!descending) accept(parser, 'asc')
  let nulls: Order['nulls'] = null
  if (accept(parser, 'nulls')) {
    nulls = expectOneOf(parser, 'first', 'last')
  }
  return { kind: 'order', expression, descending, nulls, span: spanFrom(parser, start) }
}

/** `over-body = [ name ] [ "partition" "by" exprs ] [ order ] [ frame ]`, in its parentheses */
export function parseWindowBody(parser: SyntaxParser): WindowBody {
  const { start } = parser
  expect(parser, '(')
  const base = isWindowBase(parser) ? takeName(parser) : null
  let partitionBy: readonly Expression[] = NONE
  if (accept(parser, 'partition')) {
    expect(parser, 'by')
    partitionBy = parseList(parser, parseWhole)
  }
  const orderBy = parseOrder(parser)
  const frame = parseFrame(parser)
  expect(parser, ')')
  return { kind: 'window', base, partitionBy, orderBy, frame, span: spanFrom(parser, start) }
}

/** Reports whether the name of a window follows. Every keyword that can follow instead starts a clause. */
function isWindowBase(parser: SyntaxParser): boolean {
  note(parser, 'the name of a window')
  switch (parser.token) {
    case 'rows':
    case 'range':
    case 'groups': {
      const next = peek(parser)
      return (
        next === ')' ||
        next === 'order' ||
        next === 'partition' ||
        next === 'rows' ||
        next === 'range' ||
        next === 'groups'
      )
    }
    default:
      return isName(parser)
  }
}

/** `frame = ( "rows" | "range" | "groups" ) ( bound | "between" bound "and" bound )` */
function parseFrame(parser: SyntaxParser): Frame | null {
  const { start } = parser
  const unit = is(parser, 'rows') ? 'rows' : is(parser, 'range') ? 'range' : is(parser, 'groups') ? 'groups' : null
  if (unit === null) return null
  advance(parser)
  if (!accept(parser, 'between')) {
    const bound = parseBound(parser)
    return { kind: 'frame', unit, start: bound, end: null, span: spanFrom(parser, start) }
  }
  const first = parseBound(parser)
  expect(parser, 'and')
  const last = parseBound(parser)
  return { kind: 'frame', unit, start: first, end: last, span: spanFrom(parser, start) }
}

/**
 * `bound = "unbounded" ( "preceding" | "following" ) | "current" "row" | expr ( "preceding" | "following" )`
 */
function parseBound(parser: SyntaxParser): FrameBound {
  const { start } = parser
  if (accept(parser, 'current')) {
    expect(parser, 'row')
    return { kind: 'current row', span: spanFrom(parser, start) }
  }
  if (accept(parser, 'unbounded')) {
    const side = parseSide(parser)
    return { kind: `unbounded ${side}`, span: spanFrom(parser, start) }
  }
  const offset = parser.grammar.expression(parser, BINDING.concatenate)
  const kind = parseSide(parser)
  return { kind, offset, span: spanFrom(parser, start) }
}

function parseSide(parser: SyntaxParser): 'preceding' | 'following' {
  return expectOneOf(parser, 'preceding', 'following')
}
