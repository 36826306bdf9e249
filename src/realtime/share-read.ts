/** Reads of the change log that the workers of a machine share. */
import type { LogResult } from './log-statements.ts'
import type { Snapshot } from './snapshot.ts'

/** The result of a read by any worker. */
export interface LogRead<T> {
  readonly result: T
  /** How many milliseconds before the request the read began, at most. */
  readonly ageMs: number
  readonly isOwn: boolean
}

/** Shares reads with the other workers; `Peers.read` implements it. */
export type ShareRead = <T>(request: {
  readonly stream: string
  readonly from: string
  readonly unchangedMsMax: number
  readonly read: () => Promise<T>
  readonly positionOf: (result: T) => string
}) => Promise<LogRead<T>>

/** One read. */
export interface NextRead<T> {
  /** The same text for reads that have the same result from the same position. */
  readonly stream: string
  /** Null for a first read. */
  readonly from: { readonly snapshot: Snapshot } | null
  /** The interval between reads. */
  readonly intervalMs: number
  readonly read: () => Promise<T>
}

/** Reads, or uses the result of another worker. `share` is null if there is only this process. */
export async function readShared<T extends Omit<LogResult, 'entries'>>(
  share: ShareRead | null,
  { stream, from, intervalMs, read }: NextRead<T>,
): Promise<LogRead<T>> {
  if (share === null) return { result: await read(), ageMs: 0, isOwn: true }
  return share({
    ...{ stream, read, unchangedMsMax: intervalMs },
    from: from === null ? '' : textOf(from.snapshot),
    positionOf: ({ snapshot }) => textOf(snapshot),
  })
}

/** The next read, aligned with the one whose result was used. */
export function delayAfter(intervalMs: number, ageMs: number): number {
  return Math.max(1, intervalMs - ageMs)
}

function textOf({ xmin, xmax, open }: Snapshot): string {
  return `${xmin}:${xmax}:${open.join(',')}`
}
