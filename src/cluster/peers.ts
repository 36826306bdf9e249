/** The interface of a worker to the others. A gateway that runs alone has none of this. */
import type { LeaseStore } from '../limits/leases.ts'
import type { ReportName, SharedLimit } from './messages.ts'

/** The state of a worker, as the primary process knows it. */
export interface WorkerStatus {
  /** Its number, 1 for the first; a restarted worker keeps it. */
  readonly number: number
  readonly pid: number
  readonly state: 'starting' | 'serving' | 'retiring'
  readonly uptimeMs: number
  /** How often it has ended unexpectedly. */
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
  /** The result answers the report. */
  readonly report: (report: ReportName, argument: string) => unknown
  /** Invalidates cached results of these relations; null: of all. */
  readonly changed: (relations: readonly number[] | null) => void
  readonly surrender: (limit: SharedLimit, holder: string) => number
}

/** A read that workers share (shared-reads.ts). */
export interface ReadRequest<T> {
  readonly stream: string
  /** Where the read continues; empty for a first read. */
  readonly from: string
  /** For how long the result of a read that found nothing is used. */
  readonly unchangedMsMax: number
  readonly read: () => Promise<T>
  /** Where a read ended. */
  readonly positionOf: (result: T) => string
}

/** The result of a read by any worker. */
export interface SharedRead<T> {
  readonly result: T
  /** How many milliseconds before the request the read began, at most. */
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
  /** `limits` of the machine, as the configuration has them. */
  readonly limits: Readonly<Record<string, number>>
  /** Connections of the pools of all workers together. */
  readonly maxConnections: number
  storeOf(limit: SharedLimit): LeaseStore
  /** Resolves when no other worker serves a result that was read from these relations before. */
  changed(relations: readonly number[] | null): Promise<void>
  /**
   * The result of the next read: that of another worker if it has one, otherwise that of `read`, which the
   * others receive.
   */
  read<T>(request: ReadRequest<T>): Promise<SharedRead<T>>
  gather(report: ReportName, argument?: string): Promise<Gathered>
  /** Called once, before the gateway listens. */
  handle(handlers: PeerHandlers): void
}
