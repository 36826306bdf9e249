/**
 * Limits how fast a client may send. Reading from a faster client is paused, so that the network holds its
 * messages back rather than memory.
 */

/** Messages per second, and at once. */
export const MESSAGE_RATE = 200
export const MESSAGE_BURST = 400

/** The message rate of one client. */
export interface MessageRate {
  /** Counts a message or a ping frame. */
  count(): void
  /** Pauses for another reason than the rate. */
  pause(): void
  resume(): void
  end(): void
}

/** Starts with a full burst. */
export function createMessageRate(link: { pause(): void; resume(): void }, now: () => number): MessageRate {
  let tokens = MESSAGE_BURST
  let at = now()
  let timer: NodeJS.Timeout | null = null
  let isPaused = false

  function resumeIfAllowed(): void {
    if (timer === null && !isPaused) link.resume()
  }

  return {
    count() {
      const time = now()
      tokens = Math.min(MESSAGE_BURST, tokens + ((time - at) / 1_000) * MESSAGE_RATE) - 1
      at = time
      if (tokens >= 0 || timer !== null) return
      link.pause()
      // Messages already received count as well.
      const check = () => {
        const missing = -(tokens + ((now() - at) / 1_000) * MESSAGE_RATE)
        timer = missing > 0 ? setTimeout(check, Math.ceil((missing / MESSAGE_RATE) * 1_000)) : null
        resumeIfAllowed()
      }
      timer = setTimeout(check, Math.ceil((-tokens / MESSAGE_RATE) * 1_000))
    },
    pause() {
      isPaused = true
      link.pause()
    },
    resume() {
      isPaused = false
      resumeIfAllowed()
    },
    end() {
      if (timer !== null) clearTimeout(timer)
    },
  }
}
