/** The messages between the primary process and its workers. Both sides validate what they receive. */

/** The limits whose units are leased; `limits/leases.ts` has the holder's side. */
export const SHARED_LIMITS = ['requests', 'tenants', 'connections', 'address connections'] as const
export type SharedLimit = (typeof SHARED_LIMITS)[number]

/** The reports that are gathered from all workers. */
export const REPORTS = ['metrics', 'health', 'details', 'webhooks', 'imports'] as const
export type ReportName = (typeof REPORTS)[number]

/** From a worker to the primary process. */
export type WorkerMessage =
  /** Requests the worker's share; answered with `WorkerAssignment`. */
  | { readonly kind: 'hello' }
  | { readonly kind: 'ready'; readonly url: string }
  /** Requests units of a limit; answered with their number. */
  | { readonly kind: 'lease'; readonly limit: SharedLimit; readonly holder: string; readonly units: number }
  | { readonly kind: 'return'; readonly limit: SharedLimit; readonly holder: string; readonly units: number }
  /** Reports units that were taken beyond the limit. */
  | { readonly kind: 'exceed'; readonly limit: SharedLimit; readonly holder: string; readonly units: number }
  /** Begins an import of a caller; answered with the limit that has been reached, or null. */
  | { readonly kind: 'enter'; readonly caller: string }
  | { readonly kind: 'leave'; readonly caller: string }
  /**
   * Results that depend on these relations (null: all results) are outdated. Answered when no worker has
   * them.
   */
  | { readonly kind: 'changed'; readonly relations: readonly number[] | null }
  /** Reads of this caller on a replica must see its write. Answered when every worker knows. */
  | CallerWrote
  /** Requests a report of every worker; answered with `Gathered`. `argument` is empty for most reports. */
  | { readonly kind: 'gather'; readonly report: ReportName; readonly argument: string }
  /** Needs the next read of a stream (shared-reads.ts); answered with `ReadTurn`. */
  | { readonly kind: 'turn'; readonly stream: string; readonly from: string; readonly unchangedMsMax: number }
  /** The result of a read and the position at which it ended; `to` is null if the read failed. */
  | {
      readonly kind: 'step'
      readonly stream: string
      readonly from: string
      readonly to: string | null
      readonly value: unknown
    }
  /** The last figures of a worker that ends. */
  | { readonly kind: 'figures'; readonly value: unknown }

/** From the primary process to a worker. */
export type PrimaryMessage =
  /** Requests the units of a holder that are not in use; answered with their number. */
  | { readonly kind: 'surrender'; readonly limit: SharedLimit; readonly holder: string }
  /** Answered when the results have been dropped. */
  | { readonly kind: 'changed'; readonly relations: readonly number[] | null }
  /** Answered when reads of the caller will see the write. */
  | CallerWrote
  | { readonly kind: 'report'; readonly report: ReportName; readonly argument: string }
  | { readonly kind: 'reload' }
  /** Tells the worker to drain and end, because another worker has taken its place. */
  | { readonly kind: 'retire' }
  | { readonly kind: 'stop' }

/** A caller has written up to a position of the primary's log; null: it is unknown what it has written. */
interface CallerWrote {
  readonly kind: 'wrote'
  readonly caller: string
  readonly position: string | null
}

/** A message on the channel. A request has an id, which its response repeats. */
export type ChannelFrame<Message> =
  | { readonly frame: 'notice'; readonly message: Message }
  | { readonly frame: 'request'; readonly id: number; readonly message: Message }
  | { readonly frame: 'answer'; readonly id: number; readonly value: unknown }

type Check = (value: unknown) => boolean
type Fields<Message extends { readonly kind: string }> = {
  readonly [K in Message['kind']]: Readonly<Record<Exclude<keyof Extract<Message, { kind: K }>, 'kind'>, Check>>
}

const isText: Check = value => typeof value === 'string'
const isCount: Check = value => Number.isSafeInteger(value) && (value as number) >= 0
const isAnything: Check = () => true
const areRelations: Check = value => value === null || (Array.isArray(value) && value.every(isCount))
const oneOf =
  (names: readonly string[]): Check =>
  value =>
    names.includes(value as string)

const UNITS = { limit: oneOf(SHARED_LIMITS), holder: isText, units: isCount }

const isTextOrNull: Check = value => value === null || isText(value)

const WROTE = { caller: isText, position: isTextOrNull }

const REPORT = { report: oneOf(REPORTS), argument: isText }

const WORKER_FIELDS: Fields<WorkerMessage> = {
  hello: {},
  ready: { url: isText },
  lease: UNITS,
  return: UNITS,
  exceed: UNITS,
  enter: { caller: isText },
  leave: { caller: isText },
  changed: { relations: areRelations },
  wrote: WROTE,
  gather: REPORT,
  turn: { stream: isText, from: isText, unchangedMsMax: isCount },
  step: { stream: isText, from: isText, to: isTextOrNull, value: isAnything },
  figures: { value: isAnything },
}

const PRIMARY_FIELDS: Fields<PrimaryMessage> = {
  surrender: { limit: oneOf(SHARED_LIMITS), holder: isText },
  changed: { relations: areRelations },
  wrote: WROTE,
  report: REPORT,
  reload: {},
  retire: {},
  stop: {},
}

/** Parses a message from a worker; null for anything else. */
export const parseWorkerMessage: (value: unknown) => WorkerMessage | null = parserOf(WORKER_FIELDS)

/** Parses a message from the primary process; null for anything else. */
export const parsePrimaryMessage: (value: unknown) => PrimaryMessage | null = parserOf(PRIMARY_FIELDS)

function parserOf<Message extends { readonly kind: string }>(
  fields: Fields<Message>,
): (value: unknown) => Message | null {
  const byKind = new Map<unknown, Readonly<Record<string, Check>>>(Object.entries(fields))
  return value => {
    if (!isRecord(value)) return null
    const checks = byKind.get(value.kind)
    if (checks === undefined || !Object.entries(checks).every(([name, check]) => check(value[name]))) return null
    return value as unknown as Message
  }
}

/** Parses a frame; null for anything else, such as a message of another library. */
export function parseChannelFrame<Message>(
  value: unknown,
  parseMessage: (value: unknown) => Message | null,
): ChannelFrame<Message> | null {
  if (!isRecord(value)) return null
  const { frame, id } = value
  if (frame === 'answer') return isCount(id) ? { frame, id: id as number, value: value.value } : null
  const message = parseMessage(value.message)
  if (message === null) return null
  if (frame === 'notice') return { frame, message }
  return frame === 'request' && isCount(id) ? { frame, id: id as number, message } : null
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
