/**
 * Text → tree. Every text is answered in linear time, with a tree or with one `QuerySyntaxError`; a tree that is returned is no deeper
 * than `NESTING_MAX` levels.
 *
 * A text is parsed once. Only when that fails it is parsed a second time, up to the same place, to write down what would have been
 * possible there.
 */

import type { Expression, Statement } from '../tree/ast.ts'
import { markShallow } from '../tree/nesting.ts'
import { BINDING } from './binding.ts'
import { type Comment, refuseLongText } from './lexer.ts'
import { refuseMisplaced } from './misplaced.ts'
import { parseExpression } from './parse-expression.ts'
import { GRAMMAR, parseStatement } from './parse-statement.ts'
import { accept, begin, createParser, type Dialect, Failure, fail, note, type Parser } from './parser.ts'

/** A statement and the comments that stand before, in and behind it, in order. */
export interface Parsed {
  readonly statement: Statement
  readonly comments: readonly Comment[]
}

/** One statement, with an optional `;` at its end. */
export function parse(text: string): Statement {
  return run(text, 'query', parser => parseOnly(begin(parser, null)))
}

/** The same, where `?` may stand for any value: a parameter whose name is `PLACEHOLDER`. */
export function parsePattern(text: string): Statement {
  return run(text, 'pattern', parser => parseOnly(begin(parser, null)))
}

/** The same, with the comments: what the formatter needs. */
export function parseWithComments(text: string): Parsed {
  return run(text, 'query', parser => {
    const comments: Comment[] = []
    return { statement: parseOnly(begin(parser, comments)), comments }
  })
}

/**
 * Statements with `;` between them, empty ones left out. A comment belongs to the statement that follows it, behind the last `;` to the
 * last one; the limits hold for the whole text.
 */
export function parseMany(text: string): readonly Parsed[] {
  return run(text, 'query', parser => {
    let comments: Comment[] = []
    const parsed: { statement: Statement; comments: Comment[] }[] = []
    begin(parser, comments)
    while (!isEnd(parser)) {
      if (accept(parser, ';')) continue
      const statement = markShallow(parseStatement(parser))
      parsed.push({ statement, comments })
      // The comments before the `;` have been seen, those behind it not yet.
      comments = []
      parser.comments = comments
      if (!isEnd(parser)) parseEnd(parser, statement)
    }
    parsed.at(-1)?.comments.push(...comments)
    return parsed
  })
}

/** An expression alone, as a filter of a policy: here `$tenant_id` and `$claims.x` are parameters too, named without the `$`. */
export function parseCondition(text: string): Expression {
  return run(text, 'condition', parser => {
    begin(parser, null)
    const condition = parseExpression(parser, BINDING.any)
    if (!isEnd(parser)) {
      note(parser, 'the end of the condition')
      fail(parser)
    }
    return condition
  })
}

function parseOnly(parser: Parser): Statement {
  // The parser counts levels while it reads.
  const statement = markShallow(parseStatement(parser))
  if (isEnd(parser)) return statement
  parseEnd(parser, statement)
  if (!isEnd(parser)) fail(parser, 'a query is one statement', 'run one after the other')
  return statement
}

/** `[ ";" ]`, behind a statement. */
function parseEnd(parser: Parser, statement: Statement): void {
  if (accept(parser, ';')) return
  refuseMisplaced(parser, statement)
  note(parser, 'the end of the query')
  fail(parser)
}

function isEnd(parser: Parser): boolean {
  return parser.token === '#end'
}

function run<T>(text: string, dialect: Dialect, production: (parser: Parser) => T): T {
  refuseLongText(text)
  try {
    return production(createParser(text, GRAMMAR, { dialect, failedAt: -1 }))
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return production(createParser(text, GRAMMAR, { dialect, failedAt: error.offset }))
  }
}

export type { Comment } from './lexer.ts'
