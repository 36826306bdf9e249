/**
 * Which transactions a read of the database saw, as PostgreSQL says it (PostgreSQL manual, pg_current_snapshot): what one read sees and another did not is told by two of
 * these, in whatever order transactions are committed. A token is one of them with the epoch in which its numbers mean something.
 */

export interface Snapshot {
  /** Every transaction before this one is over. */
  readonly xmin: bigint
  /** From this one on, none was seen. */
  readonly xmax: bigint
  /** Those in between that were not over. */
  readonly open: readonly bigint[]
}

/** A token that named more would be as long as a message. */
export const TOKEN_OPEN_MAX = 16

/** Of PostgreSQL's own text, `xmin:xmax:xip,…`. */
export function parseSnapshot(text: string): Snapshot {
  const [xmin, xmax, open] = text.split(':')
  if (xmin === undefined || xmax === undefined || open === undefined) throw new Error(`"${text}" is no snapshot`)
  return { xmin: BigInt(xmin), xmax: BigInt(xmax), open: open === '' ? [] : open.split(',').map(BigInt) }
}

/** With more transactions open than a token names, all from the first of them on are taken for unseen: some are told again, and none is left out. */
export function printToken(epoch: string, { xmin, xmax, open }: Snapshot): string {
  const isShort = open.length <= TOKEN_OPEN_MAX
  const numbers = isShort ? [xmin, xmax - xmin, ...open.map(xid => xid - xmin)] : [xmin, 0n]
  return [epoch, ...numbers.map(number => number.toString(36))].join('.')
}

/** Null where it is not of this epoch, or nothing that we made. */
export function readToken(token: string, epoch: string): Snapshot | null {
  const [of, ...digits] = token.split('.')
  if (of !== epoch || digits.length < 2 || digits.length > TOKEN_OPEN_MAX + 2) return null
  const numbers = digits.map(numberOf)
  if (!numbers.every(number => number !== null)) return null
  const [xmin = 0n, width = 0n, ...open] = numbers
  if (xmin + width > XID_MAX || open.some(offset => offset >= width)) return null
  return { xmin, xmax: xmin + width, open: open.map(offset => xmin + offset) }
}

/** Whether all that `earlier` saw is seen by `later` as well. */
export function covers(later: Snapshot, earlier: Snapshot): boolean {
  return later.xmax >= earlier.xmax && later.open.every(xid => xid >= earlier.xmax || earlier.open.includes(xid))
}

/** Far above what any cluster reaches, and within `xid8`. */
const XID_MAX = 2n ** 62n

function numberOf(digits: string): bigint | null {
  if (!/^[0-9a-z]{1,12}$/.test(digits)) return null
  let number = 0n
  for (const digit of digits) number = number * 36n + BigInt(Number.parseInt(digit, 36))
  return number
}
