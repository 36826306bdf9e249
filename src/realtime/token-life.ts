/**
 * The lifetime of a token: a warning before it expires, and the expiry
 * (docs/reference/realtime.md#close-codes).
 */

/** How long before expiry the warning is sent. */
export const WARNING_MS = 30_000

/** A longer delay makes setTimeout fire immediately (Node: TimeoutOverflowWarning). */
const DELAY_MS_MAX: number = 2 ** 31 - 1

/** The timer of one connection's token. */
export interface TokenLife {
  /** Starts with another token; null never expires. */
  begin(expiresAtSeconds: number | null): void
  end(): void
}

/** Creates a timer. `clock` returns milliseconds since the epoch. */
export function createTokenLife(
  clock: () => number,
  on: { readonly expiring: () => void; readonly expired: () => void },
): TokenLife {
  let timer: NodeJS.Timeout | null = null

  function at(time: number, call: () => void): void {
    const delay = time - clock()
    timer = setTimeout(
      () => (delay > DELAY_MS_MAX ? at(time, call) : call()),
      Math.min(Math.max(0, delay), DELAY_MS_MAX),
    )
    timer.unref()
  }

  function end(): void {
    if (timer !== null) clearTimeout(timer)
    timer = null
  }

  return {
    begin(expiresAtSeconds) {
      end()
      if (expiresAtSeconds === null) return
      const expiresAt = expiresAtSeconds * 1_000
      at(expiresAt - WARNING_MS, () => {
        on.expiring()
        at(expiresAt, on.expired)
      })
    },
    end,
  }
}
