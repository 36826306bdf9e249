/** Splits the SQL text of a `where` parameter into tokens (PostgreSQL manual, 4.1). */
import { foldName } from './shape-names.ts'
import { ShapeProblem } from './shape-problem.ts'

/** A token. A `name` is folded to lower case; a `quoted` name and a `text` are unescaped. */
export interface SqlToken {
  readonly kind: 'name' | 'quoted' | 'text' | 'integer' | 'decimal' | 'parameter' | 'symbol' | 'end'
  readonly value: string
  /** The token as written, for messages. */
  readonly written: string
  /** The offset in the text, counted from 1. */
  readonly at: number
}

/**
 * Clients of Electric expect locations in the statement that has the condition, counted from 0; those of
 * tokens are counted from 1.
 */
const BEFORE_CONDITION = 'SELECT 1 WHERE '.length - 1

/** A problem at a token, which `at` counts from 1. */
export function problemAt(at: number, problem: string): ShapeProblem {
  return new ShapeProblem('where', `At location ${BEFORE_CONDITION + at}: ${problem}`)
}

/** Limit on the tokens of a condition. */
export const WHERE_TOKENS_MAX = 2_000

const SPACE = /\s+/y
const COMMENT = /--|\/\*/y

/** The alternatives are tried in this order; longer operators come first. */
const TOKENS: readonly (readonly [SqlToken['kind'], RegExp])[] = [
  ['name', /[\p{L}_][\p{L}\p{N}_$]*/uy],
  ['quoted', /"(?:[^"]|"")+"/y],
  ['text', /'(?:[^']|'')*'/y],
  ['decimal', /(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\p{L}_])|\d+[eE][+-]?\d+(?![\p{L}_])/uy],
  ['integer', /\d+(?![\p{L}_])/uy],
  ['parameter', /\$\d{1,5}(?![\p{L}_\d])/uy],
  ['symbol', /!~~\*|!~\*|!~~|~~\*|#>>|->>|::|<>|!=|<=|>=|<@|@>|&&|\|\||->|#>|~\*|~~|!~|\?\||\?&|[()[\],.=<>+\-*/%~?]/y],
]

/**
 * The tokens of a text, the last of which is the end.
 * @throws ShapeProblem if a part of the text is not a token.
 */
export function whereTokens(text: string): readonly SqlToken[] {
  const tokens: SqlToken[] = []
  let at = 0
  for (;;) {
    at = skip(text, at)
    if (at === text.length) break
    if (tokens.length === WHERE_TOKENS_MAX)
      throw new ShapeProblem('where', `has more than ${WHERE_TOKENS_MAX} words and symbols`)
    const token = tokenAt(text, at)
    tokens.push(token)
    at += token.written.length
  }
  tokens.push({ kind: 'end', value: '', written: 'the end', at: at + 1 })
  return tokens
}

function skip(text: string, at: number): number {
  SPACE.lastIndex = at
  return SPACE.test(text) ? SPACE.lastIndex : at
}

function tokenAt(text: string, at: number): SqlToken {
  COMMENT.lastIndex = at
  if (COMMENT.test(text)) throw problemAt(at + 1, 'comments are not supported')
  for (const [kind, pattern] of TOKENS) {
    pattern.lastIndex = at
    const written = pattern.exec(text)?.[0]
    if (written !== undefined) return { kind, value: unescaped(kind, written), written, at: at + 1 }
  }
  throw problemAt(at + 1, `syntax error at or near "${text.slice(at, at + 10)}"`)
}

function unescaped(kind: SqlToken['kind'], written: string): string {
  switch (kind) {
    case 'name':
      return foldName(written)
    case 'quoted':
      return written.slice(1, -1).replaceAll('""', '"')
    case 'text':
      return written.slice(1, -1).replaceAll("''", "'")
    default:
      return written
  }
}
