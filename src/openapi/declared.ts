/** Examples that comments of the database declare (catalog/comment.ts), as JSON values that the schemas beside them allow. */
import type { Column, DataType } from '../catalog/model.ts'
import { shorten } from '../text/shorten.ts'
import { exampleValue } from './examples.ts'
import { fits } from './fits.ts'
import type { Schema } from './model.ts'

/** A document has each example several times, and a longer one shows nobody more. */
export const EXAMPLE_CHARACTERS_MAX = 4_096

export type Declared<T = unknown> = { readonly kind: 'value'; readonly value: T } | Misfit

export interface Misfit {
  readonly kind: 'misfit'
  /** A clause. */
  readonly why: string
}

export interface Typed {
  readonly type: DataType
  readonly typeText: string
}

/** What a column declares; undefined if that is nothing, or nothing that fits. `schema`: what the type is in JSON. */
export function declaredValue(column: Column, schema: Schema): unknown {
  if (column.example === null) return undefined
  const declared = readExample(column.example, column, schema)
  return declared.kind === 'value' ? declared.value : undefined
}

/** The text itself where the schema is one of texts, else JSON: what the API answers for such a value, but without the quotes around a text. */
export function readExample(text: string, of: Typed, schema: Schema): Declared {
  const read = schema.type === 'string' ? readText(text) : readJson(text)
  if (read?.kind === 'misfit') return read
  return read !== null && fits(read.value, schema) ? read : misfit(notOne(text, of, schema))
}

function readText(text: string): Declared {
  return tooLong(text) ?? { kind: 'value', value: text }
}

/** Null where it is no JSON. */
export function readJson(text: string): Declared | null {
  const long = tooLong(text)
  if (long !== null) return long
  const number = numbersOf(text).find(one => !isKept(one))
  if (number !== undefined) {
    return misfit(`${shorten(number)} has more digits than the ${DIGITS_MAX} that all readers of JSON keep`)
  }
  try {
    return { kind: 'value', value: JSON.parse(text) }
  } catch {
    return null
  }
}

function tooLong({ length }: string): Declared | null {
  return length <= EXAMPLE_CHARACTERS_MAX
    ? null
    : misfit(`it has ${length} characters, more than ${EXAMPLE_CHARACTERS_MAX}`)
}

/** `12,50 is no numeric(12,2) as the API answers one, such as 1.5`. */
export function notOne(text: string, { type, typeText }: Typed, schema: Schema): string {
  const example = exampleValue(type, schema)
  const form = schema.type === 'string' ? example : JSON.stringify(example)
  return `${shorten(text)} is no ${typeText} as the API answers one${form === undefined ? '' : `, such as ${form}`}`
}

export function misfit(why: string): Misfit {
  return { kind: 'misfit', why }
}

// ---- digits ------------------------------------------------------------------------------------------------

/** Significant digits that a double-precision number holds whatever they are (DBL_DIG of IEEE 754). */
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
