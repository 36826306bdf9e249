/** Prints type names in casts and definitions. */

import { SEVERAL_WORDS } from '../../types/traits.ts'
import type { TypeName } from '../tree/ast.ts'
import { LanguageError } from '../tree/error.ts'
import { quoteFunctionOrType, quoteIdentifier, quoteQualifier } from './quote.ts'

const ANY = Number.POSITIVE_INFINITY

/**
 * SQL type names that are keywords: they are printed without quotes, because the quoted name would be a
 * different type (`"char"`) or no type (`"int"`). The value is the number of modifiers that PostgreSQL's
 * grammar accepts after each (`SimpleTypename`); after other names it accepts any number and checks them
 * later.
 */
const SQL_TYPES: ReadonlyMap<string, number> = new Map([
  ...['bigint', 'boolean', 'int', 'integer', 'json', 'real', 'smallint'].map(name => [name, 0] as const),
  ...['char', 'character', 'float', 'interval', 'nchar', 'time', 'timestamp', 'varchar'].map(
    name => [name, 1] as const,
  ),
  ...['bit', 'dec', 'decimal', 'numeric'].map(name => [name, ANY] as const),
])

/**
 * Maximum number of `[]`. PostgreSQL ignores the number of dimensions, so more are a mistake or an attack.
 */
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
