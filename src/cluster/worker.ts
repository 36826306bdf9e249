/**
 * The worker's end of the channel: receives the worker's share of the configuration, and reaches the other
 * workers.
 */
import type { Config } from '../config/config.ts'
import { limitsOf } from '../config/limits.ts'
import { type Share, shareOf } from '../config/worker-share.ts'
import type { Exceeded } from '../limits/budget.ts'
import { type Port, WorkerChannel } from './channel.ts'
import { type PrimaryMessage, parsePrimaryMessage, type WorkerMessage } from './messages.ts'
import type { Gathered, PeerHandlers, Peers, ReadRequest, SharedRead } from './peers.ts'
import type { ReadTurn } from './shared-reads.ts'

/** The assignment of a worker by the primary process. */
export interface WorkerAssignment extends Share {
  /** The configuration of the whole gateway. */
  readonly config: Config
  /** A secret that all workers share. */
  readonly secret: Uint8Array
}

/** A worker's connection with the primary process. */
export interface Membership {
  /** The configuration of this worker: its share of the pool and of the memory. */
  readonly config: Config
  readonly peers: Peers
  ready(url: string): void
  /** Reports the last metrics of this worker, so that sums still contain them after it has ended. */
  leave(figures: unknown): Promise<void>
}

/** The handlers of messages from the primary process. */
export interface WorkerCommands {
  reload(): void
  retire(): void
  stop(): void
}

function nothing(): void {}

/** Connects to the primary process. Rejects if that has ended. */
export async function joinPrimary(port: Port, commands: WorkerCommands): Promise<Membership> {
  let handlers: PeerHandlers | null = null
  const channel = new WorkerChannel<WorkerMessage, PrimaryMessage>({
    port,
    parse: parsePrimaryMessage,
    handle(message) {
      switch (message.kind) {
        case 'surrender':
          return handlers?.surrender(message.limit, message.holder) ?? 0
        case 'changed':
          return handlers?.changed(message.relations)
        case 'wrote':
          return handlers?.wrote(message.caller, message.position)
        case 'report':
          return handlers?.report(message.report, message.argument) ?? null
        default:
          return commands[message.kind]()
      }
    },
  })
  const { config, number, count, secret } = (await channel.request({ kind: 'hello' })) as WorkerAssignment
  return {
    config: shareOf(config, { number, count }),
    ready: url => channel.notify({ kind: 'ready', url }),
    leave: value => channel.request({ kind: 'figures', value }).then(nothing, nothing),
    peers: {
      ...{ number, count, secret, limits: limitsOf(config.gateway), maxConnections: config.gateway.maxConnections },
      storeOf: limit => ({
        // A missing response does not matter, because this process ends with the primary process.
        lease: (holder, units) => channel.request({ kind: 'lease', limit, holder, units }).then(Number, () => 0),
        give: (holder, units) => channel.notify({ kind: 'return', limit, holder, units }),
        exceed: (holder, units) => channel.notify({ kind: 'exceed', limit, holder, units }),
      }),
      imports: {
        enter: caller => channel.request({ kind: 'enter', caller }).then(asExceeded, () => 'total'),
        leave: caller => channel.notify({ kind: 'leave', caller }),
      },
      changed: relations => channel.request({ kind: 'changed', relations }).then(nothing, nothing),
      wrote: (caller, position) => channel.request({ kind: 'wrote', caller, position }).then(nothing, nothing),
      read: request => readShared(channel, request),
      gather: async (report, argument = '') =>
        (await channel.request({ kind: 'gather', report, argument })) as Gathered,
      handle(given) {
        handlers = given
      },
    },
  }
}

function asExceeded(value: unknown): Exceeded | null {
  return value === 'total' || value === 'share' ? value : null
}

async function readShared<T>(
  channel: WorkerChannel<WorkerMessage, PrimaryMessage>,
  { stream, from, unchangedMsMax, read, positionOf }: ReadRequest<T>,
): Promise<SharedRead<T>> {
  const turn = (await channel.request({ kind: 'turn', stream, from, unchangedMsMax })) as ReadTurn
  if (turn.kind === 'result') return { result: turn.value as T, ageMs: turn.ageMs, isOwn: false }
  try {
    const result = await read()
    channel.notify({ kind: 'step', stream, from, to: positionOf(result), value: result })
    return { result, ageMs: 0, isOwn: true }
  } catch (error) {
    channel.notify({ kind: 'step', stream, from, to: null, value: null })
    throw error
  }
}
