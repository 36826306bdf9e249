/**
 * The speed at which clients must read streams. A stream holds a database connection and a snapshot, so a client that reads a few bytes now and then would
 * keep both for hours. Only time in which the client keeps the gateway waiting counts: a slow statement is not the client's fault.
 */
import { GatewayError } from '../errors.ts'

export interface StreamPaces {
  /** For one stream. */
  start(): StreamPace
  /** Streams that were ended because their client read too slowly. */
  readonly ended: number
}

export interface StreamPace {
  /** At most so many bytes are written at once, so that progress can be seen. */
  readonly sliceBytes: number
  /** Milliseconds of waiting until the client is judged; null: it never is. */
  readonly leftMs: number | null
  /** The client has taken these bytes, and kept the gateway waiting for so long. */
  taken(bytes: number, waitedMs: number): void
  /** To be asked when `leftMs` have passed; `bytes` are on their way. Null, and time for another window: it keeps up. */
  judge(bytes: number): GatewayError | null
}

export interface StreamPaceLimit {
  /** 0: no limit. */
  readonly streamMinBytesPerSec: number
  readonly streamMinRateWindowSecs: number
}

const SLICE_BYTES_MAX = 32 * 1024
const SLICE_BYTES_MIN = 1024
/** Bytes on their way count as taken, so they must be a small part of what a window requires. */
const SLICES_PER_WINDOW = 4

export function createStreamPaces({ streamMinBytesPerSec, streamMinRateWindowSecs }: StreamPaceLimit): StreamPaces {
  const requiredBytes = streamMinBytesPerSec * streamMinRateWindowSecs
  const windowMs = streamMinRateWindowSecs * 1_000
  const slice = Math.min(Math.max(Math.floor(requiredBytes / SLICES_PER_WINDOW), SLICE_BYTES_MIN), SLICE_BYTES_MAX)
  let ended = 0
  return {
    get ended() {
      return ended
    },
    start() {
      if (requiredBytes === 0) return WITHOUT_LIMIT
      let takenBytes = 0
      let waitedMs = 0
      return {
        sliceBytes: slice,
        get leftMs() {
          return Math.max(windowMs - waitedMs, 0)
        },
        taken(bytes, ms) {
          takenBytes += bytes
          waitedMs += ms
        },
        judge(bytes) {
          const enough = takenBytes + bytes >= requiredBytes
          takenBytes = 0
          waitedMs = 0
          if (enough) return null
          ended++
          return new GatewayError(
            'TIMEOUT',
            `the stream was read too slowly: less than ${streamMinBytesPerSec} bytes a second over ${streamMinRateWindowSecs} s (stream_min_bytes_per_sec); read faster, or ask for pages with limit and cursor`,
          )
        },
      }
    },
  }
}

const WITHOUT_LIMIT: StreamPace = { sliceBytes: SLICE_BYTES_MAX, leftMs: null, taken() {}, judge: () => null }
