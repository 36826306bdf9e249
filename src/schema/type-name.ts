/**
 * Parses and prints types in a document: built-in types, the synonyms that `make` accepts, and user-defined
 * types.
 */

import { LanguageError } from '../language/tree/error.ts'
import { DOCUMENTED, OWN_NAMES, SQL_NAMES } from '../types/builtin.ts'
import {
  type Cursor,
  failExpecting,
  keywordAt,
  readName,
  refuseAt,
  skipInLine,
  spanSince,
  takeKeyword,
  takeSymbol,
  wordAt,
} from './cursor.ts'
import type { SchemaType } from './model.ts'
import { printName } from './name.ts'

/** Limit on `[]`. PostgreSQL ignores the number of dimensions. */
export const DIMENSIONS_MAX: number = 6

const MODIFIERS_MAX = 8

/** Synonyms that a document can contain, with the canonical name of each. */
const SYNONYMS: ReadonlyMap<string, string> = new Map([...OWN_NAMES, ...SQL_NAMES])

/** Words that continue a type name, by its first word; the longest match counts. */
const CONTINUED: Readonly<Record<string, readonly (readonly [readonly string[], string])[]>> = {
  double: [[['precision'], 'float8']],
  character: [[['varying'], 'varchar']],
  char: [[['varying'], 'varchar']],
  nchar: [[['varying'], 'varchar']],
  bit: [[['varying'], 'varbit']],
  time: [
    [['with', 'time', 'zone'], 'timetz'],
    [['without', 'time', 'zone'], 'time'],
  ],
  timestamp: [
    [['with', 'time', 'zone'], 'timestamptz'],
    [['without', 'time', 'zone'], 'timestamp'],
  ],
  interval: [
    ...(['year to month', 'day to hour', 'day to minute', 'day to second'] as const),
    ...(['hour to minute', 'hour to second', 'minute to second'] as const),
    ...(['year', 'month', 'day', 'hour', 'minute', 'second'] as const),
  ].map(fields => [fields.split(' '), `interval ${fields}`] as const),
}

/** The first words of type names of several words; an argument with such a name needs backticks. */
export const FIRST_WORDS: ReadonlySet<string> = new Set(Object.keys(CONTINUED))

/** type = name [ "." name ] [ "(" modifier { "," modifier } ")" ] { "[]" } ; on one line. */
export function readType(cursor: Cursor): SchemaType {
  const start = cursor.at
  const isBare = cursor.text[start] !== '`'
  const first = readName(cursor, 'a type')
  const second = takeSymbol(cursor, '.') ? readName(cursor, 'the name of a type') : null
  const isPlain = isBare && second === null
  const word = first.text.toLowerCase()
  let name = isPlain ? (continued(cursor, word) ?? lookUp(first.text)) : (second ?? first).text
  let modifiers = readModifiers(cursor)
  if (isPlain && modifiers.length > 0) name = continued(cursor, word) ?? name
  if (isPlain && word === 'float' && modifiers.length > 0) [name, modifiers] = floatOf(modifiers, name)
  if (second === null && name === 'char' && modifiers.length === 0) modifiers = ['1']
  if (second === null && name === 'bpchar' && modifiers.length > 0) name = 'char'
  const dimensions = readDimensions(cursor)
  return {
    kind: 'type',
    schema: second === null ? null : first.text,
    name,
    modifiers,
    dimensions,
    span: spanSince(cursor, start),
  }
}

/** The canonical form: `numeric(10, 2)`, `text[]`, `sales.status`, `` `Status` ``. */
export function printSchemaType(type: SchemaType): string {
  for (const modifier of type.modifiers) {
    if (!MODIFIER.test(modifier))
      throw new LanguageError(`${JSON.stringify(modifier)} is not a modifier of a type`, type.span)
  }
  if (type.dimensions > DIMENSIONS_MAX) {
    throw new LanguageError(
      `the type ${type.name} has ${type.dimensions} dimensions; at most ${DIMENSIONS_MAX} are possible`,
      type.span,
    )
  }
  const modifiers = type.modifiers.length > 0 ? `(${type.modifiers.join(', ')})` : ''
  return `${printTypeName(type)}${modifiers}${'[]'.repeat(type.dimensions)}`
}

function printTypeName({ schema, name }: SchemaType): string {
  if (schema !== null) return `${printName(schema, TAKEN)}.${printName(name)}`
  if (INTERVALS.has(name)) return name
  return printName(name, lookUp(name) === name ? TAKEN : new Set([name.toLowerCase()]))
}

const INTERVALS: ReadonlySet<string> = new Set(CONTINUED.interval?.map(([, name]) => name))

/** Names to suggest for one that is unknown. */
export const TYPE_NAMES: readonly string[] = [...DOCUMENTED, ...SYNONYMS.keys()]

/**
 * True if an unqualified name is a built-in type. As in PostgreSQL, a user-defined type with such a name must
 * be qualified.
 */
export function isOwnType(name: string): boolean {
  return DOCUMENTED.has(name) || INTERVALS.has(name)
}

/** Words that have another meaning where the type of an argument or result is expected. */
const TAKEN: ReadonlySet<string> = new Set(['in', 'out', 'inout', 'variadic', 'default', 'setof', 'table'])

/**
 * PostgreSQL's own name if the word is a built-in type, in any case, or a synonym; otherwise the word itself.
 */
function lookUp(word: string): string {
  const lower = word.toLowerCase()
  return SYNONYMS.get(lower) ?? (DOCUMENTED.has(lower) ? lower : word)
}

function continued(cursor: Cursor, word: string): string | null {
  for (const [words, name] of CONTINUED[word] ?? []) {
    const start = cursor.at
    if (words.every(next => takeAfterBlanks(cursor, next))) return name
    cursor.at = start
  }
  return null
}

function takeAfterBlanks(cursor: Cursor, keyword: string): boolean {
  skipInLine(cursor)
  return takeKeyword(cursor, keyword)
}

/** `float(24)` is a float4, `float(53)` a float8 (PostgreSQL manual, 8.1.3). */
function floatOf(modifiers: readonly string[], name: string): [string, readonly string[]] {
  const bits = Number(modifiers[0])
  return modifiers.length === 1 && bits >= 1 && bits <= 53 ? [bits <= 24 ? 'float4' : 'float8', []] : [name, modifiers]
}

const MODIFIER = /^(?:-?[0-9]{1,10}|[A-Za-z_][A-Za-z0-9_]{0,62})$/

function readModifiers(cursor: Cursor): readonly string[] {
  const before = cursor.at
  skipInLine(cursor)
  if (!takeSymbol(cursor, '(')) {
    cursor.at = before
    return []
  }
  const modifiers: string[] = []
  do {
    skipInLine(cursor)
    const digits = /-?[0-9]+/y
    digits.lastIndex = cursor.at
    const modifier = digits.exec(cursor.text)?.[0] ?? wordAt(cursor)
    if (!MODIFIER.test(modifier) || modifiers.length === MODIFIERS_MAX) failExpecting(cursor, ['a number'])
    modifiers.push(modifier)
    cursor.at += modifier.length
    skipInLine(cursor)
  } while (takeSymbol(cursor, ','))
  if (!takeSymbol(cursor, ')')) failExpecting(cursor, [',', ')'])
  return modifiers
}

function readDimensions(cursor: Cursor): number {
  let dimensions = 0
  while (takeSymbol(cursor, '[')) {
    if (!takeSymbol(cursor, ']')) failExpecting(cursor, [']'])
    if (++dimensions > DIMENSIONS_MAX)
      refuseAt(cursor, cursor.at - 2, `a type has at most ${DIMENSIONS_MAX} dimensions`)
  }
  return dimensions
}

/** True if a type of several words begins here, such as `double precision`. */
export function isSeveralWords(cursor: Cursor): boolean {
  const start = cursor.at
  const word = keywordAt(cursor)
  cursor.at += word.length
  const is = word !== '' && continued(cursor, word) !== null
  cursor.at = start
  return is
}
