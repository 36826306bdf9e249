/** Errors for clauses that a statement does not have, or that are out of order. */

import type { Statement } from '../tree/ast.ts'
import type { TokenType } from './lexer.ts'
import { fail, type SyntaxParser } from './parser.ts'

/** The clauses of each statement, in order, by their first word. */
const CLAUSES = {
  get: ['join', 'nest', 'fields', 'where', 'group', 'having', 'window', 'union', 'order', 'limit', 'offset', 'for'],
  count: ['join', 'where'],
  nest: ['fields', 'nest', 'where', 'order', 'limit', 'offset'],
  add: ['fields', 'values', 'from', 'defaults', 'conflict', 'returning'],
  set: ['join', 'values', 'where', 'returning'],
  del: ['join', 'where', 'returning'],
  merge: ['using', 'on', 'when'],
  make: ['primary', 'unique'],
  index: ['on', 'unique', 'where'],
} as const

/** Keywords that start the same clause as another keyword. */
const CLAUSE_SYNONYMS: Readonly<Partial<Record<TokenType, TokenType>>> = {
  left: 'join',
  right: 'join',
  full: 'join',
  inner: 'join',
  cross: 'join',
  intersect: 'union',
  except: 'union',
}

const CLAUSE_WORDS: ReadonlySet<TokenType> = new Set<TokenType>([
  ...Object.values(CLAUSES).flat(),
  ...(Object.keys(CLAUSE_SYNONYMS) as TokenType[]),
])

/** The names of clauses that consist of two words. */
const CLAUSE_NAMES: Readonly<Partial<Record<TokenType, string>>> = {
  order: 'order by',
  group: 'group by',
  primary: 'primary key',
}

/**
 * Reports a clause that the statement does not have, or that is out of order. Returns if the current token
 * does not start a clause; the caller then reports what it expected.
 *
 * @throws QuerySyntaxError for a misplaced clause.
 */
export function failIfMisplaced(parser: SyntaxParser, statement: Statement | keyof typeof CLAUSES): void {
  const { token } = parser
  if (!CLAUSE_WORDS.has(token)) return
  const word = CLAUSE_NAMES[token] ?? token
  const name = typeof statement === 'string' ? statement : statementName(statement)
  const clauses: readonly TokenType[] = name in CLAUSES ? CLAUSES[name as keyof typeof CLAUSES] : []
  if (!clauses.includes(CLAUSE_SYNONYMS[token] ?? token)) fail(parser, `${name} takes no ${word}`)
  if (name === 'get' && clauses.indexOf(CLAUSE_SYNONYMS[token] ?? token) === clauses.indexOf('union')) {
    const hint = 'write them after the last get; (get …) in parentheses can have its own order and limit'
    fail(parser, `"order by", "limit", "offset" and "for" apply to the whole compound and cannot precede ${word}`, hint)
  }
  const order = clauses.map(clause => CLAUSE_NAMES[clause] ?? clause).join(', ')
  fail(parser, `"${word}" is not allowed here`, `write each clause once, in the order ${order}`)
}

function statementName(statement: Statement): string {
  return statement.kind === 'get' && statement.purpose !== 'rows' ? statement.purpose : statement.kind
}
