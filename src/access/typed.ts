/** The type of a checked expression, and the operators that the type does not support. */
import type { DataType } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Expression } from '../language/tree/ast.ts'
import { column } from '../language/tree/build.ts'
import type { Growth } from './tally.ts'
import { baseOf, castTo, isComparable, isDocument, isEnumDomain, isJson, isOrdered, isScalar, isText } from './types.ts'

/** A checked expression and its type. */
export interface Typed {
  readonly expression: Expression
  /** The type; null if it is unknown and left to PostgreSQL. */
  readonly type: DataType | null
  readonly typeName: string | null
  readonly column: string | null
  /** The size that a mention of the column adds to the statement; see `RowsetColumn`. */
  readonly growth?: Growth | null
  /** The maximum number of decimal digits; if omitted, the maximum of `numeric`. */
  readonly digits?: number
}

/** A placeholder for an expression whose type is unknown. */
export const UNKNOWN: Typed = { expression: column('?'), type: null, typeName: null, column: null }

/** An expression whose type is unknown. */
export function untyped(expression: Expression): Typed {
  return { expression, type: null, typeName: null, column: null }
}

/** The same value for comparison: a domain has the operators of its base type. */
export function comparable(typed: Typed): Typed {
  if (typed.type === null || !isEnumDomain(typed.type)) return typed
  return { ...typed, expression: castTo(typed.expression, typed.type) }
}

/** Rejects a value whose type has no equality operator. */
export function refuseIncomparable(typed: Typed): void {
  if (typed.type === null ? typed.typeName === 'json' : !isComparable(typed.type)) {
    throw refusedType(typed, `whose values cannot be compared; ${insteadOf(typed)}`)
  }
}

/** A list is one array parameter, and PostgreSQL has no arrays of arrays. */
export function refuseArray(typed: Typed): void {
  if (typed.type !== null && baseOf(typed.type).kind === 'array') {
    throw refusedType(
      typed,
      'and a list holds single values; compare the whole array with eq, or use contains or overlaps',
    )
  }
}

/** Rejects comparing a text with a number: as texts, 10 is less than 9. */
export function refuseUncountable(typed: Typed, other: Expression): void {
  refuseIncomparable(typed)
  const isNumber = other.kind === 'literal' && (other.type === 'integer' || other.type === 'decimal')
  if (isNumber && (typed.type === null ? typed.typeName === 'text' : isText(typed.type))) {
    throw refusedType(
      typed,
      `and texts sort by character, '10' before '9'; cast it, as in (…)::numeric, or write the number as a text`,
    )
  }
}

/** Rejects a value that is neither an array, a range nor jsonb. */
export function refuseScalar(typed: Typed): void {
  if (typed.type === null ? typed.typeName === 'text' : isScalar(typed.type)) {
    throw refusedType(typed, 'and contains, contained and overlaps compare arrays, ranges and jsonb')
  }
}

/** Rejects a value whose type has no sort order. */
export function refuseUnordered(typed: Typed): void {
  if (typed.type === null ? typed.typeName === 'json' : !isOrdered(typed.type)) {
    throw refusedType(
      typed,
      `whose values have no order, so it cannot be used in sort or distinct; ${insteadOf(typed)}`,
    )
  }
}

/** Rejects a value that full-text search cannot read. */
export function refuseUnsearchable(typed: Typed): void {
  if (typed.type !== null && !isDocument(typed.type)) {
    throw refusedType(typed, 'and fts searches text, JSON and tsvector')
  }
}

/** An operator that the type of a value does not have. */
export class UndefinedOperatorError extends GatewayError {}

/** PostgreSQL would reject it too, but would name neither the column nor a fix. */
function refusedType({ expression, column, type, typeName }: Typed, reason: string): UndefinedOperatorError {
  const what = column === null ? 'the value' : `${type === null ? 'the path into column' : 'column'} "${column}"`
  const { span } = expression
  return new UndefinedOperatorError('PARSE_ERROR', `${what} is ${typeName ?? 'of another type'}, ${reason}`, { span })
}

function insteadOf(typed: Typed): string {
  return isJsonValue(typed) ? `use a text inside it, such as ${typed.column ?? '…'}->>key` : 'use another column'
}

/** True if the value is JSON; a text extracted from JSON is not. */
export function isJsonValue({ type, typeName }: Pick<Typed, 'type' | 'typeName'>): boolean {
  return type === null ? typeName === 'json' || typeName === 'jsonb' : isJson(type)
}
