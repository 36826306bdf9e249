/** Positions in the write-ahead log (PostgreSQL manual, 8.20 pg_lsn), compared as numbers. */

/** A log sequence number: the byte position of a record in the write-ahead log. */
export type Lsn = bigint

/** Parses `16/B374D848`; throws for any other text. */
export function parseLsn(text: string): Lsn {
  const [, high, low] = /^([0-9a-f]{1,8})\/([0-9a-f]{1,8})$/i.exec(text) ?? []
  if (high === undefined || low === undefined) throw new Error(`"${text}" is not a log position such as 16/B374D848`)
  return (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`)
}

/** Prints a position as PostgreSQL does. */
export function printLsn(lsn: Lsn): string {
  return `${(lsn >> 32n).toString(16)}/${(lsn & 0xffff_ffffn).toString(16)}`.toUpperCase()
}
