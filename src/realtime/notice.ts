/** What a write told of itself (run/announce): decoded from the payload of a NOTIFY, which anybody who may connect to the database can send. */

import { bytesOf, type JsonObject, parseJsonBody } from '../json/json-body.ts'
import type { Operation } from './change.ts'

export interface Notice {
  readonly txid: string
  /** The process that wrote. */
  readonly origin: string
  /** That process learns what the rows were before. */
  readonly hasBefore: boolean
  /** Columns that a change assigned; null: rows came or went as a whole. */
  readonly assigned: readonly string[] | null
  /** The column whose values say whom the rows concern; null: none does. */
  readonly by: string | null
  /** Of rows that are too many to tell: the values that they have in it now, as hashes; null: nobody knows. */
  readonly whom: readonly string[] | null
  /** When the transaction began, ISO 8601. */
  readonly at: string
  /** Null: too many to tell. */
  readonly rows: readonly RowChange[] | null
}

export interface RowChange {
  readonly operation: Operation
  /** The key as JSON text, as PostgreSQL wrote it: digits that JavaScript would lose are kept, and texts can be compared. */
  readonly key: string
  /** The hash of the value that it has in `by` now, or had last; null: unknown. */
  readonly route: string | null
}

const OPERATIONS: Readonly<Record<string, Operation>> = { I: 'INSERT', U: 'UPDATE', D: 'DELETE' }

/** Null for what no gateway wrote: then something changed, and nobody knows what. */
export function decodeNotice(payload: string): Notice | null {
  try {
    const whole = parseJsonBody(Buffer.from(payload), Number.POSITIVE_INFINITY)
    return whole.kind === 'object' ? noticeOf(whole) : null
  } catch {
    return null
  }
}

function noticeOf(whole: JsonObject): Notice | null {
  const member = (name: string): Buffer | null => {
    const found = whole.members.find(({ key }) => key === name)
    return found === undefined ? null : bytesOf(whole, found)
  }
  const value = (name: string): unknown => JSON.parse(member(name)?.toString() ?? 'null')
  const [txid, origin, at, assigned, by] = [value('txid'), value('origin'), value('at'), value('set'), value('by')]
  if (typeof txid !== 'string' || typeof origin !== 'string' || typeof at !== 'string') return null
  if (assigned !== null && !isTexts(assigned)) return null
  if (by !== null && typeof by !== 'string') return null
  const listed = member('rows')
  const rows = listed === null ? null : rowsOf(listed)
  if (listed !== null && rows === null) return null
  const whom = hashesOf(member('whom'))
  return { txid, origin, hasBefore: value('before') === true, assigned, by, whom, at, rows }
}

/** Digits that JavaScript would lose are kept. */
function hashOf(bytes: Buffer | null): string | null {
  const text = bytes?.toString() ?? ''
  return /^-?\d{1,20}$/.test(text) ? text : null
}

function hashesOf(bytes: Buffer | null): readonly string[] | null {
  const list = bytes === null ? null : parseJsonBody(bytes, Number.POSITIVE_INFINITY)
  if (list?.kind !== 'array') return null
  const hashes = list.items.map(item => hashOf(bytesOf(list, item)))
  return hashes.every(hash => hash !== null) ? hashes : null
}

/** `["I",{"id": 7}]` each, and a third item that says whom it concerns. */
function rowsOf(listed: Buffer): readonly RowChange[] | null {
  const list = parseJsonBody(listed, Number.POSITIVE_INFINITY)
  if (list.kind !== 'array') return null
  const rows = list.items.map((item): RowChange | null => {
    const change = parseJsonBody(bytesOf(list, item), 3)
    if (change.kind !== 'array') return null
    const [letter, key, route] = change.items
    if (letter === undefined || key === undefined || key.type !== 'object') return null
    const operation = OPERATIONS[String(JSON.parse(bytesOf(change, letter).toString()))]
    if (operation === undefined) return null
    const routed = route === undefined ? null : hashOf(bytesOf(change, route))
    return { operation, key: bytesOf(change, key).toString(), route: routed }
  })
  return rows.every(row => row !== null) ? rows : null
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every(item => typeof item === 'string')
}
