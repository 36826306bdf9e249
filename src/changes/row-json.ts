/**
 * Rows of the write-ahead log as JSON: from the text of each value to what `row_to_json` makes of it, under
 * the settings of `install/capture`. Tables with types that cannot be converted from text are captured by
 * triggers.
 */
import type { TupleValue } from '../postgres/replication/pgoutput.ts'
import { UNCHANGED } from '../postgres/replication/pgoutput.ts'

/** The values of a row as they were received, or as texts. */
export type Row = readonly (TupleValue | string)[]

/** How the text of a type's values becomes JSON. */
export interface TypeText {
  /** The type, without domains; for an array, its element type. */
  readonly oid: number
  /** The delimiter of an array's elements; null for a scalar. */
  readonly delimiter: string | null
}

const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** int8, int2, int4, float4, float8, numeric. */
const NUMBERS: ReadonlySet<number> = new Set([20, 21, 23, 700, 701, 1700])
const BOOLEAN = 16
/** json, jsonb. */
const DOCUMENTS: ReadonlySet<number> = new Set([114, 3802])
const TIMESTAMP = 1114
const TIMESTAMP_TZ = 1184

/**
 * Type json can store the character U+0000, but PostgreSQL cannot read a document with it: one row would keep
 * every subscriber from reading the log. It becomes the replacement character.
 */
const ESCAPES = /\\(?:u0000|[\s\S])/g
const readable = (escaped: string): string => (escaped === '\\u0000' ? '\\ufffd' : escaped)

/** The JSON of a scalar. */
function scalarJson(text: string, oid: number): string {
  if (NUMBERS.has(oid)) return JSON_NUMBER.test(text) ? text : JSON.stringify(text)
  if (oid === BOOLEAN) return text === 't' ? 'true' : 'false'
  if (DOCUMENTS.has(oid)) return text.includes('\\u0000') ? text.replace(ESCAPES, readable) : text
  if (oid === TIMESTAMP) return JSON.stringify(text.replace(' ', 'T'))
  // In UTC, the offset is always printed as +00.
  if (oid === TIMESTAMP_TZ) return JSON.stringify(text.replace(' ', 'T').replace('+00', '+00:00'))
  return JSON.stringify(text)
}

/** The JSON of an array's text (PostgreSQL manual, 8.15.6), such as `[0:1]={1,NULL}`. */
function arrayJson(text: string, { oid, delimiter }: TypeText): string {
  let out = ''
  let at = text.indexOf('{')
  while (at < text.length) {
    const char = text[at]
    if (char === '{' || char === '}') {
      out += char === '{' ? '[' : ']'
      at++
    } else if (char === delimiter) {
      out += ','
      at++
    } else if (char === '"') {
      let element = ''
      for (at++; at < text.length && text[at] !== '"'; at++) {
        if (text[at] === '\\') at++
        element += text[at]
      }
      at++
      out += scalarJson(element, oid)
    } else {
      const start = at
      while (at < text.length && text[at] !== delimiter && text[at] !== '}') at++
      const element = text.slice(start, at)
      out += element === 'NULL' ? 'null' : scalarJson(element, oid)
    }
  }
  return out
}

/** The JSON of a value. */
export function valueJson(value: Exclude<Row[number], symbol>, type: TypeText): string {
  if (value === null) return 'null'
  const text = value.toString()
  return type.delimiter === null ? scalarJson(text, type.oid) : arrayJson(text, type)
}

/** A column with its name as JSON. */
export interface ColumnText {
  readonly name: string
  readonly label: string
  readonly type: TypeText
}

/** The JSON of a row. Values that were not sent are left out. */
export function rowJson(tuple: Row, columns: readonly ColumnText[]): string {
  let out = ''
  for (const [index, { label, type }] of columns.entries()) {
    const value = tuple[index] ?? null
    if (value !== UNCHANGED) out += `${out === '' ? '{' : ','}${label}:${valueJson(value, type)}`
  }
  return out === '' ? '{}' : `${out}}`
}
