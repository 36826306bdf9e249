/** The position after the last write of each caller, which the caller's reads must see. */
import { createHash } from 'node:crypto'
import type { Identity } from '../../identity/identity.ts'
import type { Lsn } from '../../postgres/replication/lsn.ts'
import type { PositionSample } from './primary-position.ts'

/** Limit on callers; what the others have written must then be seen by all. */
export const WRITERS_MAX = 100_000

/** Requirements of a read: a position, and everything committed before a time. */
interface Required {
  readonly lsn: Lsn
  /** Milliseconds of the monotonic clock; negative infinity for no time. */
  readonly since: number
}

const NO_TIME = Number.NEGATIVE_INFINITY
const NOTHING: Required = { lsn: 0n, since: NO_TIME }

/** Remembers what callers have written. */
export class WrittenPositions {
  readonly #byCaller = new Map<string, Required>()
  readonly #writersMax: number
  /** The position that every read must see, for any caller. */
  #byAll: Required = NOTHING

  constructor(writersMax: number = WRITERS_MAX) {
    this.#writersMax = writersMax
  }

  /**
   * The position that a read of this caller must see; null if it is not known yet, because the position of
   * the primary has not been read since. `latest` is its last sample.
   */
  requiredBy(caller: Identity, latest: PositionSample | null): Lsn | null {
    this.#byAll = settled(this.#byAll, latest)
    if (this.#byAll.since !== NO_TIME) return null
    if (this.#byCaller.size === 0) return this.#byAll.lsn
    const key = writerOf(caller)
    const found = this.#byCaller.get(key)
    if (found === undefined) return this.#byAll.lsn
    const own = settled(found, latest)
    if (own.since !== NO_TIME) return null
    if (own !== found) this.#byCaller.set(key, own)
    return greater(own.lsn, this.#byAll.lsn)
  }

  /** Records that a caller must see this position. `writer` is from `writerOf`. */
  wrote(writer: string, lsn: Lsn): void {
    this.#add(writer, { lsn, since: NO_TIME })
  }

  /** Records that a caller must see what is committed before `since`, which can be in the future. */
  mayWrite(writer: string, since: number): void {
    this.#add(writer, { lsn: 0n, since })
  }

  /** Records that all callers must see what was committed before `since`. */
  changed(since: number): void {
    this.#byAll = both(this.#byAll, { lsn: 0n, since })
  }

  /** Replaces all positions, which belong to a former primary, by one of the current primary. */
  setBack(lsn: Lsn): void {
    this.#byCaller.clear()
    this.#byAll = { lsn, since: this.#byAll.since }
  }

  #add(key: string, required: Required): void {
    const known = this.#byCaller.get(key)
    // The order of the map is that of the last writes.
    this.#byCaller.delete(key)
    this.#byCaller.set(key, known === undefined ? required : both(known, required))
    if (this.#byCaller.size <= this.#writersMax) return
    for (const [oldest, of] of this.#byCaller) {
      this.#byCaller.delete(oldest)
      this.#byAll = both(this.#byAll, of)
      return
    }
  }
}

/** Replaces a time by a position that was read after it. */
function settled(of: Required, latest: PositionSample | null): Required {
  if (of.since === NO_TIME || latest === null || latest.at < of.since) return of
  return { lsn: greater(of.lsn, latest.lsn), since: NO_TIME }
}

function both(one: Required, other: Required): Required {
  return { lsn: greater(one.lsn, other.lsn), since: Math.max(one.since, other.since) }
}

function greater(one: Lsn, other: Lsn): Lsn {
  return one > other ? one : other
}

/** Longer keys are replaced by a digest, because claims can be long. */
const KEY_CHARACTERS_MAX = 128

/** Identifies a caller whose writes its own reads must see. */
export function writerOf({ tenantId, userId, agentId }: Identity): string {
  const key = `${tenantId.length}:${tenantId}${userId.length}:${userId}${agentId}`
  return key.length <= KEY_CHARACTERS_MAX ? key : createHash('sha256').update(key).digest('base64')
}
