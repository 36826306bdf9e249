/** How fast a client may send: who sends more is not read from until its time has come, so the network holds it back and not our memory. */

/** Messages a second, and at once. */
export const RATE = 200
export const BURST = 400

export interface Pace {
  /** A message, or a ping of the protocol, has come. */
  took(): void
  /** For another reason than the rate. */
  pause(): void
  resume(): void
  end(): void
}

export function createPace(link: { pause(): void; resume(): void }, now: () => number): Pace {
  let tokens = BURST
  let at = now()
  let timer: NodeJS.Timeout | null = null
  let held = false

  function settle(): void {
    if (timer === null && !held) link.resume()
  }

  return {
    took() {
      const time = now()
      tokens = Math.min(BURST, tokens + ((time - at) / 1_000) * RATE) - 1
      at = time
      if (tokens >= 0 || timer !== null) return
      link.pause()
      // What was on its way already has to be made good for as well.
      const look = () => {
        const missing = -(tokens + ((now() - at) / 1_000) * RATE)
        timer = missing > 0 ? setTimeout(look, Math.ceil((missing / RATE) * 1_000)) : null
        settle()
      }
      timer = setTimeout(look, Math.ceil((-tokens / RATE) * 1_000))
    },
    pause() {
      held = true
      link.pause()
    },
    resume() {
      held = false
      settle()
    },
    end() {
      if (timer !== null) clearTimeout(timer)
    },
  }
}
