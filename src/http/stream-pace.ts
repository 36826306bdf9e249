/**
 * The minimum speed at which clients must read streams. A stream holds a database connection and a snapshot,
 * and a client that reads a few bytes now and then would hold them for hours. Only time in which the gateway
 * waits for the client counts, so a slow statement is not counted.
 */
import { GatewayError } from '../errors.ts'

/** Measures the read speed of streams. */
export interface StreamPaces {
  /** Starts the measurement of one stream. */
  start(): StreamPace
  /** Starts the measurement of an upload, for which the client's sending counts. */
  startUpload(): StreamPace
  /** The number of streams that were ended because the client read too slowly. */
  readonly ended: number
}

/** The read speed of one stream. */
export interface StreamPace {
  /** Limit on the bytes of one write, so that progress is visible. */
  readonly sliceBytes: number
  /** The waiting time in milliseconds until the next check, or null if the limit is disabled. */
  readonly leftMs: number | null
  /** Records that the client read `bytes` while the gateway waited for `waitedMs`. */
  taken(bytes: number, waitedMs: number): void
  /**
   * Checks the speed when `leftMs` have passed; `bytes` are being sent. Returns the error of a client that is
   * too slow; otherwise starts the next window and returns null.
   */
  judge(bytes: number): GatewayError | null
}

/** The minimum throughput and the window over which it is averaged. */
export interface StreamPaceLimit {
  /** Bytes per second; 0 disables the limit. */
  readonly streamMinBytesPerSec: number
  readonly streamMinRateWindowSecs: number
}

const SLICE_BYTES_MAX = 32 * 1024
const SLICE_BYTES_MIN = 1024
/** Bytes being sent count as read, so a write must be a small part of what a window requires. */
const SLICES_PER_WINDOW = 4

/** Creates the measurement of streams. */
export function createStreamPaces({ streamMinBytesPerSec, streamMinRateWindowSecs }: StreamPaceLimit): StreamPaces {
  const requiredBytes = streamMinBytesPerSec * streamMinRateWindowSecs
  const windowMs = streamMinRateWindowSecs * 1_000
  const slice = Math.min(Math.max(Math.floor(requiredBytes / SLICES_PER_WINDOW), SLICE_BYTES_MIN), SLICE_BYTES_MAX)
  let ended = 0
  return {
    get ended() {
      return ended
    },
    start: () => measured(TOO_SLOW_READ),
    startUpload: () => measured(TOO_SLOW_UPLOAD),
  }

  function measured(tooSlow: TooSlow): StreamPace {
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
          `${tooSlow.what}: less than ${streamMinBytesPerSec} bytes per second ` +
            `over ${streamMinRateWindowSecs} s (stream_min_bytes_per_sec); ${tooSlow.instead}`,
        )
      },
    }
  }
}

interface TooSlow {
  readonly what: string
  readonly instead: string
}

const TOO_SLOW_READ: TooSlow = {
  what: 'the stream was read too slowly',
  instead: 'read faster, or request pages with limit and cursor',
}
const TOO_SLOW_UPLOAD: TooSlow = {
  what: 'the upload was sent too slowly',
  instead: 'nothing was imported; send faster, or send several smaller files',
}

const WITHOUT_LIMIT: StreamPace = { sliceBytes: SLICE_BYTES_MAX, leftMs: null, taken() {}, judge: () => null }
