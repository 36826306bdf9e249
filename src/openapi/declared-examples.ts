/**
 * Examples declared in database comments (catalog/comment.ts), as JSON values that are valid by the schemas
 * beside them.
 */
import type { Column, DataType } from '../catalog/model.ts'
import { shorten } from '../text/shorten.ts'
import { exampleValue } from './examples.ts'
import type { SchemaObject } from './model.ts'
import { isValid } from './validate-value.ts'

/** Limit on the length of an example, which appears several times in a document. */
export const EXAMPLE_CHARACTERS_MAX = 4_096

/** A declared example: a valid value, or the reason why it is invalid. */
export type DeclaredExample<T = unknown> = { readonly kind: 'value'; readonly value: T } | InvalidValue

/** An invalid example. */
export interface InvalidValue {
  readonly kind: 'invalid'
  /** A clause that completes the sentence. */
  readonly why: string
}

/** The type of a value. */
export interface ValueType {
  readonly type: DataType
  readonly typeText: string
}

/**
 * The declared example of a column; undefined if it has none, or none that is valid. `schema` is its type in
 * JSON.
 */
export function declaredValue(column: Column, schema: SchemaObject): unknown {
  if (column.example === null) return undefined
  const declared = readExample(column.example, column, schema)
  return declared.kind === 'value' ? declared.value : undefined
}

/** Reads an example: the text itself for a schema of strings, and JSON otherwise. */
export function readExample(text: string, of: ValueType, schema: SchemaObject): DeclaredExample {
  const read = schema.type === 'string' ? readText(text) : readJson(text)
  if (read?.kind === 'invalid') return read
  return read !== null && isValid(read.value, schema) ? read : invalidValue(invalidReason(text, of, schema))
}

function readText(text: string): DeclaredExample {
  return tooLong(text) ?? { kind: 'value', value: text }
}

/** Parses JSON; null if it is malformed. */
export function readJson(text: string): DeclaredExample | null {
  const long = tooLong(text)
  if (long !== null) return long
  const number = numbersOf(text).find(one => !isKept(one))
  if (number !== undefined) {
    return invalidValue(`${shorten(number)} has more than ${DIGITS_MAX} digits, which JSON parsers may not preserve`)
  }
  try {
    return { kind: 'value', value: JSON.parse(text) }
  } catch {
    return null
  }
}

function tooLong({ length }: string): DeclaredExample | null {
  return length <= EXAMPLE_CHARACTERS_MAX
    ? null
    : invalidValue(`it has ${length} characters; the limit is ${EXAMPLE_CHARACTERS_MAX}`)
}

/** Why text is not a value of a type: `12,50 is not a numeric(12,2) as the API returns it, such as 1.5`. */
export function invalidReason(text: string, { type, typeText }: ValueType, schema: SchemaObject): string {
  const example = exampleValue(type, schema)
  const form = schema.type === 'string' ? example : JSON.stringify(example)
  return `${shorten(text)} is not a ${typeText} as the API returns it${form === undefined ? '' : `, such as ${form}`}`
}

/** Creates the result for an invalid example. `why` completes a sentence. */
export function invalidValue(why: string): InvalidValue {
  return { kind: 'invalid', why }
}

// // --- digits ---

/** Significant digits that every double-precision number preserves (DBL_DIG of IEEE 754). */
const DIGITS_MAX = 15

function numbersOf(json: string): readonly string[] {
  return (json.match(STRING_OR_NUMBER) ?? []).filter(token => !token.startsWith('"'))
}

const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/gs

function isKept(number: string): boolean {
  const [mantissa = ''] = number.split(/e/i)
  const digits = mantissa.replace(/[-+.]/g, '').replace(/^0+|0+$/g, '')
  return digits.length <= DIGITS_MAX && Number.isFinite(Number(number))
}
