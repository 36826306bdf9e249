/** Functions with their arguments and results. */

import {
  type Cursor,
  expectKeyword,
  expectSymbol,
  failExpecting,
  keywordAt,
  readBody,
  readName,
  readTableName,
  skipBlanks,
  spanSince,
  takeKeyword,
  takeSymbol,
  wordAt,
} from './cursor.ts'
import { IN_PARENTHESES, readExpression } from './expression.ts'
import type {
  FunctionArgument,
  FunctionDefinition,
  FunctionResultDefinition,
  Name,
  ResultColumn,
  Volatility,
} from './model.ts'
import { FIRST_WORDS, isSeveralWords, readType } from './type-name.ts'

const VOLATILITIES: readonly Volatility[] = ['immutable', 'stable', 'volatile']

/**
 * function = "function" name "(" [ argument { "," argument } ] ")" "returns" result "language" word
 *            { "immutable" | "stable" | "volatile" | "security_definer" | "strict" } $$ body $$ ;
 */
export function readFunction(cursor: Cursor, start: number): FunctionDefinition {
  const name = readTableName(cursor, 'the name of a function')
  const args = readList(cursor, readArgument)
  expectKeyword(cursor, 'returns')
  skipBlanks(cursor)
  const returns = readResult(cursor)
  expectKeyword(cursor, 'language')
  skipBlanks(cursor)
  const language = readName(cursor, 'a language').text
  let volatility: Volatility | null = null
  let securityDefiner = false
  let strict = false
  for (;;) {
    skipBlanks(cursor)
    const found: Volatility | undefined =
      volatility === null ? VOLATILITIES.find(word => takeKeyword(cursor, word)) : undefined
    if (found !== undefined) volatility = found
    else if (!securityDefiner && takeKeyword(cursor, 'security_definer')) securityDefiner = true
    else if (!strict && takeKeyword(cursor, 'strict')) strict = true
    else break
  }
  const body = readBody(cursor, 'the body between "$$" and "$$"')
  return {
    ...{ kind: 'function', name, arguments: args, returns, language, volatility: volatility ?? 'volatile' },
    ...{ securityDefiner, strict, body, span: spanSince(cursor, start) },
  }
}

function readList<T>(cursor: Cursor, read: (cursor: Cursor) => T): readonly T[] {
  expectSymbol(cursor, '(')
  const items: T[] = []
  skipBlanks(cursor)
  if (takeSymbol(cursor, ')')) return items
  do {
    skipBlanks(cursor)
    items.push(read(cursor))
    skipBlanks(cursor)
  } while (takeSymbol(cursor, ','))
  if (!takeSymbol(cursor, ')')) failExpecting(cursor, [',', ')'])
  return items
}

const MODES = ['inout', 'in', 'out', 'variadic'] as const

/** Words that an argument's name can be only in backticks. */
export const ARGUMENT_WORDS: ReadonlySet<string> = new Set([...MODES, ...FIRST_WORDS, 'default'])

/** argument = [ "in" | "out" | "inout" | "variadic" ] [ name ] type [ ( "default" | "=" ) expr ] ; */
function readArgument(cursor: Cursor): FunctionArgument {
  const start = cursor.at
  const mode = readMode(cursor)
  const name = readArgumentName(cursor)
  const type = readType(cursor)
  let end = cursor.at
  skipBlanks(cursor)
  const hasDefault = takeKeyword(cursor, 'default') || takeSymbol(cursor, '=')
  const value = hasDefault ? readExpression(cursor, IN_PARENTHESES) : null
  if (hasDefault) end = cursor.at
  return { kind: 'argument', mode, name, type, default: value, span: { start, end } }
}

/** A word is a mode only if a name or type follows. */
function readMode(cursor: Cursor): FunctionArgument['mode'] {
  const mode = MODES.find(word => takeKeyword(cursor, word))
  skipBlanks(cursor)
  return mode ?? 'in'
}

/** A word is a name only if a type follows. */
function readArgumentName(cursor: Cursor): string | null {
  const start = cursor.at
  if (isSeveralWords(cursor)) return null
  const name = readName(cursor, 'an argument')
  skipBlanks(cursor)
  const isFollowed = cursor.text[cursor.at] === '`' || (wordAt(cursor) !== '' && keywordAt(cursor) !== 'default')
  if (isFollowed) return name.text
  cursor.at = start
  return null
}

/** result = [ "setof" ] type | "table" "(" name type { "," name type } ")" ; */
function readResult(cursor: Cursor): FunctionResultDefinition {
  const start = cursor.at
  if (takeKeyword(cursor, 'table')) {
    return { kind: 'table', columns: readList(cursor, readResultColumn), span: spanSince(cursor, start) }
  }
  const kind = takeKeyword(cursor, 'setof') ? 'set' : 'value'
  skipBlanks(cursor)
  return { kind, type: readType(cursor), span: spanSince(cursor, start) }
}

function readResultColumn(cursor: Cursor): ResultColumn {
  const name: Name = readName(cursor, 'a column')
  skipBlanks(cursor)
  return { kind: 'result column', name, type: readType(cursor), span: spanSince(cursor, name.span.start) }
}
