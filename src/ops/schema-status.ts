/**
 * Which schema is being served, since when, and how often it was read: what metrics and `/health/internal`
 * tell of it.
 */
import type { Catalog } from '../catalog/model.ts'
import type { Event } from '../events.ts'

export interface SchemaStatus {
  readonly fingerprint: string
  readonly tables: number
  /** `server_version_num` of the database it was read from. */
  readonly serverVersion: number
  /** 1 is the first; every change adds one. */
  readonly version: number
  /** When it was read: by the clock on the wall, and by the monotonic one. */
  readonly readAt: Date
  readonly readAtMs: number
  /** How often it was read again, and what came of it. */
  readonly reloads: { readonly changed: number; readonly unchanged: number; readonly failed: number }
}

export interface SchemaWatch {
  hear(event: Event): void
  status(): SchemaStatus
}

export interface SchemaWatchOptions {
  readonly catalog: () => Catalog
  /** Milliseconds, from any monotonic clock. */
  readonly now: () => number
  /** Milliseconds since 1970. */
  readonly clock: () => number
}

/** To be made as soon as there is a first catalogue, of which no event tells. */
export function createSchemaWatch({ catalog, now, clock }: SchemaWatchOptions): SchemaWatch {
  const reloads = { changed: 0, unchanged: 0, failed: 0 }
  let readAt = clock()
  let readAtMs = now()
  return {
    hear(event) {
      if (event.kind !== 'catalogue') return
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
