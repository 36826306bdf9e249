/** The parser's state, and the primitives of all productions: test the current token, take it, or fail. */

import { nearest, WORDS } from '../../text/nearest.ts'
import type { Expression, Get, Name, Span, Statement, TableName } from '../tree/ast.ts'
import { IDENTIFIER_BYTES_MAX, utf8Length } from '../tree/identifier.ts'
import { NESTING_MAX } from '../tree/nesting.ts'
import { BINDING } from './binding.ts'
import { advance, type Comment, type Lexer, type Sign, type TokenType } from './lexer.ts'
import { QuerySyntaxError } from './syntax-error.ts'
import { INFIX_WORDS, type Keyword, ROLE } from './vocabulary.ts'

/** The productions that refer to each other recursively. */
export interface Grammar {
  /** Parses an expression whose operators have at least the precedence `floor`, a level of `BINDING`. */
  expression(parser: SyntaxParser, floor: number): Expression
  /** Parses a read in parentheses. */
  query(parser: SyntaxParser): Get
  statement(parser: SyntaxParser): Statement
}

/** The state of the parser: that of the lexer, and what the productions share. */
export interface SyntaxParser extends Lexer {
  readonly grammar: Grammar
  readonly dialect: Dialect
  /** Depth of the tree at the current token, counted as in `nesting.ts`. */
  levels: number
  /**
   * The deepest level in the expression being parsed. It grows if the expression becomes the left operand of
   * an operator.
   */
  deepest: number
  /**
   * Number of open parentheses around expressions. They create no node, so they need a separate limit; all
   * other brackets belong to a node that counts as a level.
   */
  groups: number
  /** Offsets of the last expression in parentheses, including the parentheses. */
  groupStart: number
  groupEnd: number
  /**
   * Brackets before this offset contain JSON without an object, and those in `notJson` contain no valid JSON.
   * Neither are scanned again.
   */
  plainUntil: number
  notJson: ReadonlySet<number>
  /** End of the last alias without `as`; it may be a misspelt keyword. */
  bareAliasEnd: number
  bareAlias: string
  /**
   * Offset of the error that a first pass found. Expectations at that offset are collected. -1 in the
   * first pass.
   */
  readonly failedAt: number
  readonly expected: string[]
}

/**
 * Thrown by the first pass, which collects no expectations. The second pass fails at the same offset with the
 * full error.
 */
export class Failure {
  readonly offset: number

  constructor(offset: number) {
    this.offset = offset
  }
}

/**
 * The kind of text, which determines its parameters in addition to `$1` and `:name`: the condition of a
 * policy has `$name`, the pattern of an allow-list has `?`.
 */
export type Dialect = 'query' | 'condition' | 'pattern'

/** Options of a parser. */
export interface ParserOptions {
  readonly dialect: Dialect
  readonly failedAt: number
}

const NO_OFFSETS: ReadonlySet<number> = new Set()

/** Creates a parser positioned before the first token. */
export function createParser(text: string, grammar: Grammar, { dialect, failedAt }: ParserOptions): SyntaxParser {
  // Listed individually: an object that spreads the lexer's is slow in V8, and parsing would take twelve
  // times as long.
  return {
    text,
    token: '#end',
    role: ROLE.name,
    isWord: false,
    infix: 0,
    start: 0,
    end: 0,
    before: 0,
    value: '',
    count: 0,
    comments: null,
    commentsEnd: 0,
    grammar,
    dialect,
    levels: 0,
    deepest: 0,
    groups: 0,
    groupStart: -1,
    groupEnd: -1,
    plainUntil: 0,
    notJson: NO_OFFSETS,
    bareAliasEnd: -1,
    bareAlias: '',
    failedAt,
    expected: [],
  }
}

/** Sets the list that collects comments and reads the first token. */
export function begin(parser: SyntaxParser, comments: Comment[] | null): SyntaxParser {
  parser.comments = comments
  advance(parser)
  return parser
}

// ---- testing and taking tokens ----------------------------------------------------------------------------

/** Reports whether the current token is this one. */
export function is(parser: SyntaxParser, token: Keyword | Sign): boolean {
  if (parser.token === token) return true
  if (parser.start === parser.failedAt) parser.expected.push(token)
  return false
}

/** Takes the token if it is this one, and returns whether it was. */
export function accept(parser: SyntaxParser, token: Keyword | Sign): boolean {
  if (!is(parser, token)) return false
  advance(parser)
  return true
}

/**
 * Takes the token, which must be this one.
 *
 * @throws QuerySyntaxError otherwise.
 */
export function expect(parser: SyntaxParser, token: Keyword | Sign): void {
  if (!is(parser, token)) fail(parser)
  advance(parser)
}

/**
 * Takes the token, which must be one of these.
 *
 * @throws QuerySyntaxError otherwise.
 */
export function expectOneOf<T extends Keyword>(parser: SyntaxParser, ...words: readonly T[]): T {
  const word = words.find(one => is(parser, one)) ?? fail(parser)
  advance(parser)
  return word
}

/** Records that something of this kind is expected here. */
export function note(parser: SyntaxParser, kind: string): void {
  if (parser.start === parser.failedAt) parser.expected.push(kind)
}

/** The span from `start` to the end of the last token taken. */
export function spanFrom(parser: SyntaxParser, start: number): Span {
  return { start, end: parser.before }
}

/** The token after the current one, without moving to it. */
export function peek(parser: SyntaxParser): TokenType {
  const { token, role, isWord, infix, start, end, before, value, count } = parser
  advance(parser)
  const next = parser.token
  parser.token = token
  parser.role = role
  parser.isWord = isWord
  parser.infix = infix
  parser.start = start
  parser.end = end
  parser.before = before
  parser.value = value
  parser.count = count
  return next
}

// ---- expressions, lists and levels ------------------------------------------------------------------------

/** `expr` */
export function parseWhole(parser: SyntaxParser): Expression {
  return parser.grammar.expression(parser, BINDING.any)
}

/** `[ word expr ]`; null if the word is absent. */
export function parseAfter(parser: SyntaxParser, word: Keyword): Expression | null {
  return accept(parser, word) ? parseWhole(parser) : null
}

/** `"(" get ")"` */
export function parseEnclosedQuery(parser: SyntaxParser): Get {
  expect(parser, '(')
  const query = parser.grammar.query(parser)
  expect(parser, ')')
  return query
}

/** `item { "," item }` */
export function parseList<T>(parser: SyntaxParser, item: (parser: SyntaxParser) => T): readonly T[] {
  const items = [item(parser)]
  while (accept(parser, ',')) items.push(item(parser))
  return items
}

/**
 * Enters a node that counts as a level; `parser.levels--` leaves it.
 *
 * @throws QuerySyntaxError if the tree is too deep.
 */
export function enterLevel(parser: SyntaxParser): void {
  if (++parser.levels > parser.deepest) deepen(parser, parser.levels)
}

/**
 * Enters parentheses around an expression; `parser.groups--` leaves them.
 *
 * @throws QuerySyntaxError if they are nested too deep.
 */
export function enterGroup(parser: SyntaxParser): void {
  if (++parser.groups > NESTING_MAX) refuseNesting(parser)
}

/**
 * Counts one more level because the expression parsed so far becomes an operand.
 *
 * @throws QuerySyntaxError if the tree is too deep.
 */
export function addLevel(parser: SyntaxParser): void {
  deepen(parser, parser.deepest + 1)
}

function deepen(parser: SyntaxParser, level: number): void {
  if (level > NESTING_MAX) refuseNesting(parser)
  parser.deepest = level
}

function refuseNesting(parser: SyntaxParser): never {
  fail(
    parser,
    `the query is nested more than ${NESTING_MAX} levels deep`,
    'split it, for example with "with"; long lists and chains of "and" and "or" do not count',
  )
}

// ---- names ------------------------------------------------------------------------------------------------

/** Tokens that cannot start an operand. A keyword followed by one of them is a name. */
const AFTER_NAMES: ReadonlySet<TokenType> = new Set<TokenType>([
  ...([',', ')', ']', '}', '.', '.*', ';', '::', '=', '<>', '<', '<=', '>', '>=', '~', '~*', '@>', '<@'] as const),
  ...(['&&', '?', '?|', '?&', '@@', '||', '+', '/', '%', '->', '->>', '#>', '#>>', '#end'] as const),
  ...(['and', 'as', 'asc', 'between', 'desc', 'ilike', 'in', 'is', 'like', 'or', 'regex', 'similar'] as const),
])

/**
 * Reports whether the token is a name here: a word or a name in backticks. A keyword that starts a clause is
 * a name only if no clause can start here.
 */
export function isName(parser: SyntaxParser): boolean {
  if (!parser.isWord) return parser.token === '#quoted'
  switch (parser.role) {
    case ROLE.name:
    case ROLE.call:
      return true
    case ROLE.beforeBy:
      return peek(parser) !== 'by'
    default: {
      const next = peek(parser)
      return AFTER_NAMES.has(next) && !isPlaceholder(parser, next)
    }
  }
}

/** Reports whether the token, in the position of an operand, is the placeholder of a pattern. */
export function isPlaceholder(parser: SyntaxParser, token: TokenType): boolean {
  return token === '?' && parser.dialect === 'pattern'
}

/**
 * Parses `name` without its backticks. `kind` describes what it names, for the error.
 *
 * @throws QuerySyntaxError if the token is not a name.
 */
export function parseName(parser: SyntaxParser, kind: string): string {
  if (!isName(parser)) {
    note(parser, kind)
    fail(parser)
  }
  return takeName(parser)
}

/**
 * Takes a token that is known to be a name. After a dot, after `as` and in similar positions, any word is
 * one.
 *
 * @throws QuerySyntaxError if the name is too long.
 */
export function takeName(parser: SyntaxParser): string {
  const { start, end } = parser
  const name = takeWord(parser)
  const bytes = utf8Length(name)
  if (bytes > IDENTIFIER_BYTES_MAX)
    failAt(parser, start, end, `the name has ${bytes} bytes; at most ${IDENTIFIER_BYTES_MAX} are allowed`, null)
  return name
}

/** Takes a word whose length is not limited by PostgreSQL: a parameter, or a JSON key after a dot. */
export function takeWord(parser: SyntaxParser): string {
  const name = parser.isWord ? parser.text.slice(parser.start, parser.end) : parser.value
  advance(parser)
  return name
}

/**
 * Parses a name in a position where only a name is possible, so every keyword is one.
 *
 * @throws QuerySyntaxError if the token is not a word.
 */
export function parseAnyName(
  parser: SyntaxParser,
  kind: string,
  take: (parser: SyntaxParser) => string = takeName,
): string {
  if (!parser.isWord && parser.token !== '#quoted') {
    note(parser, kind)
    fail(parser)
  }
  return take(parser)
}

/** `name`, as a node. */
export function parseNameNode(parser: SyntaxParser, kind: string): Name {
  const { start } = parser
  const text = parseName(parser, kind)
  return { kind: 'name', text, span: spanFrom(parser, start) }
}

/** `"(" name { "," name } ")"` */
export function parseNames(parser: SyntaxParser): readonly Name[] {
  expect(parser, '(')
  const names = parseList(parser, parseColumnName)
  expect(parser, ')')
  return names
}

/** `name` of a column, as a node. */
export function parseColumnName(parser: SyntaxParser): Name {
  return parseNameNode(parser, 'a column name')
}

/** `table = name [ "." name ]` */
export function parseTable(parser: SyntaxParser, kind: string = 'a table name'): TableName {
  const { start } = parser
  const first = parseName(parser, kind)
  if (!accept(parser, '.')) return { kind: 'table', schema: null, name: first, span: spanFrom(parser, start) }
  const name = parseAnyName(parser, kind)
  return { kind: 'table', schema: first, name, span: spanFrom(parser, start) }
}

/** `alias = [ "as" ] name`; without `as` it cannot be a keyword. Null if absent. */
export function parseAlias(parser: SyntaxParser): string | null {
  if (parser.token === 'as') {
    advance(parser)
    return parseAnyName(parser, 'an alias')
  }
  if (parser.token !== '#word' && parser.token !== '#quoted') {
    note(parser, 'an alias')
    return null
  }
  const isWord = parser.token === '#word'
  const alias = takeName(parser)
  if (isWord) {
    parser.bareAlias = alias
    parser.bareAliasEnd = parser.before
  }
  return alias
}

// ---- errors -----------------------------------------------------------------------------------------------

/** Words of other languages, with the keyword to suggest. */
const FOREIGN_KEYWORDS: ReadonlyMap<string, string> = new Map([
  ['select', 'get'],
  ['fetch', 'get'],
  ['upsert', 'add … conflict … update'],
  ['remove', 'del'],
])

/**
 * Reports an error at the current token. Without a reason, the error is that the token is not among the
 * expected ones.
 *
 * @throws QuerySyntaxError always.
 */
export function fail(parser: SyntaxParser, reason: string | null = null, hint: string | null = null): never {
  failAt(parser, parser.start, parser.end, reason, hint)
}

/**
 * Like `fail`, at a different position than the current token.
 *
 * @throws QuerySyntaxError always.
 */
export function failAt(
  parser: SyntaxParser,
  start: number,
  end: number,
  reason: string | null,
  hint: string | null,
): never {
  // Expectations are recorded only for the current token.
  if (parser.failedAt < 0) throw new Failure(parser.start)
  const expected = parser.expected.map(word => (word === 'order' || word === 'group' ? `${word} by` : word))
  throw new QuerySyntaxError(parser.text, { start, end, expected, reason, hint: hint ?? suggestion(parser) })
}

/** The keyword that was probably meant, instead of the current word or of a bare alias before it. */
function suggestion(parser: SyntaxParser): string | null {
  const candidates = parser.expected.filter(word => /^[a-z_]+$/.test(word))
  if (parser.expected.includes(OPERATOR)) candidates.push(...INFIX_WORDS)
  if (parser.isWord) {
    const word = parser.text.slice(parser.start, parser.end)
    const meant = FOREIGN_KEYWORDS.get(word.toLowerCase()) ?? nearest(word, candidates, WORDS)
    if (meant !== null && meant !== word.toLowerCase()) return `did you mean "${meant}"?`
  }
  if (parser.bareAliasEnd !== parser.before) return null
  const meant = nearest(parser.bareAlias, candidates, WORDS)
  return meant === null ? null : `did you mean "${meant}" instead of "${parser.bareAlias}"?`
}

/** How an operator appears in the list of what is expected. */
export const OPERATOR = 'an operator'
