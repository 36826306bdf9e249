/** Type names in casts and definitions. */

import type { TypeName } from './ast.ts'
import { LanguageError } from './error.ts'
import { quoteFunctionOrType, quoteIdentifier, quoteQualifier } from './quote.ts'

/** Type names of SQL that are key words: written bare, where the quoted name would be another type (`"char"`) or none (`"int"`). */
const SQL_TYPES: ReadonlySet<string> = new Set([
  'bigint',
  'bit',
  'boolean',
  'char',
  'character',
  'dec',
  'decimal',
  'float',
  'int',
  'integer',
  'interval',
  'json',
  'nchar',
  'numeric',
  'real',
  'smallint',
  'time',
  'timestamp',
  'varchar',
])

/** SQL's names of several words, by the name PostgreSQL has for the same type. */
const SEVERAL_WORDS: ReadonlyMap<string, string> = new Map([
  ['double precision', 'float8'],
  ['character varying', 'varchar'],
  ['bit varying', 'varbit'],
  ['time without time zone', 'time'],
  ['time with time zone', 'timetz'],
  ['timestamp without time zone', 'timestamp'],
  ['timestamp with time zone', 'timestamptz'],
])

/** `[]` more often than this means nothing to PostgreSQL, which ignores the number of dimensions, and is a slip or an attack. */
const DIMENSIONS_MAX = 6

/** `int4`, `numeric(10, 2)`, `text[]`, `sales.order_status`. */
export function printType(type: TypeName): string {
  if (type.dimensions > DIMENSIONS_MAX) {
    throw new LanguageError(
      `the type ${type.name} has ${type.dimensions} dimensions; at most ${DIMENSIONS_MAX} are possible`,
      type.span,
    )
  }
  for (const modifier of type.modifiers) {
    if (!Number.isSafeInteger(modifier)) {
      throw new LanguageError(
        `the type ${type.name} has the modifier ${modifier}; modifiers are whole numbers`,
        type.span,
      )
    }
  }
  const modifiers = type.modifiers.length > 0 ? `(${type.modifiers.join(', ')})` : ''
  return `${name(type)}${modifiers}${'[]'.repeat(type.dimensions)}`
}

function name(type: TypeName): string {
  if (type.schema !== null) return `${quoteQualifier(type.schema)}.${quoteIdentifier(type.name)}`
  const plain = SEVERAL_WORDS.get(type.name) ?? type.name
  return SQL_TYPES.has(plain) ? plain : quoteFunctionOrType(plain)
}
