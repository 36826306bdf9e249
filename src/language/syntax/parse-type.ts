/** Types of casts and definitions. */

import { nearest, WORDS } from '../../text/nearest.ts'
import { BARE_NAMES, OWN_NAMES } from '../../types/builtin.ts'
import type { TypeName } from '../tree/ast.ts'
import { advance } from './lexer.ts'
import {
  accept,
  expect,
  fail,
  failAt,
  isName,
  note,
  parseAnyName,
  parseList,
  type SyntaxParser,
  spanFrom,
  takeName,
} from './parser.ts'

const MODIFIERS_MAX = 8
const MODIFIER_MAX = 2 ** 31 - 1

/**
 * Reports whether a type name is valid without a schema and without backticks. All other names need one of
 * them.
 */
export function isKnownType(name: string): boolean {
  return BARE_NAMES.has(name) || OWN_NAMES.has(name)
}

/**
 * `type = ( known | "`" name "`" | name "." name ) [ "(" integer { "," integer } ")" ] { "[" "]" }`
 *
 * A known type can be written in any case and by any of its names. SQL type names of several words become
 * PostgreSQL's name for the same type. User-defined types (enums, domains) need their schema or backticks, so
 * that a typo is detected without a catalog.
 */
export function parseType(parser: SyntaxParser): TypeName {
  const { start } = parser
  if (!isName(parser)) {
    note(parser, 'a type')
    fail(parser)
  }
  const isQuoted = parser.token === '#quoted'
  const first = takeName(parser)
  if (accept(parser, '.')) {
    const name = parseAnyName(parser, 'a type')
    return finished(parser, start, first, name, parseModifiers(parser))
  }
  if (isQuoted) return finished(parser, start, null, first, parseModifiers(parser))
  const name = first.toLowerCase()
  if (name === 'double' && acceptWord(parser, 'precision')) return finished(parser, start, null, 'float8', [])
  if (!isKnownType(name)) refuseType(parser, start, first)
  const isVarying = (name === 'character' || name === 'bit') && acceptWord(parser, 'varying')
  const modifiers = parseModifiers(parser)
  const known = isVarying ? (name === 'bit' ? 'varbit' : 'varchar') : (OWN_NAMES.get(name) ?? name)
  const withZone = (known === 'time' || known === 'timestamp') && parseZone(parser)
  return finished(parser, start, null, withZone ? `${known}tz` : known, modifiers)
}

function finished(
  parser: SyntaxParser,
  start: number,
  schema: string | null,
  name: string,
  modifiers: readonly number[],
): TypeName {
  let dimensions = 0
  while (accept(parser, '[')) {
    if (!accept(parser, ']')) fail(parser)
    dimensions++
  }
  return { kind: 'type', schema, name, modifiers, dimensions, span: spanFrom(parser, start) }
}

/** `"(" integer { "," integer } ")"` */
function parseModifiers(parser: SyntaxParser): readonly number[] {
  if (parser.token !== '(') return []
  expect(parser, '(')
  const modifiers = parseList(parser, parseModifier)
  if (modifiers.length > MODIFIERS_MAX) fail(parser, `a type takes at most ${MODIFIERS_MAX} modifiers`)
  expect(parser, ')')
  return modifiers
}

/** `integer`; the scale of a numeric may be negative. */
function parseModifier(parser: SyntaxParser): number {
  const isNegative = accept(parser, '-')
  const size = parser.token === '#integer' ? Number(parser.text.slice(parser.start, parser.end)) : Number.NaN
  if (!(size <= MODIFIER_MAX)) {
    note(parser, 'a whole number')
    fail(parser)
  }
  advance(parser)
  return isNegative && size > 0 ? -size : size
}

/** `[ ( "with" | "without" ) "time" "zone" ]` */
function parseZone(parser: SyntaxParser): boolean {
  const isWith = parser.token === 'with'
  if (!isWith && !isWordOf(parser, 'without')) return false
  advance(parser)
  if (!acceptWord(parser, 'time') || !acceptWord(parser, 'zone')) fail(parser)
  return isWith
}

/** A word of SQL's type names, which is not a keyword of this language. */
function acceptWord(parser: SyntaxParser, word: string): boolean {
  if (!isWordOf(parser, word)) return false
  advance(parser)
  return true
}

function isWordOf(parser: SyntaxParser, word: string): boolean {
  if (parser.isWord && parser.text.slice(parser.start, parser.end).toLowerCase() === word) return true
  note(parser, word)
  return false
}

function refuseType(parser: SyntaxParser, start: number, name: string): never {
  const near = nearest(name, [...BARE_NAMES, ...OWN_NAMES.keys()], WORDS)
  const meant = near === null ? '' : `did you mean "${near}"? `
  const own = `write a user-defined type with its schema or in backticks: \`${name}\``
  failAt(parser, start, parser.before, `unknown type "${name}"`, `${meant}${own}`)
}
