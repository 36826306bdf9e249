/**
 * Selects the capture source of a table: the change log if the table is captured, otherwise notifications
 * of gateway writes.
 */
import type { Table } from '../catalog/model.ts'
import type { Listener } from '../postgres/listener.ts'
import { channelOf } from '../run/write-notifications.ts'
import { type ChannelListener, createChannels } from './channels.ts'
import type { ChangeLog, LogListener } from './log.ts'

/** `trigger`: all changes are captured. `gateway`: only writes through gateways. */
export type CaptureKind = 'trigger' | 'gateway'

/** A table's names. */
export interface CapturedName {
  /** `schema.name`. */
  readonly name: string
  /** The name in messages: `orders`, `sales.orders`. */
  readonly resource: string
}

/** Receives the changes of a table from either source. */
export interface SourceListener extends LogListener {
  /** A gateway write sent a notification. */
  notification(payload: string): void
  /** Notifications may have been missed. */
  gap(): void
}

/** The name of a table in the change log. */
export function nameOf({ schema, name }: Pick<Table, 'schema' | 'name'>): string {
  return `${schema}.${name}`
}

/** A subscription to a table's changes. */
export interface SourceSubscription {
  readonly capture: CaptureKind
  /**
   * Resolves once every later change is reported. Rejects with `UNAVAILABLE` if the gateway cannot listen.
   */
  readonly ready: Promise<void>
  close(): void
}

/** The capture sources of all tables. */
export interface CaptureSources {
  captureOf(table: CapturedName): CaptureKind
  listen(table: CapturedName, listener: SourceListener): SourceSubscription
  /** True if the connection that listens for notifications is established. */
  readonly listening: boolean
  close(): void
}

/** The dependencies of the sources. */
export interface CaptureSourcesParts {
  readonly log: ChangeLog
  /** True if every change to a table, `schema.name`, is captured. */
  readonly isCaptured: (name: string) => boolean
  /** Opens a listener; null if the gateway has only a pooled connection, on which it cannot listen. */
  readonly openListener: ((on: ChannelListener) => Listener) | null
}

/** Creates the sources without subscriptions. */
export function createCaptureSources({ log, isCaptured, openListener }: CaptureSourcesParts): CaptureSources {
  const listeners = new Map<string, Set<SourceListener>>()
  const channels = createChannels(openListener, {
    notification(channel, payload) {
      for (const listener of listeners.get(channel) ?? []) listener.notification(payload)
    },
    gap() {
      for (const ofChannel of listeners.values()) for (const listener of ofChannel) listener.gap()
    },
  })

  function listenOnChannel(channel: string, listener: SourceListener): SourceSubscription {
    // An error that is thrown synchronously also rejects `ready`.
    const listen = async () => channels.listen(channel)
    const ready = listen()
    ready.catch(() => {})
    const ofChannel = listeners.get(channel) ?? new Set()
    listeners.set(channel, ofChannel)
    ofChannel.add(listener)
    return {
      ...{ capture: 'gateway', ready },
      close() {
        ofChannel.delete(listener)
        if (ofChannel.size === 0) listeners.delete(channel)
        channels.unlisten(channel)
      },
    }
  }

  const captureOf = ({ name }: CapturedName): CaptureKind => (isCaptured(name) ? 'trigger' : 'gateway')
  return {
    captureOf,
    listen(table, listener) {
      return captureOf(table) === 'trigger'
        ? { capture: 'trigger', ...log.listen(table.name, listener) }
        : listenOnChannel(channelOf(table.resource), listener)
    },
    get listening() {
      return channels.connected
    },
    close() {
      listeners.clear()
      channels.close()
      log.close()
    },
  }
}
