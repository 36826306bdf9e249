/**
 * Snapshots: the transactions that a read has seen (PostgreSQL manual, pg_current_snapshot). Two of them
 * determine what one read sees and another did not, in whatever order transactions commit. A resume token
 * consists of a snapshot and the epoch in which its numbers are valid.
 */

/** A database snapshot. */
export interface Snapshot {
  /** Every transaction below this number has ended. */
  readonly xmin: bigint
  /** No transaction from this number on was visible. */
  readonly xmax: bigint
  /** Transactions in between that were in progress. */
  readonly open: readonly bigint[]
}

/** Limit on the open transactions in a token, which would otherwise become as long as a message. */
export const TOKEN_OPEN_MAX = 16

/** Parses PostgreSQL's text, `xmin:xmax:xip,…`. */
export function parseSnapshot(text: string): Snapshot {
  const [xmin, xmax, open] = text.split(':')
  if (xmin === undefined || xmax === undefined || open === undefined) throw new Error(`"${text}" is not a snapshot`)
  return { xmin: BigInt(xmin), xmax: BigInt(xmax), open: open === '' ? [] : open.split(',').map(BigInt) }
}

/**
 * Prints a token. If more transactions are open than a token can list, all from the first open one on count
 * as not seen: some changes are delivered again, but none is lost.
 */
export function printToken(epoch: string, { xmin, xmax, open }: Snapshot): string {
  const isShort = open.length <= TOKEN_OPEN_MAX
  const numbers = isShort ? [xmin, xmax - xmin, ...open.map(xid => xid - xmin)] : [xmin, 0n]
  return [epoch, ...numbers.map(number => number.toString(36))].join('.')
}

/** Parses a token; null if it is malformed or from another epoch. */
export function readToken(token: string, epoch: string): Snapshot | null {
  const [of, ...digits] = token.split('.')
  if (of !== epoch || digits.length < 2 || digits.length > TOKEN_OPEN_MAX + 2) return null
  const numbers = digits.map(numberOf)
  if (!numbers.every(number => number !== null)) return null
  const [xmin = 0n, width = 0n, ...open] = numbers
  if (xmin + width > XID_MAX || open.some(offset => offset >= width)) return null
  return { xmin, xmax: xmin + width, open: open.map(offset => xmin + offset) }
}

/** The transactions of a snapshot below a number; null if too many of them are open for a token. */
export function snapshotBelow({ open }: Snapshot, xmax: bigint): Snapshot | null {
  const below = open.filter(xid => xid < xmax)
  return below.length > TOKEN_OPEN_MAX ? null : { xmin: below[0] ?? xmax, xmax, open: below }
}

/** True if `later` includes everything that `earlier` includes. */
export function covers(later: Snapshot, earlier: Snapshot): boolean {
  return later.xmax >= earlier.xmax && later.open.every(xid => xid >= earlier.xmax || earlier.open.includes(xid))
}

/** Includes what either of two snapshots includes. */
export function union(one: Snapshot, other: Snapshot): Snapshot {
  const xmax = one.xmax > other.xmax ? one.xmax : other.xmax
  const open = one.open.filter(xid => isOpen(other, xid))
  const later = other.open.filter(xid => isOpen(one, xid) && !open.includes(xid))
  const all = [...open, ...later].sort((a, b) => Number(a - b))
  return { xmin: all[0] ?? xmax, xmax, open: all }
}

function isOpen({ xmax, open }: Snapshot, xid: bigint): boolean {
  return xid >= xmax || open.includes(xid)
}

/** Far beyond what any cluster reaches, and within `xid8`. */
const XID_MAX = 2n ** 62n

function numberOf(digits: string): bigint | null {
  if (!/^[0-9a-z]{1,12}$/.test(digits)) return null
  let number = 0n
  for (const digit of digits) number = number * 36n + BigInt(Number.parseInt(digit, 36))
  return number
}
