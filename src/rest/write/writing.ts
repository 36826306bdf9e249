/** The parts that the steps of a write share. */
import { unknownTableColumn } from '../../access/refusals.ts'
import { type ColumnSet, returnable, type View } from '../../access/rights.ts'
import type { Table } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import type { Answer, Incoming } from '../../exchange.ts'
import type { JsonArray, JsonBody, JsonType, KnownKeys, ObjectOutline } from '../../json/json-body.ts'
import type { WriteResult } from '../../run/run.ts'
import { nameRefusedColumn } from '../body/body-error.ts'
import { withPreference } from '../prefer.ts'
import type { WrittenRequest } from '../request.ts'
import { withTxid } from '../respond.ts'
import type { TablesOptions } from '../row-version.ts'
import { describeViolation } from '../violation.ts'
import type { Wanted } from './request.ts'

/** A write in progress. */
export interface Writing {
  readonly incoming: Incoming
  readonly view: View
  readonly written: WrittenRequest
  readonly table: Table
  readonly wanted: Wanted
  readonly tables: TablesOptions
}

/** The columns that a write of `written` can return. */
export function answerable({ view, table }: Writing, written: readonly string[]): ColumnSet {
  return returnable(view.rights.of(table), written)
}

/** The accepted keys of a row. The access check decides which columns the caller can write. */
export function columnKeys({ table, view }: Writing): KnownKeys {
  return {
    inItems: true,
    has: key => table.columnByName.has(key),
    refuse(key) {
      throw unknownTableColumn(key, table, view.rights)
    },
  }
}

/** Adds the transaction number of a write and the applied preference to the response. */
export function finished({ wanted }: Writing, written: WriteResult | undefined, answer: Answer): Answer {
  const numbered = withTxid(answer, written ?? null)
  const represented = wanted.returned === 'representation' && wanted.returning === undefined && answer.body !== null
  return represented ? withPreference(numbered, 'return=representation') : numbered
}

/** The result of a statement. */
export function writeResultOf(written: WriteResult | undefined): WriteResult {
  if (written === undefined) throw new Error('every statement must have a result')
  return written
}

/**
 * Returns a function that adds the column of a value in the body, or the violated constraint, to an error.
 */
export function explaining(
  { table, view }: Writing,
  body: ObjectOutline | JsonArray | null,
): (error: unknown) => unknown | Promise<unknown> {
  return error => {
    const described = describeViolation(error, view)
    return body === null ? described : nameRefusedColumn(described, table, body)
  }
}

/** Describes a body for messages: `empty`, `an array`, `a string`, `null`. */
export function describeBody(body: JsonBody): string {
  switch (body.kind) {
    case 'empty':
      return 'empty'
    case 'scalar':
      return describeJsonType(body.type)
    default:
      return describeJsonType(body.kind)
  }
}

/** Describes a JSON type with its article. */
export function describeJsonType(type: JsonType): string {
  if (type === 'null') return type
  return `${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type}`
}

/** Creates the error for a body of the wrong form. */
export function refusedBody(what: string, instead: string): GatewayError {
  return new GatewayError('PARSE_ERROR', `the body is ${what}; send ${instead}`)
}
