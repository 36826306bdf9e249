/** Collects what a subscription delivers until a response takes it. */
import type { GatewayError } from '../errors.ts'
import type { SubscriptionReceiver } from '../realtime/subscriber.ts'
import type { ChangeNotification } from '../realtime/visibility-query.ts'
import { SMALL_CHARACTERS, type WaitingBytes } from '../realtime/waiting-bytes.ts'

/**
 * Limits on the changes and characters that wait for a slow reader. Beyond it, the response ends with the
 * deliveries before, and the next request reads the remaining changes again.
 */
const WAITING_CHANGES_MAX = 2_000
const WAITING_CHARACTERS_MAX = 4 * 1024 * 1024

/** The changes that the hub delivered together. */
export interface PollDelivery {
  readonly notifications: readonly ChangeNotification[]
  /** The resume token after these changes. */
  readonly token: string
}

/** Deliveries that a response waits for. */
export interface Poll {
  readonly receiver: SubscriptionReceiver
  /**
   * The deliveries since the last call. They are counted until the response has been handed to the
   * connection, which counts what the client has not read.
   */
  take(): readonly PollDelivery[]
  /** True if the changes since the requested position cannot be determined. */
  readonly isLost: boolean
  /** True if a delivery was dropped, because too much was waiting. */
  readonly isFull: boolean
  /** The error if it was dropped because of what waits in all polls; null otherwise. */
  readonly refusal: GatewayError | null
  /** True if nothing more is delivered; the client continues with another request. */
  readonly isOver: boolean
  /** The error that ended the subscription; null without one. */
  readonly error: unknown
  /** Resolves when there is something to take, when the poll is over, or after `ms`. */
  wait(ms: number): Promise<void>
  /** Ends the poll, because the gateway stops or the client has disconnected. */
  end(): void
  /** Ends the poll, and drops what waits. */
  discard(): void
}

/** Creates an empty poll. */
export function createPoll(bytes: Omit<WaitingBytes, 'assign'>): Poll {
  let deliveries: PollDelivery[] = []
  let changes = 0
  let characters = 0
  let isLost = false
  let isOver = false
  let isFull = false
  let refusal: GatewayError | null = null
  let failure: unknown = null
  let wake: () => void = () => {}

  function end(): void {
    isOver = true
    wake()
  }

  function take(): readonly PollDelivery[] {
    const taken = deliveries
    bytes.handOver(characters)
    deliveries = []
    changes = 0
    characters = 0
    return taken
  }

  return {
    receiver: {
      notify(notifications) {
        const token = notifications.at(-1)?.token
        if (token === undefined || isOver) return
        const size = notifications.reduce((sum, item) => sum + charactersOf(item), 0)
        const isMore = changes + notifications.length > WAITING_CHANGES_MAX
        const isLarger = characters + size > WAITING_CHARACTERS_MAX
        if (characters + size > SMALL_CHARACTERS) refusal = bytes.refusal()
        // A single delivery can exceed the limits of a poll, so that a client can receive a large one.
        if (refusal !== null || ((isMore || isLarger) && deliveries.length > 0)) {
          isFull = true
          end()
          return
        }
        changes += notifications.length
        characters += size
        bytes.take(size)
        deliveries.push({ notifications, token })
        wake()
      },
      resync(reason) {
        isLost ||= reason === 'token'
        end()
      },
      ended(error) {
        failure = error
        end()
      },
    },
    take,
    get isLost() {
      return isLost
    },
    get isFull() {
      return isFull
    },
    get refusal() {
      return refusal
    },
    get isOver() {
      return isOver
    },
    get error() {
      return failure
    },
    wait(ms) {
      if (isOver || deliveries.length > 0) return Promise.resolve()
      return new Promise(resolve => {
        const timer = setTimeout(() => wake(), ms)
        wake = () => {
          clearTimeout(timer)
          wake = () => {}
          resolve()
        }
      })
    },
    end,
    discard() {
      end()
      take()
    },
  }
}

/** The characters of a change: its key, the current row and the old rows. */
function charactersOf({ key, row, old }: ChangeNotification): number {
  let characters = key.length + (row?.length ?? 0)
  for (const values of old) for (const name in values) characters += values[name]?.length ?? 0
  return characters
}
