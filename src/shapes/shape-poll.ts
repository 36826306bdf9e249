/** Collects what a subscription delivers until a response takes it. */
import type { SubscriptionReceiver } from '../realtime/subscriber.ts'
import type { ChangeNotification } from '../realtime/visibility-query.ts'

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
  /** The characters of its rows and keys. */
  readonly characters: number
}

/** Deliveries that a response waits for. */
export interface Poll {
  readonly receiver: SubscriptionReceiver
  /** The deliveries since the last call. */
  take(): readonly PollDelivery[]
  /** True if the changes since the requested position cannot be determined. */
  readonly isLost: boolean
  /** True if deliveries were dropped, because too much was waiting. */
  readonly isFull: boolean
  /** True if nothing more is delivered; the client continues with another request. */
  readonly isOver: boolean
  /** The error that ended the subscription; null without one. */
  readonly error: unknown
  /** Resolves when there is something to take, when the poll is over, or after `ms`. */
  wait(ms: number): Promise<void>
  /** Ends the poll, because the gateway stops or the client has disconnected. */
  end(): void
}

/** Creates an empty poll. */
export function createPoll(): Poll {
  let deliveries: PollDelivery[] = []
  let changes = 0
  let characters = 0
  let isLost = false
  let isOver = false
  let isFull = false
  let failure: unknown = null
  let wake: () => void = () => {}

  function end(): void {
    isOver = true
    wake()
  }

  return {
    receiver: {
      notify(notifications) {
        const token = notifications.at(-1)?.token
        if (token === undefined || isOver) return
        changes += notifications.length
        const size = notifications.reduce((sum, { row, key }) => sum + (row?.length ?? 0) + key.length, 0)
        characters += size
        const isTooMuch = changes > WAITING_CHANGES_MAX || characters > WAITING_CHARACTERS_MAX
        // A single delivery is always accepted; otherwise a client could never receive a large one.
        if (isTooMuch && deliveries.length > 0) {
          isFull = true
          end()
          return
        }
        deliveries.push({ notifications, token, characters: size })
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
    take() {
      const taken = deliveries
      deliveries = []
      changes = 0
      characters = 0
      return taken
    },
    get isLost() {
      return isLost
    },
    get isFull() {
      return isFull
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
  }
}
