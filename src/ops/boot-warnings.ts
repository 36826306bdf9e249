/** Keeps what boot warned of, for `/health/internal`: a log is read once, and a danger stays. */
import type { Event } from '../events.ts'

export interface BootWarning {
  readonly message: string
  readonly fix: string | null
}

export interface BootWarnings {
  hear(event: Event): void
  all(): readonly BootWarning[]
}

/** What is warned of once the gateway listens is the log's: it may come any number of times. */
export function createBootWarnings(): BootWarnings {
  const warnings: BootWarning[] = []
  let booting = true
  return {
    hear(event) {
      if (event.kind === 'listening') booting = false
      else if (event.kind === 'warning' && booting) warnings.push({ message: event.message, fix: event.fix })
    },
    all: () => warnings,
  }
}
