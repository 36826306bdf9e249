/** What the check finds an expression to be, and which operators such a thing has none of. */
import type { DataType } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Expression } from '../language/tree/ast.ts'
import { column } from '../language/tree/build.ts'
import type { Growth } from './tally.ts'
import { baseOf, castTo, isComparable, isDocument, isEnumDomain, isJson, isOrdered, isScalar, isText } from './types.ts'

/** What an expression has been found to be. */
export interface Typed {
  readonly expression: Expression
  /** Null: not known, and then left to PostgreSQL. */
  readonly type: DataType | null
  readonly typeName: string | null
  readonly column: string | null
  /** What a mention of the column adds to the statement; see `RowsetColumn`. */
  readonly growth?: Growth | null
  /** Decimal digits that it has at most; left out: as many as a number can have. */
  readonly digits?: number
}

export const UNKNOWN: Typed = { expression: column('?'), type: null, typeName: null, column: null }

export function untyped(expression: Expression): Typed {
  return { expression, type: null, typeName: null, column: null }
}

/** With the operators of what it is made of. */
export function comparable(typed: Typed): Typed {
  if (typed.type === null || !isEnumDomain(typed.type)) return typed
  return { ...typed, expression: castTo(typed.expression, typed.type) }
}

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
      'and a list holds single values; compare the whole array by eq, or use contains or overlaps',
    )
  }
}

/** Beside a text a number would be one, and 10 less than 9. */
export function refuseUncountable(typed: Typed, other: Expression): void {
  refuseIncomparable(typed)
  const isNumber = other.kind === 'literal' && (other.type === 'integer' || other.type === 'decimal')
  if (isNumber && (typed.type === null ? typed.typeName === 'text' : isText(typed.type))) {
    throw refusedType(
      typed,
      `and texts are in the order of their letters, '10' before '9'; cast it, as ` +
        'in (…)::numeric, or write the number as a text',
    )
  }
}

export function refuseScalar(typed: Typed): void {
  if (typed.type === null ? typed.typeName === 'text' : isScalar(typed.type)) {
    throw refusedType(typed, 'and contains, contained and overlaps compare arrays, ranges and jsonb')
  }
}

export function refuseUnordered(typed: Typed): void {
  if (typed.type === null ? typed.typeName === 'json' : !isOrdered(typed.type)) {
    throw refusedType(typed, `whose values have no order, so no sort or distinct; ${insteadOf(typed)}`)
  }
}

export function refuseUnsearchable(typed: Typed): void {
  if (typed.type !== null && !isDocument(typed.type)) {
    throw refusedType(typed, 'and fts searches text, JSON and tsvector')
  }
}

/** PostgreSQL would refuse it too, but would not say which column, nor what to do. */
function refusedType({ expression, column, type, typeName }: Typed, reason: string): GatewayError {
  const what = column === null ? 'the value' : `${type === null ? 'the path into column' : 'column'} "${column}"`
  const { span } = expression
  return new GatewayError('PARSE_ERROR', `${what} is ${typeName ?? 'of another type'}, ${reason}`, {
    span,
  })
}

function insteadOf(typed: Typed): string {
  return isJsonValue(typed) ? `use a text in it: ${typed.column ?? '…'}->>key` : 'use another column'
}

/** JSON as it is; a text taken out of it is none. */
export function isJsonValue({ type, typeName }: Pick<Typed, 'type' | 'typeName'>): boolean {
  return type === null ? typeName === 'json' || typeName === 'jsonb' : isJson(type)
}
