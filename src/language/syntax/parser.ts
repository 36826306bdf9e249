/** What every production is written with: looking at the current token, taking it, and refusing it. */

import { nearest, WORDS } from '../../text/nearest.ts'
import type { Expression, Get, Name, Span, Statement, TableName } from '../tree/ast.ts'
import { IDENTIFIER_BYTES_MAX, utf8Length } from '../tree/identifier.ts'
import { NESTING_MAX } from '../tree/nesting.ts'
import { BINDING } from './binding.ts'
import { advance, type Comment, type Lexer, type Sign, type Token } from './lexer.ts'
import { QuerySyntaxError } from './syntax-error.ts'
import { INFIX_WORDS, type Keyword, ROLE } from './vocabulary.ts'

/** The productions that contain each other. */
export interface Grammar {
  /** An expression whose operators bind at least as tightly as `floor`, a level of `BINDING`. */
  expression(parser: Parser, floor: number): Expression
  /** A read as it stands in parentheses. */
  query(parser: Parser): Get
  statement(parser: Parser): Statement
}

export interface Parser extends Lexer {
  readonly grammar: Grammar
  readonly dialect: Dialect
  /** Levels of the tree around the current token, counted as `nesting.ts` counts them. */
  levels: number
  /** The deepest level below the expression that is being parsed: what was a whole becomes the left operand of the next operator. */
  deepest: number
  /**
   * Parentheses around expressions that are open at the current token. Each of them may be needed only for a level of the tree, but a text
   * can consist of nothing else; all other brackets belong to a node that is a level.
   */
  groups: number
  /** Offsets of the last expression that stood in parentheses of its own, those included. */
  groupStart: number
  groupEnd: number
  /** Brackets before this offset hold JSON without an object, those of `notJson` no JSON: neither is looked through again. */
  plainUntil: number
  notJson: ReadonlySet<number>
  /** The end of the last alias that was written without `as`: a misspelt keyword looks like one. */
  bareAliasEnd: number
  bareAlias: string
  /** Where the text failed to parse before; what is asked for at that offset is written down. -1: not yet. */
  readonly failedAt: number
  readonly expected: string[]
}

/** Thrown by the first pass, which is in a hurry: the second one goes the same way and knows what to write down. */
export class Failure {
  readonly offset: number

  constructor(offset: number) {
    this.offset = offset
  }
}

/** What is a parameter beside `$1` and `:name`: `$name` in the condition of a policy, `?` in the pattern of an allow-list. */
export type Dialect = 'query' | 'condition' | 'pattern'

export interface ParserOptions {
  readonly dialect: Dialect
  readonly failedAt: number
}

const NO_OFFSETS: ReadonlySet<number> = new Set()

export function createParser(text: string, grammar: Grammar, { dialect, failedAt }: ParserOptions): Parser {
  // Spelt out: made by spreading the lexer's, the object is a slow one for V8, and parsing takes twelve times as long.
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

/** The parser with comments kept, at its first token. */
export function begin(parser: Parser, comments: Comment[] | null): Parser {
  parser.comments = comments
  advance(parser)
  return parser
}

// ---- looking and taking ------------------------------------------------------------------------------------

/** Whether this is the current token. */
export function is(parser: Parser, token: Keyword | Sign): boolean {
  if (parser.token === token) return true
  if (parser.start === parser.failedAt) parser.expected.push(token)
  return false
}

/** Takes the token if it is this one. */
export function accept(parser: Parser, token: Keyword | Sign): boolean {
  if (!is(parser, token)) return false
  advance(parser)
  return true
}

/** Takes the token, which must be this one. */
export function expect(parser: Parser, token: Keyword | Sign): void {
  if (!is(parser, token)) fail(parser)
  advance(parser)
}

/** Takes the token, which must be one of these. */
export function expectOneOf<T extends Keyword>(parser: Parser, ...words: readonly T[]): T {
  const word = words.find(one => is(parser, one)) ?? fail(parser)
  advance(parser)
  return word
}

/** Says that something of this kind would be possible here. */
export function note(parser: Parser, kind: string): void {
  if (parser.start === parser.failedAt) parser.expected.push(kind)
}

/** From `start` to the end of the last token taken. */
export function spanFrom(parser: Parser, start: number): Span {
  return { start, end: parser.before }
}

/** What the token after the current one is; the parser stays where it is. */
export function peek(parser: Parser): Token {
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

// ---- expressions, lists and levels ------------------------------------------------------------------------------------

/** `expr` */
export function parseWhole(parser: Parser): Expression {
  return parser.grammar.expression(parser, BINDING.any)
}

/** `[ word expr ]`; null where the word does not stand. */
export function parseAfter(parser: Parser, word: Keyword): Expression | null {
  return accept(parser, word) ? parseWhole(parser) : null
}

/** `"(" get ")"` */
export function parseEnclosedQuery(parser: Parser): Get {
  expect(parser, '(')
  const query = parser.grammar.query(parser)
  expect(parser, ')')
  return query
}

/** `item { "," item }` */
export function listOf<T>(parser: Parser, item: (parser: Parser) => T): readonly T[] {
  const items = [item(parser)]
  while (accept(parser, ',')) items.push(item(parser))
  return items
}

/** Enters a node that is a level of the tree; `parser.levels--` leaves it. */
export function enter(parser: Parser): void {
  if (++parser.levels > parser.deepest) deepen(parser, parser.levels)
}

/** Enters parentheses around an expression; `parser.groups--` leaves them. */
export function enterGroup(parser: Parser): void {
  if (++parser.groups > NESTING_MAX) refuseNesting(parser)
}

/** What has been parsed of this expression becomes part of one more node. */
export function wrap(parser: Parser): void {
  deepen(parser, parser.deepest + 1)
}

function deepen(parser: Parser, level: number): void {
  if (level > NESTING_MAX) refuseNesting(parser)
  parser.deepest = level
}

function refuseNesting(parser: Parser): never {
  fail(
    parser,
    `the query is nested more than ${NESTING_MAX} levels deep`,
    'split it, for example with "with"; long lists and chains of "and" and "or" are no nesting',
  )
}

// ---- names -------------------------------------------------------------------------------------------------

/** Signs and words that cannot begin an operand: after a keyword they show that it is meant as a name. */
const AFTER_NAMES: ReadonlySet<Token> = new Set<Token>([
  ...([',', ')', ']', '}', '.', '.*', ';', '::', '=', '<>', '<', '<=', '>', '>=', '~', '~*', '@>', '<@'] as const),
  ...(['&&', '?', '?|', '?&', '@@', '||', '+', '/', '%', '->', '->>', '#>', '#>>', '#end'] as const),
  ...(['and', 'as', 'asc', 'between', 'desc', 'ilike', 'in', 'is', 'like', 'or', 'regex', 'similar'] as const),
])

/** Whether the token is a name here: a word, or whatever stands in back-ticks; a keyword that opens a clause only when it cannot do so. */
export function isName(parser: Parser): boolean {
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

/** Whether this token, where an operand is expected, is any value. */
export function isPlaceholder(parser: Parser, token: Token): boolean {
  return token === '?' && parser.dialect === 'pattern'
}

/** `name`: what the author wrote, without the back-ticks. `kind` says what it is the name of. */
export function parseName(parser: Parser, kind: string): string {
  if (!isName(parser)) {
    note(parser, kind)
    fail(parser)
  }
  return takeName(parser)
}

/** Takes a token that is known to be a name: after a dot, after `as` and the like any word is. */
export function takeName(parser: Parser): string {
  const { start, end } = parser
  const name = takeWord(parser)
  const bytes = utf8Length(name)
  if (bytes > IDENTIFIER_BYTES_MAX)
    failAt(parser, start, end, `a name of ${bytes} bytes; at most ${IDENTIFIER_BYTES_MAX}`, null)
  return name
}

/** The same for what may not be a name of PostgreSQL's: a parameter, or a key of JSON behind a dot. */
export function takeWord(parser: Parser): string {
  const name = parser.isWord ? parser.text.slice(parser.start, parser.end) : parser.value
  advance(parser)
  return name
}

/** A name where nothing else is possible, so that every keyword is one. */
export function parseAnyName(parser: Parser, kind: string, take: (parser: Parser) => string = takeName): string {
  if (!parser.isWord && parser.token !== '#quoted') {
    note(parser, kind)
    fail(parser)
  }
  return take(parser)
}

/** `name`, as a node. */
export function parseNameNode(parser: Parser, kind: string): Name {
  const { start } = parser
  const text = parseName(parser, kind)
  return { kind: 'name', text, span: spanFrom(parser, start) }
}

/** `"(" name { "," name } ")"` */
export function parseNames(parser: Parser): readonly Name[] {
  expect(parser, '(')
  const names = listOf(parser, parseColumnName)
  expect(parser, ')')
  return names
}

export function parseColumnName(parser: Parser): Name {
  return parseNameNode(parser, 'a column name')
}

/** `table = name [ "." name ]` */
export function parseTable(parser: Parser, kind: string = 'a table name'): TableName {
  const { start } = parser
  const first = parseName(parser, kind)
  if (!accept(parser, '.')) return { kind: 'table', schema: null, name: first, span: spanFrom(parser, start) }
  const name = parseAnyName(parser, kind)
  return { kind: 'table', schema: first, name, span: spanFrom(parser, start) }
}

/** `alias = [ "as" ] name`: without `as` no keyword. Null where there is none. */
export function parseAlias(parser: Parser): string | null {
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

// ---- refusing ----------------------------------------------------------------------------------------------

/** Words of other languages, and what is written here. */
const FOREIGN: ReadonlyMap<string, string> = new Map([
  ['select', 'get'],
  ['fetch', 'get'],
  ['upsert', 'add … conflict … update'],
  ['remove', 'del'],
])

/** The current token cannot stand here. */
export function fail(parser: Parser, reason: string | null = null, hint: string | null = null): never {
  failAt(parser, parser.start, parser.end, reason, hint)
}

/** As `fail`, at another place than the current token. */
export function failAt(parser: Parser, start: number, end: number, reason: string | null, hint: string | null): never {
  // What was expected is known of the current token only.
  if (parser.failedAt < 0) throw new Failure(parser.start)
  const expected = parser.expected.map(word => (word === 'order' || word === 'group' ? `${word} by` : word))
  throw new QuerySyntaxError(parser.text, { start, end, expected, reason, hint: hint ?? suggestion(parser) })
}

/** Which keyword was probably meant: by the word that stands here, or by the one before it that passed for an alias. */
function suggestion(parser: Parser): string | null {
  const candidates = parser.expected.filter(word => /^[a-z_]+$/.test(word))
  if (parser.expected.includes(OPERATOR)) candidates.push(...INFIX_WORDS)
  if (parser.isWord) {
    const word = parser.text.slice(parser.start, parser.end)
    const meant = FOREIGN.get(word.toLowerCase()) ?? nearest(word, candidates, WORDS)
    if (meant !== null && meant !== word.toLowerCase()) return `did you mean "${meant}"?`
  }
  if (parser.bareAliasEnd !== parser.before) return null
  const meant = nearest(parser.bareAlias, candidates, WORDS)
  return meant === null ? null : `did you mean "${meant}" instead of "${parser.bareAlias}"?`
}

/** How the possible continuations of an expression are listed. */
export const OPERATOR = 'an operator'
