/** Keeps what a gateway knows of its installation true while it runs: `svc install` may come later, or go. */
import type { Installed } from './installed.ts'

/** Whoever meets something broken meets it again and again. */
const LOOK_INTERVAL_MS_MIN = 1_000

export interface Following {
  /** Something may be another. Looks that are asked for while one is under way are one more. */
  look(): Promise<void>
  close(): void
}

export interface FollowingParts {
  readonly installed: Installed
  /** Milliseconds between two looks that nobody asks for; 0: there are none. */
  readonly everyMs: number
  /** Other tables are captured than before; those that no longer are. */
  readonly onChange: (left: readonly string[]) => void
}

export function follow({ installed, everyMs, onChange }: FollowingParts): Following {
  let captured = capturedNow()
  let looking: Promise<void> | null = null
  let next: Promise<void> | null = null
  let closed = false
  const timer = everyMs > 0 ? setInterval(() => void look(), everyMs) : null
  timer?.unref()

  function capturedNow(): ReadonlySet<string> {
    return installed.current()?.captured ?? new Set()
  }

  /** Never rejects. */
  async function lookOnce(): Promise<void> {
    await installed.refresh()
    const now = capturedNow()
    const left = [...captured].filter(table => !now.has(table))
    const isSame = left.length === 0 && now.size === captured.size
    captured = now
    if (!isSame && !closed) onChange(left)
  }

  async function afterwards(before: Promise<void>): Promise<void> {
    await before
    await new Promise(resolve => setTimeout(resolve, LOOK_INTERVAL_MS_MIN).unref())
    next = null
    return look()
  }

  function look(): Promise<void> {
    if (closed) return Promise.resolve()
    if (looking !== null) {
      next ??= afterwards(looking)
      return next
    }
    looking = lookOnce().finally(() => {
      looking = null
    })
    return looking
  }

  return {
    look,
    close() {
      closed = true
      if (timer !== null) clearInterval(timer)
    },
  }
}
