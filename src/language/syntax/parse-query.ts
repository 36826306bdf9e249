/** Reads: `get`, `count`, `export`, their clauses and compounds. */

import type {
  CommonTable,
  Compound,
  Count,
  Distinct,
  Expression,
  Field,
  Get,
  Join,
  JoinType,
  Lock,
  NamedWindow,
  Nest,
  Order,
  Purpose,
  Source,
  With,
} from '../tree/ast.ts'
import { failIfMisplaced } from './clause-order.ts'
import { advance } from './lexer.ts'
import { parseOrder, parseWindowBody } from './parse-function.ts'
import { parseNumber, parseParameter } from './parse-primary.ts'
import {
  accept,
  enterLevel,
  expect,
  expectOneOf,
  fail,
  is,
  note,
  parseAfter,
  parseAlias,
  parseAnyName,
  parseEnclosedQuery,
  parseList,
  parseNameNode,
  parseNames,
  parseTable,
  parseWhole,
  peek,
  type SyntaxParser,
  spanFrom,
} from './parser.ts'

const NONE: readonly never[] = []

// ---- with -------------------------------------------------------------------------------------------------

/** `with = "with" [ "recursive" ] cte { "," cte }`; null if absent. */
export function parseWith(parser: SyntaxParser): With | null {
  const { start } = parser
  if (!accept(parser, 'with')) return null
  const recursive = isRecursive(parser) && accept(parser, 'recursive')
  // The common tables are nested in the statement that follows, which counts as a level.
  enterLevel(parser)
  const tables = parseList(parser, parseCommonTable)
  parser.levels--
  return { kind: 'with', recursive, tables, span: spanFrom(parser, start) }
}

/**
 * Reports whether `recursive` is the keyword; in `with recursive as (…)` it is the name of a common table.
 */
function isRecursive(parser: SyntaxParser): boolean {
  if (!is(parser, 'recursive')) return false
  const next = peek(parser)
  return next !== 'as' && next !== '('
}

/** `cte = name [ "(" name { "," name } ")" ] "as" "(" ( statement | compound ) ")"` */
function parseCommonTable(parser: SyntaxParser): CommonTable {
  const { start } = parser
  const name = parseNameNode(parser, 'the name of a common table')
  const columns = is(parser, '(') ? parseNames(parser) : NONE
  expect(parser, 'as')
  expect(parser, '(')
  const statement = parser.grammar.statement(parser)
  if (!is(parser, ')')) failIfMisplaced(parser, statement)
  expect(parser, ')')
  return { kind: 'cte', name, columns, statement, span: spanFrom(parser, start) }
}

// ---- get --------------------------------------------------------------------------------------------------

/** A read in parentheses: `[ with ] get`. The caller parses the closing parenthesis. */
export function parseQuery(parser: SyntaxParser): Get {
  const { start } = parser
  const clause = parseWith(parser)
  if (!is(parser, 'get')) fail(parser)
  const get = parseGet(parser, clause, start)
  if (!is(parser, ')')) failIfMisplaced(parser, get)
  return get
}

/**
 * `get = "get" [ "distinct" [ "on" "(" exprs ")" ] ] source { join } { nest } [ fields ] [ where ] [ group ]
 * [ having ] [ window ] [ order ] [ limit ] [ offset ] [ lock ]`, `compound = get { ( "union" | "intersect" |
 * "except" ) [ "all" ] get }`; `export` has the same form as `get`
 */
export function parseGet(parser: SyntaxParser, clause: With | null, start: number): Get {
  const purpose: Purpose = parser.token === 'export' ? 'export' : 'rows'
  return parseRead(parser, purpose, clause, start, true)
}

/** A read. As a part of a compound it has no order, limit, offset and lock; they belong to the compound. */
function parseRead(parser: SyntaxParser, purpose: Purpose, clause: With | null, start: number, isWhole: boolean): Get {
  advance(parser)
  enterLevel(parser)
  const distinct = parser.token === 'distinct' ? parseDistinct(parser) : null
  const source = parseSource(parser)
  const joins = parseJoins(parser)
  const nests = parseNests(parser)
  const fields = accept(parser, 'fields') ? parseList(parser, parseField) : NONE
  const where = parseAfter(parser, 'where')
  const groupBy = parseGroups(parser)
  const having = parseAfter(parser, 'having')
  const windows = is(parser, 'window') ? parseWindows(parser) : NONE
  const compounds = isWhole ? parseCompounds(parser) : NONE
  const orderBy = isWhole ? parseOrder(parser) : NONE
  const limit = isWhole && accept(parser, 'limit') ? parseCount(parser) : null
  const offset = isWhole && accept(parser, 'offset') ? parseCount(parser) : null
  const lock = isWhole ? parseLock(parser) : null
  parser.levels--
  return {
    kind: 'get',
    purpose,
    with: clause,
    distinct,
    source,
    joins,
    nests,
    fields,
    where,
    groupBy,
    having,
    windows,
    compounds,
    orderBy,
    limit,
    offset,
    lock,
    span: spanFrom(parser, start),
  }
}

/** `count = ( "count" | "cnt" ) source { join } [ where ]` */
export function parseCountRows(parser: SyntaxParser, clause: With | null, start: number): Get {
  advance(parser)
  enterLevel(parser)
  const source = parseSource(parser)
  const joins = parseJoins(parser)
  const where = parseAfter(parser, 'where')
  parser.levels--
  return {
    kind: 'get',
    purpose: 'count',
    with: clause,
    distinct: null,
    source,
    joins,
    nests: NONE,
    fields: NONE,
    where,
    groupBy: NONE,
    having: null,
    windows: NONE,
    compounds: NONE,
    orderBy: NONE,
    limit: null,
    offset: null,
    lock: null,
    span: spanFrom(parser, start),
  }
}

/** `"distinct" [ "on" "(" exprs ")" ]` */
function parseDistinct(parser: SyntaxParser): Distinct {
  const { start } = parser
  advance(parser)
  if (!accept(parser, 'on')) return { kind: 'distinct', on: NONE, span: spanFrom(parser, start) }
  expect(parser, '(')
  const on = parseList(parser, parseWhole)
  expect(parser, ')')
  return { kind: 'distinct', on, span: spanFrom(parser, start) }
}

/**
 * `{ ( "union" | "intersect" | "except" ) [ "all" ] ( get | "(" get ")" ) }`. A part in parentheses can have
 * its own order and limit.
 */
function parseCompounds(parser: SyntaxParser): readonly Compound[] {
  if (compoundOperator(parser) === null) return NONE
  const compounds: Compound[] = []
  for (;;) {
    const operator = compoundOperator(parser)
    if (operator === null) return compounds
    const { start } = parser
    advance(parser)
    const all = accept(parser, 'all')
    const query = is(parser, '(') ? parseEnclosedQuery(parser) : parseBarePart(parser)
    compounds.push({ kind: 'compound', operator, all, query, span: spanFrom(parser, start) })
  }
}

function compoundOperator(parser: SyntaxParser): Compound['operator'] | null {
  return is(parser, 'union') ? 'union' : is(parser, 'intersect') ? 'intersect' : is(parser, 'except') ? 'except' : null
}

function parseBarePart(parser: SyntaxParser): Get {
  if (!is(parser, 'get')) fail(parser)
  return parseRead(parser, 'rows', null, parser.start, false)
}

// ---- sources ----------------------------------------------------------------------------------------------

/** `source = table [ alias ] [ "[" expr "]" ] | "(" get ")" alias` */
export function parseSource(parser: SyntaxParser): Source {
  const { start } = parser
  if (is(parser, '(')) {
    const query = parseEnclosedQuery(parser)
    const alias = parseAlias(parser)
    if (alias === null) fail(parser, 'a query in parentheses needs an alias here', 'write (get …) as name')
    return { kind: 'query source', query, alias, span: spanFrom(parser, start) }
  }
  const table = parseTable(parser)
  const alias = parseAlias(parser)
  let condition: Expression | null = null
  if (accept(parser, '[')) {
    condition = parseWhole(parser)
    expect(parser, ']')
  }
  return { kind: 'table source', table, alias, condition, span: spanFrom(parser, start) }
}

/** `{ join }` */
export function parseJoins(parser: SyntaxParser): readonly Join[] {
  let type = joinType(parser)
  if (type === null) return NONE
  const joins: Join[] = []
  for (; type !== null; type = joinType(parser)) joins.push(parseJoin(parser, type))
  return joins
}

/**
 * The type of the join that the current token starts; null if it starts none. Plain `join` is a left join.
 */
function joinType(parser: SyntaxParser): JoinType | null {
  switch (parser.token) {
    case 'join':
      return 'left'
    case 'left':
    case 'right':
    case 'full':
    case 'inner':
    case 'cross':
      return parser.token
    default:
      is(parser, 'join')
      return null
  }
}

/**
 * `join = [ "left" | "right" | "full" | "inner" | "cross" ] "join" [ "lateral" ] source [ "on" ( "true" |
 * expr ) ]`
 */
function parseJoin(parser: SyntaxParser, type: JoinType): Join {
  const { start } = parser
  if (parser.token !== 'join') advance(parser)
  expect(parser, 'join')
  const lateral = accept(parser, 'lateral')
  const source = parseSource(parser)
  const on = parseAfter(parser, 'on')
  return { kind: 'join', type, lateral, source, on, span: spanFrom(parser, start) }
}

// ---- nests ------------------------------------------------------------------------------------------------

/** `{ nest }` */
function parseNests(parser: SyntaxParser): readonly Nest[] {
  if (!is(parser, 'nest')) return NONE
  const nests: Nest[] = []
  while (is(parser, 'nest')) nests.push(parseNest(parser))
  return nests
}

/**
 * `nest = "nest" [ "many" ] table [ alias ] [ "on" expr ] [ "{" [ fields ] { nest } [ where ] [ order ] [
 * limit ] [ offset ] "}" ]`
 */
function parseNest(parser: SyntaxParser): Nest {
  const { start } = parser
  advance(parser)
  enterLevel(parser)
  const many = accept(parser, 'many')
  const table = parseTable(parser)
  const alias = parseAlias(parser)
  const on = parseAfter(parser, 'on')
  const body = is(parser, '{') ? parseNestBody(parser) : EMPTY_BODY
  parser.levels--
  const { fields, nests, where, orderBy, limit, offset } = body
  const span = spanFrom(parser, start)
  return { kind: 'nest', many, table, alias, name: null, on, fields, nests, where, orderBy, limit, offset, span }
}

type NestBody = Pick<Nest, 'fields' | 'nests' | 'where' | 'orderBy' | 'limit' | 'offset'>

const EMPTY_BODY: NestBody = { fields: NONE, nests: NONE, where: null, orderBy: NONE, limit: null, offset: null }

function parseNestBody(parser: SyntaxParser): NestBody {
  expect(parser, '{')
  const fields = accept(parser, 'fields') ? parseList(parser, parseField) : NONE
  const nests = parseNests(parser)
  const where = parseAfter(parser, 'where')
  const orderBy: readonly Order[] = parseOrder(parser)
  const limit = accept(parser, 'limit') ? parseCount(parser) : null
  const offset = accept(parser, 'offset') ? parseCount(parser) : null
  if (!is(parser, '}')) failIfMisplaced(parser, 'nest')
  expect(parser, '}')
  return { fields, nests, where, orderBy, limit, offset }
}

// ---- clauses ----------------------------------------------------------------------------------------------

/** `field = "*" | name ".*" | expr [ "as" name ]` */
export function parseField(parser: SyntaxParser): Field {
  const { start } = parser
  if (accept(parser, '*')) return { kind: 'star', of: null, span: spanFrom(parser, start) }
  const expression = parseWhole(parser)
  if (expression.kind === 'column' && expression.path.length === 1 && accept(parser, '.*')) {
    return { kind: 'star', of: expression.path[0] ?? '', span: spanFrom(parser, start) }
  }
  const alias = accept(parser, 'as') ? parseAnyName(parser, 'an alias') : null
  return { kind: 'field', expression, alias, span: spanFrom(parser, start) }
}

/** `group = "group by" exprs` */
function parseGroups(parser: SyntaxParser): readonly Expression[] {
  if (!accept(parser, 'group')) return NONE
  expect(parser, 'by')
  return parseList(parser, parseWhole)
}

/**
 * `window = "window" name "as" "(" over-body ")"`; further windows follow after a comma or another `window`.
 */
function parseWindows(parser: SyntaxParser): readonly NamedWindow[] {
  const windows: NamedWindow[] = []
  while (accept(parser, windows.length > 0 && parser.token === ',' ? ',' : 'window')) windows.push(parseWindow(parser))
  return windows
}

function parseWindow(parser: SyntaxParser): NamedWindow {
  const { start } = parser
  const name = parseNameNode(parser, 'the name of a window')
  expect(parser, 'as')
  const body = parseWindowBody(parser)
  return { kind: 'named window', name, body, span: spanFrom(parser, start) }
}

/**
 * `limit = "limit" ( integer | parameter )`, `offset = "offset" ( integer | parameter )`, after the keyword
 */
function parseCount(parser: SyntaxParser): Count {
  if (parser.token === '#integer') return parseNumber(parser)
  note(parser, 'a whole number')
  return parseParameter(parser) ?? fail(parser)
}

/** `lock = "for" ( "update" | "share" ) [ "skip locked" | "nowait" ]` */
function parseLock(parser: SyntaxParser): Lock | null {
  const { start } = parser
  if (!accept(parser, 'for')) return null
  const strength = expectOneOf(parser, 'update', 'share')
  let wait: Lock['wait'] = null
  if (accept(parser, 'nowait')) wait = 'nowait'
  else if (accept(parser, 'skip')) {
    expect(parser, 'locked')
    wait = 'skip locked'
  }
  return { kind: 'lock', strength, wait, span: spanFrom(parser, start) }
}
