/** Responses of calls (docs/reference/functions.md#results): `{data, function, result_format}`, and `count` with a set, `columns` with binary cells. */
import type { Answer } from '../../exchange.ts'
import type { CallResult, Row } from '../../run/run.ts'
import { joinRows, wholeValue } from '../respond.ts'
import type { CallForm } from './tree.ts'

/** What answers say of the function, the same of each; as the bytes of its UTF-8, a character each. */
export function aboutFunction(name: string, format: 'text' | 'binary'): string {
  return latin1Of(`,"function":${JSON.stringify(name)},"result_format":"${format}"`)
}

export interface CallOutcome {
  /** `aboutFunction`. */
  readonly about: string
  readonly set: boolean
  readonly form: CallForm
  readonly called: CallResult
  /** It may be answered from a cache: nothing was changed. */
  readonly read: boolean
}

/** Each row is one JSON text that PostgreSQL wrote. */
export function respondText(outcome: CallOutcome): Answer {
  return answer(outcome, outcome.called.rows, '')
}

/** `typeOf`: PostgreSQL's name of a type by its OID. */
export function respondBinary(outcome: CallOutcome, typeOf: (oid: number) => string): Answer {
  const { called, form } = outcome
  const fields = form === 'nothing' ? [] : called.fields
  const columns = fields.map(({ name, typeOid }) => ({ name, type: typeOf(typeOid), oid: typeOid }))
  const keys = fields.map(({ name }) => JSON.stringify(name))
  const rows = called.rows.map(row => [Buffer.from(form === 'object' ? cells(row, keys) : cell(row[0]))])
  return answer(outcome, rows, latin1Of(`,"columns":${JSON.stringify(columns)}`))
}

function cells(row: Row, keys: readonly string[]): string {
  return `{${keys.map((key, index) => `${key}:${cell(row[index])}`).join(',')}}`
}

/** Base64 needs no escapes in JSON. */
function cell(value: Buffer | null | undefined): string {
  return value === null || value === undefined ? 'null' : `"${value.toString('base64')}"`
}

const NULL = Buffer.from('null')

/** `more`: as `about`. */
function answer(outcome: CallOutcome, rows: readonly Row[], more: string): Answer {
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

/** The bytes of a text in UTF-8, a character each. */
function latin1Of(text: string): string {
  // As nearly every name is.
  if (/^[ -~]*$/.test(text)) return text
  return Buffer.from(text).toString('latin1')
}

const HEADERS = { 'Content-Type': 'application/json; charset=utf-8' }
const READ_HEADERS = { ...HEADERS, 'X-Cache': 'MISS' }
