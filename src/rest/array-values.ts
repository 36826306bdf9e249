/**
 * Arrays whose elements may be arrays themselves: documents of `jsonb[]`, values of a domain over an array. Where JSON is to become an array, PostgreSQL
 * takes every array in it for a dimension, so `[[1], 2]` is no `jsonb[]` and `[["a"]]` has two dimensions. Its text form tells elements from
 * dimensions (manual, 8.15.2), and a string is read as that: such a value goes into the statement as a string, element by element, bytes of documents as they came.
 */
import { baseOf, isJson } from '../access/types.ts'
import type { DataType, Table } from '../catalog/model.ts'
import { printElements, quoteElement } from './array-text.ts'
import { bytesOf, type JsonObject, type JsonPart, type JsonValue, parseJsonBody, partOf } from './json-body.ts'
import { unescapeString } from './json-scanner.ts'

export interface ArrayForm {
  readonly of: ElementForm
}

/** What an element is in JSON: any value, an array of its own, an object of columns, or a value without parts, which the arrays around it are dimensions of. */
type ElementForm = 'json' | ArrayForm | 'composite' | 'plain'

export const JSON_ARRAY: ArrayForm = { of: 'json' }

/** Also documents in it go as they are. */
export const PLAIN_ARRAY: ArrayForm = { of: 'plain' }

/** Null: PostgreSQL reads the JSON of this type by itself. */
export function arrayFormOf(type: DataType): ArrayForm | null {
  const { kind, of: element } = baseOf(type)
  if (kind !== 'array' || element === null) return null
  const of = elementFormOf(element)
  return of === 'plain' || of === 'composite' ? null : { of }
}

function elementFormOf(type: DataType): ElementForm {
  if (isJson(type)) return 'json'
  const { kind, of } = baseOf(type)
  if (kind === 'array' && of !== null) return { of: elementFormOf(of) }
  return kind === 'composite' ? 'composite' : 'plain'
}

/** By member. */
type ArrayForms = ReadonlyMap<string, ArrayForm>

/** Rows of a table, an object or an array of objects that are known to be JSON; the same bytes where none of the columns asks for more. */
export function withArrayColumns(bytes: Buffer, table: Table, columns: readonly string[]): Buffer {
  const forms = formsOf(table)
  return forms.size > 0 && columns.some(name => forms.has(name)) ? withArrayTexts(bytes, forms) : bytes
}

const formsOfTables = new WeakMap<Table, ArrayForms>()

function formsOf(table: Table): ArrayForms {
  let forms = formsOfTables.get(table)
  if (forms === undefined) {
    forms = new Map(
      table.columns.flatMap(({ name, type }) => {
        const form = arrayFormOf(type)
        return form === null ? [] : [[name, form] as const]
      }),
    )
    formsOfTables.set(table, forms)
  }
  return forms
}

/** The same with arrays in place of these members; those that have no text form stay, and have PostgreSQL's error. */
export function withArrayTexts(bytes: Buffer, forms: ArrayForms): Buffer {
  if (forms.size === 0) return bytes
  const body = parseJsonBody(bytes, Number.POSITIVE_INFINITY)
  const parts: Buffer[] = []
  let done = 0
  const rewrite = (row: JsonObject, start: number) => {
    for (const member of row.members) {
      const text = textOfMember(row, member, forms.get(member.key))
      if (text === null) continue
      parts.push(bytes.subarray(done, start + member.start), text)
      done = start + member.end
    }
  }
  if (body.kind === 'object') rewrite(body, 0)
  if (body.kind === 'array') {
    for (const item of body.items) {
      const row = parseJsonBody(bytesOf(body, item), 0)
      if (row.kind === 'object') rewrite(row, item.start)
    }
  }
  return done === 0 ? bytes : Buffer.concat([...parts, bytes.subarray(done)])
}

function textOfMember(row: JsonObject, member: JsonPart, form: ArrayForm | undefined): Buffer | null {
  // A string is a text form already, and anything else no array.
  if (form === undefined || member.type !== 'array') return null
  return inString(printArray(bytesOf(row, member), form))
}

/** The JSON string for an array of these elements; null where it has no text form. */
export function printListed(elements: readonly JsonValue[], form: ArrayForm): Buffer | null {
  return inString(printValues(elements, form, DIMENSIONS_MAX))
}

function inString(text: string | null): Buffer | null {
  return text === null ? null : Buffer.from(JSON.stringify(text))
}

/** PostgreSQL's MAXDIM. What has more is refused by it, and is not worth walking through. */
const DIMENSIONS_MAX = 6

/** PostgreSQL's text form for a JSON array: `{"[1]","2",NULL}`. Null where it has none, as with more than `dimensions`. */
export function printArray(bytes: Buffer, form: ArrayForm, dimensions: number = DIMENSIONS_MAX): string | null {
  const array = parseJsonBody(bytes, Number.POSITIVE_INFINITY)
  if (array.kind !== 'array') return null
  return printValues(
    array.items.map(item => partOf(array, item)),
    form,
    dimensions,
  )
}

function printValues(elements: readonly JsonValue[], { of }: ArrayForm, dimensions: number): string | null {
  const texts: string[] = []
  for (const element of elements) {
    const text = printElement(element, of, dimensions)
    if (text === null) return null
    texts.push(text)
  }
  return printElements(texts)
}

function printElement({ type, bytes }: JsonValue, form: ElementForm, dimensions: number): string | null {
  // Also for documents: JSON has one null, as for a column of them.
  if (type === 'null') return 'NULL'
  if (form === 'json') return quoteElement(bytes.toString())
  switch (type) {
    case 'string':
      return quoteElement(unescapeString(bytes.toString('utf8', 1, bytes.length - 1)))
    case 'array': {
      if (typeof form === 'string') {
        return dimensions > 1 ? printArray(bytes, { of: form }, dimensions - 1) : null
      }
      const text = printArray(bytes, form)
      return text === null ? null : quoteElement(text)
    }
    case 'object':
      // Which columns it has, and in which order, the catalogue does not say.
      return form === 'composite' ? null : quoteElement(bytes.toString())
    default:
      return bytes.toString()
  }
}
