/**
 * Keeps the warnings of the start for `/health/internal`, because they remain true after the log has been
 * read.
 */
import type { Event } from '../events.ts'

/** A warning of the start. */
export interface BootWarning {
  readonly message: string
  readonly fix: string | null
}

/** The warnings of the start. */
export interface BootWarnings {
  hear(event: Event): void
  all(): readonly BootWarning[]
}

/** Creates the list. Warnings after the start are only logged, because their number is not limited. */
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
