/** Type names in casts and definitions. */

import { SEVERAL_WORDS } from '../../types/traits.ts'
import type { TypeName } from '../tree/ast.ts'
import { LanguageError } from '../tree/error.ts'
import { quoteFunctionOrType, quoteIdentifier, quoteQualifier } from './quote.ts'

const ANY = Number.POSITIVE_INFINITY

/**
 * Type names of SQL that are key words: written bare, where the quoted name would be another type (`"char"`) or none (`"int"`). How many modifiers
 * PostgreSQL can read behind each (`SimpleTypename` in its grammar); behind every other name it reads any, and judges them.
 */
const SQL_TYPES: ReadonlyMap<string, number> = new Map([
  ...['bigint', 'boolean', 'int', 'integer', 'json', 'real', 'smallint'].map(name => [name, 0] as const),
  ...['char', 'character', 'float', 'interval', 'nchar', 'time', 'timestamp', 'varchar'].map(
    name => [name, 1] as const,
  ),
  ...['bit', 'dec', 'decimal', 'numeric'].map(name => [name, ANY] as const),
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
  refuseModifiers(type)
  const modifiers = type.modifiers.length > 0 ? `(${type.modifiers.join(', ')})` : ''
  return `${name(type)}${modifiers}${'[]'.repeat(type.dimensions)}`
}

function refuseModifiers({ schema, name, modifiers, span }: TypeName): void {
  const most = schema === null ? (SQL_TYPES.get(name) ?? ANY) : ANY
  if (modifiers.length > most) {
    const takes = most === 0 ? 'no size' : 'one number'
    throw new LanguageError(`the type ${name} takes ${takes}; it got (${modifiers.join(', ')})`, span)
  }
  const [size] = modifiers
  if (most === 1 && size !== undefined && size < 0) {
    throw new LanguageError(`the type ${name} takes a size that is not negative; it got ${size}`, span)
  }
}

function name(type: TypeName): string {
  if (type.schema !== null) return `${quoteQualifier(type.schema)}.${quoteIdentifier(type.name)}`
  const plain = SEVERAL_WORDS.get(type.name) ?? type.name
  return SQL_TYPES.has(plain) ? plain : quoteFunctionOrType(plain)
}
