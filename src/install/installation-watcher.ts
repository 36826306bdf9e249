/**
 * Keeps a gateway's knowledge of its installation up to date: `svc install` may be run or reverted at any
 * time.
 */
import type { Installed } from './installed.ts'

/** Minimum interval between checks, because something broken is detected repeatedly. */
const CHECK_INTERVAL_MS_MIN = 1_000

/** Watches an installation. */
export interface InstallationWatcher {
  /** Checks now. Requests during a check cause one more check. */
  check(): Promise<void>
  close(): void
}

/** The inputs of the watcher. */
export interface InstallationWatcherParts {
  readonly installed: Installed
  /** The interval of periodic checks in milliseconds; 0 turns them off. */
  readonly everyMs: number
  /** Called when the captured tables or their sources have changed, with the tables no longer captured. */
  readonly onChange: (left: readonly string[]) => void
}

/** Starts watching. */
export function watchInstallation({ installed, everyMs, onChange }: InstallationWatcherParts): InstallationWatcher {
  let captured = capturedNow()
  let source = sourceNow()
  let looking: Promise<void> | null = null
  let next: Promise<void> | null = null
  let closed = false
  const timer = everyMs > 0 ? setInterval(() => void look(), everyMs) : null
  timer?.unref()

  function capturedNow(): ReadonlySet<string> {
    return installed.current()?.captured ?? new Set()
  }

  function sourceNow(): string {
    const now = installed.current()
    return now === null ? '' : JSON.stringify([now.usesWal, ...[...now.fromWal].sort()])
  }

  /** Checks once. Never rejects. */
  async function checkOnce(): Promise<void> {
    await installed.refresh()
    const now = capturedNow()
    const left = [...captured].filter(table => !now.has(table))
    const sourceThen = source
    source = sourceNow()
    const isSame = left.length === 0 && now.size === captured.size && source === sourceThen
    captured = now
    if (!isSame && !closed) onChange(left)
  }

  async function afterwards(before: Promise<void>): Promise<void> {
    await before
    await new Promise(resolve => setTimeout(resolve, CHECK_INTERVAL_MS_MIN).unref())
    next = null
    return look()
  }

  function look(): Promise<void> {
    if (closed) return Promise.resolve()
    if (looking !== null) {
      next ??= afterwards(looking)
      return next
    }
    looking = checkOnce().finally(() => {
      looking = null
    })
    return looking
  }

  return {
    check: look,
    close() {
      closed = true
      if (timer !== null) clearInterval(timer)
    },
  }
}
