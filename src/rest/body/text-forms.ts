/**
 * The types whose values PostgreSQL writes as JSON but does not read: objects of `hstore`, and arrays whose
 * elements can be arrays, such as documents in `jsonb[]` and values of a domain over an array. When
 * PostgreSQL converts JSON to an array, it treats every nested array as a dimension, so `[[1], 2]` is not a
 * valid `jsonb[]` and `[["a"]]` has two dimensions. The text form of an array distinguishes elements from
 * dimensions (PostgreSQL manual, 8.15.2), and PostgreSQL reads a JSON string as that text form. The same
 * applies to such values inside composite values, at any depth.
 */
import { baseOf, isJson } from '../../access/types.ts'
import type { DataType } from '../../catalog/model.ts'

/**
 * How a value in JSON is rewritten: an array or an `hstore` becomes a string with its text form. A composite
 * value stays an object, in which such members are rewritten.
 */
export type TextForm = ArrayForm | 'hstore' | RecordForm | RecordsForm

/** The members of an object that are rewritten, by name. */
export type TextForms = ReadonlyMap<string, TextForm>

export interface ArrayForm {
  readonly of: ElementForm
}

export interface RecordForm {
  /** Forms of all attributes, in order. */
  readonly elements: readonly ElementForm[]
  /** The position of each attribute. */
  readonly places: ReadonlyMap<string, number>
  /** The attributes that are rewritten if the value stays an object. */
  readonly members: TextForms
}

/** An array of composite values, with any number of dimensions. */
export interface RecordsForm {
  readonly items: RecordForm
}

/**
 * The JSON of an element of an array or composite value: any value, a nested array, an object of attributes,
 * an object of texts, or a value without parts. The arrays around a value without parts are its dimensions.
 * The attributes of a `composite` are unknown.
 */
export type ElementForm = 'json' | ArrayForm | RecordForm | 'composite' | 'hstore' | 'plain'

/** An array of JSON documents. */
export const JSON_ARRAY: ArrayForm = { of: 'json' }

/** An array of values without parts; documents in it also keep their bytes. */
export const PLAIN_ARRAY: ArrayForm = { of: 'plain' }

/** The text form of a type, or null if PostgreSQL reads its JSON. */
export function textFormOf(type: DataType): TextForm | null {
  const form = elementFormOf(type)
  if (form === 'hstore') return form
  if (typeof form === 'string') return null
  if (isRecordForm(form)) return form.members.size > 0 ? form : null
  const { of } = form
  if (of === 'plain' || of === 'composite') return null
  if (typeof of === 'string' || !isRecordForm(of)) return form
  return of.members.size > 0 ? { items: of } : null
}

/** The text form of an array type, even if PostgreSQL reads its JSON; null for other types. */
export function arrayFormOf(type: DataType): ArrayForm | null {
  const form = elementFormOf(type)
  return isArrayForm(form) ? form : null
}

/** The form of a value of this type inside an array or composite value. */
export function elementFormOf(type: DataType): ElementForm {
  if (isJson(type)) return 'json'
  const base = baseOf(type)
  // The type of the extension has a cast to JSON and none from JSON.
  if (base.kind === 'base' && base.name === 'hstore') return 'hstore'
  if (base.kind === 'array' && base.of !== null) return { of: elementFormOf(base.of) }
  return base.kind === 'composite' ? recordFormOf(base) : 'plain'
}

const records = new WeakMap<DataType, RecordForm>()

function recordFormOf(type: DataType): RecordForm | 'composite' {
  const known = records.get(type)
  if (known !== undefined) return known
  const { attributes } = type
  if (attributes === undefined) return 'composite'
  const elements: ElementForm[] = []
  const places = new Map<string, number>()
  const members = new Map<string, TextForm>()
  const record = { elements, places, members }
  records.set(type, record)
  for (const [place, attribute] of attributes.entries()) {
    const form = textFormOf(attribute.type)
    elements.push(elementFormOf(attribute.type))
    places.set(attribute.name, place)
    if (form !== null) members.set(attribute.name, form)
  }
  return record
}

/** Reports whether the form is that of an array in text form. */
export function isArrayForm(form: TextForm | ElementForm): form is ArrayForm {
  return typeof form === 'object' && 'of' in form
}

/** Reports whether the form is that of a composite value. */
export function isRecordForm(form: TextForm | ElementForm): form is RecordForm {
  return typeof form === 'object' && 'elements' in form
}
