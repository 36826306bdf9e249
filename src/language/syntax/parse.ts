/**
 * Parses a text to a tree. Every text yields a tree or one `QuerySyntaxError`, in linear time; a tree is at
 * most `NESTING_MAX` levels deep.
 *
 * A valid text is parsed once. An invalid text is parsed a second time, up to the position of the error, to
 * collect what was expected there.
 */

import type { Expression, Statement } from '../tree/ast.ts'
import { markShallow } from '../tree/nesting.ts'
import { BINDING } from './binding.ts'
import { failIfMisplaced } from './clause-order.ts'
import { assertTextLength, type Comment } from './lexer.ts'
import { parseExpression } from './parse-expression.ts'
import { GRAMMAR, parseStatement } from './parse-statement.ts'
import { accept, begin, createParser, type Dialect, Failure, fail, note, type SyntaxParser } from './parser.ts'

/** A statement with its comments, in order: those before, inside and after it. */
export interface Parsed {
  readonly statement: Statement
  readonly comments: readonly Comment[]
}

/**
 * Parses one statement, with an optional `;` at its end.
 *
 * @throws QuerySyntaxError for an invalid text.
 */
export function parse(text: string): Statement {
  return run(text, 'query', parser => parseOnly(begin(parser, null)))
}

/**
 * Parses one statement in which `?` can stand for any value: a parameter with the name `PLACEHOLDER`.
 *
 * @throws QuerySyntaxError for an invalid text.
 */
export function parsePattern(text: string): Statement {
  return run(text, 'pattern', parser => parseOnly(begin(parser, null)))
}

/**
 * Parses one statement and keeps its comments, which the formatter needs.
 *
 * @throws QuerySyntaxError for an invalid text.
 */
export function parseWithComments(text: string): Parsed {
  return run(text, 'query', parser => {
    const comments: Comment[] = []
    return { statement: parseOnly(begin(parser, comments)), comments }
  })
}

/**
 * Parses statements that are separated by `;`; empty ones are skipped. A comment belongs to the statement
 * that follows it, or to the last one. The limits apply to the whole text.
 *
 * @throws QuerySyntaxError for an invalid text.
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
      // The comments before the `;` have been read, those after it have not.
      comments = []
      parser.comments = comments
      if (!isEnd(parser)) parseEnd(parser, statement)
    }
    parsed.at(-1)?.comments.push(...comments)
    return parsed
  })
}

/**
 * Parses an expression, as in the filter of a policy: `$tenant_id` and `$claims.x` are parameters too, with
 * names that omit the `$`.
 *
 * @throws QuerySyntaxError for an invalid text.
 */
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

function parseOnly(parser: SyntaxParser): Statement {
  // The parser checked the depth while parsing.
  const statement = markShallow(parseStatement(parser))
  if (isEnd(parser)) return statement
  parseEnd(parser, statement)
  if (!isEnd(parser)) fail(parser, 'a query can have only one statement', 'run them one at a time')
  return statement
}

/** `[ ";" ]`, after a statement. */
function parseEnd(parser: SyntaxParser, statement: Statement): void {
  if (accept(parser, ';')) return
  failIfMisplaced(parser, statement)
  note(parser, 'the end of the query')
  fail(parser)
}

function isEnd(parser: SyntaxParser): boolean {
  return parser.token === '#end'
}

function run<T>(text: string, dialect: Dialect, production: (parser: SyntaxParser) => T): T {
  assertTextLength(text)
  try {
    return production(createParser(text, GRAMMAR, { dialect, failedAt: -1 }))
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return production(createParser(text, GRAMMAR, { dialect, failedAt: error.offset }))
  }
}

export type { Comment } from './lexer.ts'
