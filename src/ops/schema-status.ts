/**
 * The state of the schema for metrics and `/health/internal`: which version is used since when, and how often
 * it was read.
 */
import type { Catalog } from '../catalog/model.ts'
import type { Event } from '../events.ts'

/** The state of the schema. */
export interface SchemaStatus {
  readonly fingerprint: string
  readonly tables: number
  /** `server_version_num` of the database it was read from. */
  readonly serverVersion: number
  /** The version; 1 is the first, and every change adds one. */
  readonly version: number
  /** The time it was read, by the system clock and by the monotonic clock. */
  readonly readAt: Date
  readonly readAtMs: number
  /** The number of reloads by result. */
  readonly reloads: { readonly changed: number; readonly unchanged: number; readonly failed: number }
}

/** Tracks the state of the schema. */
export interface SchemaWatch {
  hear(event: Event): void
  status(): SchemaStatus
}

/** The dependencies of the tracker. */
export interface SchemaWatchOptions {
  readonly catalog: () => Catalog
  /** The time in milliseconds of a monotonic clock. */
  readonly now: () => number
  /** The time in milliseconds since 1970. */
  readonly clock: () => number
}

/** Creates the tracker. Call it as soon as the first catalog is loaded, which causes no event. */
export function createSchemaWatch({ catalog, now, clock }: SchemaWatchOptions): SchemaWatch {
  const reloads = { changed: 0, unchanged: 0, failed: 0 }
  let readAt = clock()
  let readAtMs = now()
  return {
    hear(event) {
      if (event.kind !== 'catalog') return
      if (event.event === 'failed') reloads.failed += 1
      if (event.event !== 'loaded') return
      reloads[event.detail.changed === true ? 'changed' : 'unchanged'] += 1
      readAt = clock()
      readAtMs = now()
    },
    status() {
      const { fingerprint, tables, serverVersion } = catalog()
      return {
        fingerprint,
        tables: tables.size,
        serverVersion,
        version: 1 + reloads.changed,
        readAt: new Date(readAt),
        readAtMs,
        reloads: { ...reloads },
      }
    },
  }
}
