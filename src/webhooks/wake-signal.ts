/**
 * A signal that wakes one waiter. A signal that is sent while there is no waiter wakes the next one
 * immediately.
 */
export interface WakeSignal {
  send(): void
  /** Resolves when the signal is sent, or after `ms` milliseconds. */
  wait(ms: number): Promise<void>
}

/** Creates a signal that has not been sent. */
export function createWakeSignal(): WakeSignal {
  let isSent = false
  let wake: (() => void) | null = null
  return {
    send() {
      isSent = true
      wake?.()
    },
    async wait(ms) {
      if (!isSent) {
        await new Promise<void>(resolve => {
          const timer = setTimeout(resolve, ms)
          wake = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      }
      wake = null
      isSent = false
    },
  }
}
