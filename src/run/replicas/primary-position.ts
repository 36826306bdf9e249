/**
 * The position of the primary in its write-ahead log, as read by the gateway. A replica that has replayed a
 * position read at some time contains everything that was committed before that time, whatever the clocks of
 * the servers say.
 */
import { type Lsn, parseLsn } from '../../postgres/replication/lsn.ts'
import type { Command, Database } from '../../postgres/types.ts'

/** A position, and when reading it began: commits acknowledged before that are at lower positions. */
export interface PositionSample {
  readonly at: number
  readonly lsn: Lsn
}

/** The dependencies of the position. */
export interface PrimaryPositionParts {
  readonly database: Pick<Database, 'run'>
  /** How far back in time reads can be; 0 means no limit. */
  readonly maxLagMs: number
  /** The smallest distance between two samples that are kept. */
  readonly sampleMs: number
  /** Called when the position is lower than before: another server has become the primary. */
  readonly onSetBack: (sample: PositionSample) => void
  /** Monotonic milliseconds. */
  readonly now: () => number
}

const POSITION: Command = {
  text:
    'SELECT pg_catalog.pg_current_wal_insert_lsn(), ' +
    "pg_catalog.current_setting('wal_block_size'), " +
    "pg_catalog.pg_size_bytes(pg_catalog.current_setting('wal_segment_size'))",
  parameters: [],
}

/** Reads the position of the primary; concurrent callers share a read. */
export class PrimaryPosition {
  readonly #parts: PrimaryPositionParts
  /** In order of time, and not older than the limit on the lag, except for the last. */
  #samples: PositionSample[] = []
  #latest: PositionSample | null = null
  #reading: Promise<PositionSample> | null = null
  #next: Promise<PositionSample> | null = null

  constructor(parts: PrimaryPositionParts) {
    this.#parts = parts
  }

  /** The last sample; null before the first. */
  get latest(): PositionSample | null {
    return this.#latest
  }

  /** Reads the position. The read begins after the call. */
  read(): Promise<PositionSample> {
    if (this.#reading === null) return this.#start()
    this.#next ??= this.#reading.then(
      () => this.#start(),
      () => this.#start(),
    )
    return this.#next
  }

  /** The position that a read within the limit on the lag must see; null if it is unknown. */
  floor(): Lsn | null {
    const { maxLagMs, now } = this.#parts
    if (maxLagMs === 0) return 0n
    const oldest = now() - maxLagMs
    let [first] = this.#samples
    while (first !== undefined && first.at < oldest) {
      this.#samples.shift()
      first = this.#samples[0]
    }
    return first?.lsn ?? null
  }

  /** How long ago a replica at `lsn` certainly had everything; null if that is before the oldest sample. */
  lagMs(lsn: Lsn): number | null {
    if (this.#latest !== null && lsn >= this.#latest.lsn) return this.#parts.now() - this.#latest.at
    const seen = this.#samples.findLast(sample => lsn >= sample.lsn)
    return seen === undefined ? null : this.#parts.now() - seen.at
  }

  #start(): Promise<PositionSample> {
    this.#next = null
    const reading = this.#query().finally(() => {
      if (this.#reading === reading) this.#reading = null
    })
    this.#reading = reading
    return reading
  }

  async #query(): Promise<PositionSample> {
    const { database, now } = this.#parts
    const at = now()
    const [result] = await database.run([POSITION]).result
    const [lsn, blockBytes, segmentBytes] = (result?.rows[0] ?? []).map(value => value?.toString() ?? '')
    const sample = { at, lsn: endOfRecord(parseLsn(lsn ?? ''), BigInt(blockBytes ?? 0), BigInt(segmentBytes ?? 0)) }
    this.#add(sample)
    return sample
  }

  #add(sample: PositionSample): void {
    const { sampleMs, onSetBack } = this.#parts
    if (this.#latest !== null && sample.lsn < this.#latest.lsn) {
      this.#samples = []
      onSetBack(sample)
    }
    this.#latest = sample
    const last = this.#samples.at(-1)
    if (last === undefined || sample.at - last.at >= sampleMs) this.#samples.push(sample)
    // Without a limit on the lag, samples only serve to report it.
    if (this.#samples.length > SAMPLES_MAX) this.#samples.shift()
  }
}

/** Limit on samples, if the limit on the lag allows more. */
const SAMPLES_MAX = 1_024

const PAGE_HEADER_BYTES = 24n
const SEGMENT_HEADER_BYTES = 40n

/**
 * The end of the last record before an insert position. At the boundary of a page, PostgreSQL reports the
 * position after the header of the next page, which a replica reaches only with the next record.
 */
export function endOfRecord(lsn: Lsn, blockBytes: bigint, segmentBytes: bigint): Lsn {
  if (segmentBytes > 0n && lsn % segmentBytes === SEGMENT_HEADER_BYTES) return lsn - SEGMENT_HEADER_BYTES
  if (blockBytes > 0n && lsn % blockBytes === PAGE_HEADER_BYTES) return lsn - PAGE_HEADER_BYTES
  return lsn
}
