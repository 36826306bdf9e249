/**
 * The notification of a gateway write (run/write-notifications), decoded from the payload of a NOTIFY,
 * which any database user can send.
 */

import type { ChangeOperation } from '../compile/row-images.ts'
import { type ObjectOutline, parseJsonBody, partBytes } from '../json/json-body.ts'

/** A notification of one statement's changes. */
export interface WriteNotification {
  readonly txid: string
  /** The process that made the write. */
  readonly origin: string
  /** True if that process receives the old row images. */
  readonly hasBefore: boolean
  /** The columns that the change assigned; null if rows were inserted or deleted. */
  readonly assigned: readonly string[] | null
  /** The routing column; null for none. */
  readonly by: string | null
  /** The routing values of a bulk change, as hashes; null if unknown. */
  readonly whom: readonly string[] | null
  /** When the transaction began, in ISO 8601. */
  readonly at: string
  /** The rows; null if there are too many to list. */
  readonly rows: readonly NotifiedRow[] | null
}

/** One changed row. */
export interface NotifiedRow {
  readonly operation: ChangeOperation
  /** The key as JSON text, as PostgreSQL printed it, so that no digits are lost and texts can be compared. */
  readonly key: string
  /** The hash of the row's routing value, or of its last one; null if unknown. */
  readonly route: string | null
}

const OPERATIONS: Readonly<Record<string, ChangeOperation>> = { I: 'INSERT', U: 'UPDATE', D: 'DELETE' }

/** Decodes a notification. Null if no gateway sent it; then the changes are unknown. */
export function decodeNotification(payload: string): WriteNotification | null {
  try {
    const whole = parseJsonBody(Buffer.from(payload), Number.POSITIVE_INFINITY)
    return whole.kind === 'object' ? notificationOf(whole) : null
  } catch {
    return null
  }
}

function notificationOf(whole: ObjectOutline): WriteNotification | null {
  const member = (name: string): Buffer | null => {
    const found = whole.members.find(({ key }) => key === name)
    return found === undefined ? null : partBytes(whole, found)
  }
  const value = (name: string): unknown => JSON.parse(member(name)?.toString() ?? 'null')
  const [txid, origin, at, assigned, by] = [value('txid'), value('origin'), value('at'), value('set'), value('by')]
  if (typeof txid !== 'string' || typeof origin !== 'string' || typeof at !== 'string') return null
  if (assigned !== null && !isStrings(assigned)) return null
  if (by !== null && typeof by !== 'string') return null
  const listed = member('rows')
  const rows = listed === null ? null : rowsOf(listed)
  if (listed !== null && rows === null) return null
  const whom = hashesOf(member('whom'))
  return { txid, origin, hasBefore: value('before') === true, assigned, by, whom, at, rows }
}

/** As text, because numbers would lose digits. */
function hashOf(bytes: Buffer | null): string | null {
  const text = bytes?.toString() ?? ''
  return /^-?\d{1,20}$/.test(text) ? text : null
}

function hashesOf(bytes: Buffer | null): readonly string[] | null {
  const list = bytes === null ? null : parseJsonBody(bytes, Number.POSITIVE_INFINITY)
  if (list?.kind !== 'array') return null
  const hashes = list.items.map(item => hashOf(partBytes(list, item)))
  return hashes.every(hash => hash !== null) ? hashes : null
}

/** Each row is `["I",{"id": 7}]`, with an optional third item, the routing hash. */
function rowsOf(listed: Buffer): readonly NotifiedRow[] | null {
  const list = parseJsonBody(listed, Number.POSITIVE_INFINITY)
  if (list.kind !== 'array') return null
  const rows = list.items.map((item): NotifiedRow | null => {
    const change = parseJsonBody(partBytes(list, item), 3)
    if (change.kind !== 'array') return null
    const [letter, key, route] = change.items
    if (letter === undefined || key === undefined || key.type !== 'object') return null
    const operation = OPERATIONS[String(JSON.parse(partBytes(change, letter).toString()))]
    if (operation === undefined) return null
    const routed = route === undefined ? null : hashOf(partBytes(change, route))
    return { operation, key: partBytes(change, key).toString(), route: routed }
  })
  return rows.every(row => row !== null) ? rows : null
}

function isStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every(item => typeof item === 'string')
}
