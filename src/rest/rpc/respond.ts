/**
 * Builds the responses of calls (docs/reference/functions.md#results): `{data, function, result_format}`,
 * `count` for a set, and `columns` with binary cells.
 */
import type { Answer } from '../../exchange.ts'
import type { CallResult, ResultRow } from '../../run/run.ts'
import { joinRows, wholeValue } from '../respond.ts'
import type { CallForm } from './tree.ts'

/**
 * The part of a response that describes the function and is the same in each response; one character for each
 * byte of its UTF-8 encoding.
 */
export function aboutFunction(name: string, format: 'text' | 'binary'): string {
  return latin1Of(`,"function":${JSON.stringify(name)},"result_format":"${format}"`)
}

/** The parts of the response to a call. */
export interface CallOutcome {
  /** The result of `aboutFunction`. */
  readonly about: string
  readonly set: boolean
  readonly form: CallForm
  readonly called: CallResult
  /** True if the call changed nothing, so the response has the headers of a read. */
  readonly read: boolean
}

/** Responds with rows that each consist of one JSON text by PostgreSQL. */
export function respondText(outcome: CallOutcome): Answer {
  return answer(outcome, outcome.called.rows, '')
}

/** Responds with binary cells. `typeOf` returns PostgreSQL's name of a type by its OID. */
export function respondBinary(outcome: CallOutcome, typeOf: (oid: number) => string): Answer {
  const { called, form } = outcome
  const fields = form === 'nothing' ? [] : called.fields
  const columns = fields.map(({ name, typeOid }) => ({ name, type: typeOf(typeOid), oid: typeOid }))
  const keys = fields.map(({ name }) => JSON.stringify(name))
  const rows = called.rows.map(row => [Buffer.from(form === 'object' ? cells(row, keys) : cell(row[0]))])
  return answer(outcome, rows, latin1Of(`,"columns":${JSON.stringify(columns)}`))
}

function cells(row: ResultRow, keys: readonly string[]): string {
  return `{${keys.map((key, index) => `${key}:${cell(row[index])}`).join(',')}}`
}

/** Base64 needs no escapes in JSON. */
function cell(value: Buffer | null | undefined): string {
  return value === null || value === undefined ? 'null' : `"${value.toString('base64')}"`
}

const NULL = Buffer.from('null')

/** Builds a response; `more` is appended and encoded like `about`. */
function answer(outcome: CallOutcome, rows: readonly ResultRow[], more: string): Answer {
  const { about, set, form } = outcome
  const isSet = set && form !== 'nothing'
  const end = isSet ? `]${about},"count":${rows.length}${more}}` : `${about}${more}}`
  const body = isSet
    ? joinRows(
        rows.map(([value]) => [value ?? NULL]),
        rows.length,
        end,
      )
    : wholeValue(form === 'nothing' ? NULL : (rows[0]?.[0] ?? NULL), end)
  return { status: 200, headers: outcome.read ? READ_HEADERS : HEADERS, rows: rows.length, body }
}

/** The UTF-8 bytes of a text, one character each. */
function latin1Of(text: string): string {
  // Nearly every name is ASCII.
  if (/^[ -~]*$/.test(text)) return text
  return Buffer.from(text).toString('latin1')
}

const HEADERS = { 'Content-Type': 'application/json; charset=utf-8' }
const READ_HEADERS = { ...HEADERS, 'X-Cache': 'MISS' }
