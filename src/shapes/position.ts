/**
 * Handles and offsets. An offset is a position in the change log, and a handle identifies a shape as one
 * caller sees it. Both are valid at every gateway of the database and after a restart.
 *
 * An offset `{xmax}_{open}` is a snapshot: `{open}` lists the transactions below `xmax` that were still
 * running, as octal distances that each follow a `9`; `0` for none.
 */
import { createHash } from 'node:crypto'
import { printToken, readToken, type Snapshot, TOKEN_OPEN_MAX, union } from '../realtime/snapshot.ts'

/** The parts of a handle. */
export interface Handle {
  /** Identifies the shape and what its caller sees. */
  readonly digest: string
  /** The epoch in which transaction numbers are valid. */
  readonly epoch: string
  /** The offset at which the handle was issued. */
  readonly start: string
}

/** The offset of the response with the rows of a handle, instead of the position at which they were read. */
export const START_OFFSET = '0_inf'

/** The offsets with which a client starts a shape. */
const START: ReadonlySet<string> = new Set(['0_0', START_OFFSET])

const HANDLE = /^([0-9a-f]{32})-([\w-]{8})-(\d{1,20}_\d{1,400})-[0-9a-z]{1,12}$/
const OFFSET = /^(\d{1,20})_(\d{1,400})$/

/** Limit on transaction numbers, which are 64 bits. */
const XID_MAX = 2n ** 62n

/** The digest of texts that together identify a shape and what its caller sees. */
export function digestOf(...texts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(texts)).digest('hex').slice(0, 32)
}

/** Creates a handle that starts at a resume token. `stamp` distinguishes handles with the same position. */
export function createHandle(digest: string, token: string, stamp: number): string {
  return [digest, epochOf(token), offsetOf(token), stamp.toString(36)].join('-')
}

/** Parses a handle; null if it is malformed. */
export function parseHandle(text: string): Handle | null {
  const [, digest, epoch, start] = HANDLE.exec(text) ?? []
  return digest === undefined || epoch === undefined || start === undefined ? null : { digest, epoch, start }
}

/** True for the form of an offset in a shape, `{number}_{number}`. */
export function isOffset(text: string): boolean {
  return START.has(text) || OFFSET.test(text)
}

/**
 * The resume token of an offset; null if it is not a position. A client with the handle has what the start of
 * the handle includes, even if its offset does not say so (see `lsnOf`).
 */
export function tokenOf({ epoch, start }: Handle, offset: string): string | null {
  const from = snapshotOf(start)
  const at = START.has(offset) ? from : snapshotOf(offset)
  return from === null || at === null ? null : printToken(epoch, union(from, at))
}

/** The offset of a resume token. */
export function offsetOf(token: string): string {
  const { xmax, open } = snapshotIn(token)
  const list = open.map(xid => `9${(xmax - xid).toString(8)}`).join('')
  return `${xmax}_${list === '' ? '0' : list}`
}

/**
 * The number of a resume token in a stream of events, from which clients derive the offset `{number}_0`: no
 * change after the token is before it.
 */
export function lsnOf(token: string): string {
  return snapshotIn(token).xmin.toString()
}

/** The snapshot of a resume token, as clients compare transactions with it. */
export function printSnapshot(token: string): object {
  const { xmin, xmax, open } = snapshotIn(token)
  // A client has every change that the snapshot includes once it has passed `xmax` (see `lsnOf`).
  return { xmin: String(xmin), xmax: String(xmax), xip_list: open.map(String), database_lsn: String(xmax) }
}

function epochOf(token: string): string {
  return token.split('.')[0] ?? ''
}

function snapshotIn(token: string): Snapshot {
  const snapshot = readToken(token, epochOf(token))
  if (snapshot === null) throw new Error(`"${token}" is not a resume token of the change log`)
  return snapshot
}

function snapshotOf(offset: string): Snapshot | null {
  const [, digits, list = ''] = OFFSET.exec(offset) ?? []
  if (digits === undefined) return null
  const xmax = BigInt(digits)
  const distances = list === '0' ? [] : list.split('9').slice(1)
  const isList = list === '0' || (list.startsWith('9') && distances.every(distance => /^[0-7]{1,21}$/.test(distance)))
  if (!isList || distances.length > TOKEN_OPEN_MAX || xmax > XID_MAX) return null
  const open = distances
    .map(distance => xmax - BigInt(`0o${distance}`))
    .toSorted((one, other) => (one < other ? -1 : 1))
  if (open.some(xid => xid < 0n || xid >= xmax)) return null
  return { xmin: open[0] ?? xmax, xmax, open }
}
