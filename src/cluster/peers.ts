/** The interface of a worker to the others. A gateway without workers does not use it. */
import type { ImportSlots } from '../limits/import-slots.ts'
import type { LeaseStore } from '../limits/leases.ts'
import type { ReportName, SharedLimit } from './messages.ts'

/** The state of a worker, as the primary process reports it. */
export interface WorkerStatus {
  /** The number of the worker, from 1. The worker that replaces it gets the same number. */
  readonly number: number
  readonly pid: number
  readonly state: 'starting' | 'serving' | 'retiring'
  readonly uptimeMs: number
  /** How often a worker with this number has ended unexpectedly. */
  readonly restarts: number
}

/** Reports of all workers that answered in time. */
export interface Gathered {
  readonly reports: readonly { readonly number: number; readonly value: unknown }[]
  /** The last figures of workers that have ended; null if none has. */
  readonly ended: unknown
  readonly workers: readonly WorkerStatus[]
}

/** The functions that a worker provides to the others. */
export interface PeerHandlers {
  /** Returns this worker's part of a report. */
  readonly report: (report: ReportName, argument: string) => unknown
  /** Invalidates the cached results that depend on these relations; null: all results. */
  readonly changed: (relations: readonly number[] | null) => void
  /** A caller has written through another worker; `position` null: it is unknown what. */
  readonly wrote: (caller: string, position: string | null) => void
  readonly surrender: (limit: SharedLimit, holder: string) => number
}

/** A read that workers share (shared-reads.ts). */
export interface ReadRequest<T> {
  readonly stream: string
  /** The position from which the read continues; empty for a first read. */
  readonly from: string
  /** How long the result of a read that found no change is used, in milliseconds. */
  readonly unchangedMsMax: number
  readonly read: () => Promise<T>
  /** The position at which a read ended. */
  readonly positionOf: (result: T) => string
}

/** The result of a read by any worker. */
export interface SharedRead<T> {
  readonly result: T
  /** The read began at most this many milliseconds before the request. */
  readonly ageMs: number
  readonly isOwn: boolean
}

/** The other workers. */
export interface Peers {
  /** The number of this worker. */
  readonly number: number
  readonly count: number
  /** A secret that all workers share. */
  readonly secret: Uint8Array
  /** The configured limits of the whole gateway, for `/health/internal`. */
  readonly limits: Readonly<Record<string, number>>
  /** The sum of the pools' connections of all workers. */
  readonly maxConnections: number
  storeOf(limit: SharedLimit): LeaseStore
  /** The places for imports, which the primary process counts for all workers. */
  readonly imports: ImportSlots
  /** Resolves when no other worker serves an earlier result from these relations. */
  changed(relations: readonly number[] | null): Promise<void>
  /** Resolves when every other worker knows the position of a caller's write; null if that is unknown. */
  wrote(caller: string, position: string | null): Promise<void>
  /**
   * The result of the next read: from another worker if one has it, otherwise from `read`, whose result the
   * others receive.
   */
  read<T>(request: ReadRequest<T>): Promise<SharedRead<T>>
  gather(report: ReportName, argument?: string): Promise<Gathered>
  /** Called once, before the gateway listens. */
  handle(handlers: PeerHandlers): void
}
