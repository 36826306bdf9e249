/** Clauses where the grammar has none, or no longer: what to say when a statement goes on behind its end. */

import type { Statement } from '../tree/ast.ts'
import type { Token } from './lexer.ts'
import { fail, type Parser } from './parser.ts'

/** The clauses of each statement, in their order, by the word that opens them. */
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

/** Other words for the same clause. */
const SAME: Readonly<Partial<Record<Token, Token>>> = {
  left: 'join',
  right: 'join',
  full: 'join',
  inner: 'join',
  cross: 'join',
  intersect: 'union',
  except: 'union',
}

const ALL: ReadonlySet<Token> = new Set<Token>([...Object.values(CLAUSES).flat(), ...(Object.keys(SAME) as Token[])])

/** Clauses of two words. */
const WRITTEN: Readonly<Partial<Record<Token, string>>> = {
  order: 'order by',
  group: 'group by',
  primary: 'primary key',
}

/** If a clause stands here that the statement does not have, or not here, says so; the caller knows what would be possible instead. */
export function refuseMisplaced(parser: Parser, statement: Statement | keyof typeof CLAUSES): void {
  const { token } = parser
  if (!ALL.has(token)) return
  const word = WRITTEN[token] ?? token
  const name = typeof statement === 'string' ? statement : nameOf(statement)
  const clauses: readonly Token[] = name in CLAUSES ? CLAUSES[name as keyof typeof CLAUSES] : []
  if (!clauses.includes(SAME[token] ?? token)) fail(parser, `${name} takes no ${word}`)
  if (name === 'get' && clauses.indexOf(SAME[token] ?? token) === clauses.indexOf('union')) {
    const hint = 'they come behind the last get; (get …) in parentheses has an order and limit of its own'
    fail(
      parser,
      `"order by", "limit", "offset" and "for" belong to the whole compound, not to a get before ${word}`,
      hint,
    )
  }
  const order = clauses.map(clause => WRITTEN[clause] ?? clause).join(', ')
  fail(parser, `"${word}" cannot stand here`, `each clause stands once, in the order ${order}`)
}

function nameOf(statement: Statement): string {
  return statement.kind === 'get' && statement.purpose !== 'rows' ? statement.purpose : statement.kind
}
