/** What every step of a write works with. */
import { unknownColumn } from '../../access/refusals.ts'
import { type Columns, returnable, type View } from '../../access/rights.ts'
import type { Table } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import type { Answer, Incoming } from '../../exchange.ts'
import type { JsonArray, JsonBody, JsonObject, JsonType, KnownKeys } from '../../json/json-body.ts'
import type { WriteResult } from '../../run/run.ts'
import { nameRefusedColumn } from '../body/body-error.ts'
import { withPreference } from '../prefer.ts'
import type { WrittenRequest } from '../request.ts'
import { withTxid } from '../respond.ts'
import { describeViolation } from '../violation.ts'
import type { Wanted } from './request.ts'

/** A write on its way. */
export interface Writing {
  readonly incoming: Incoming
  readonly view: View
  readonly written: WrittenRequest
  readonly table: Table
  readonly wanted: Wanted
}

/** What a write of these columns may answer. */
export function answerable({ view, table }: Writing, written: readonly string[]): Columns {
  return returnable(view.rights.of(table), written)
}

/** The keys of a row. Which of its columns the caller may write, the check says. */
export function columnKeys({ table, view }: Writing): KnownKeys {
  return {
    inItems: true,
    has: key => table.columnByName.has(key),
    refuse(key) {
      throw unknownColumn(key, table, view.rights)
    },
  }
}

/** The answer, with the number of its transaction where it wrote something, and saying what of the preferences was done. */
export function finished({ wanted }: Writing, written: WriteResult | undefined, answer: Answer): Answer {
  const numbered = withTxid(answer, written ?? null)
  const represented = wanted.returned === 'representation' && wanted.returning === undefined && answer.body !== null
  return represented ? withPreference(numbered, 'return=representation') : numbered
}

export function resultOf(written: WriteResult | undefined): WriteResult {
  if (written === undefined) throw new Error('a statement has a result')
  return written
}

/** Which column a value of the body did not fit, and what a constraint that was violated is about. */
export function explaining({ table, view }: Writing, body: JsonObject | JsonArray | null): (error: unknown) => unknown {
  return error => describeViolation(body === null ? error : nameRefusedColumn(error, table, body), view)
}

/** `empty`, `an array`, `a string`, `null`. */
export function describeBody(body: JsonBody): string {
  switch (body.kind) {
    case 'empty':
      return 'empty'
    case 'scalar':
      return describeType(body.type)
    default:
      return describeType(body.kind)
  }
}

export function describeType(type: JsonType): string {
  if (type === 'null') return type
  return `${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type}`
}

export function refusedBody(what: string, instead: string): GatewayError {
  return new GatewayError('PARSE_ERROR', `the body is ${what}; send ${instead}`)
}
