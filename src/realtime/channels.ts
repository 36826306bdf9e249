/**
 * Listens on database channels, for any number of listeners over one connection. Without listeners there is
 * no connection, and then writes send no notifications.
 */
import { GatewayError } from '../errors.ts'
import type { Listener } from '../postgres/listener.ts'

/** Receives what is sent on the channels. */
export interface ChannelListener {
  notification(channel: string, payload: string): void
  /** Notifications may have been missed. */
  gap(): void
}

/** The channels being listened on. */
export interface Channels {
  /**
   * Resolves once the channel is listened on, however long the database is unavailable. Each call must be
   * matched by one of `unlisten`.
   */
  listen(channel: string): Promise<void>
  unlisten(channel: string): void
  readonly connected: boolean
  close(): void
}

const NO_LISTENER =
  'subscriptions need a direct connection to the database (realtime_database_url), ' +
  'which this gateway does not have; use live_query'

/**
 * Creates channels. `open` is null if the gateway has only a pooled connection, on which it cannot listen.
 */
export function createChannels(
  open: ((onChannel: ChannelListener) => Listener) | null,
  onChannel: ChannelListener,
): Channels {
  /** The number of listeners of each channel. */
  const counts = new Map<string, number>()
  let listener: Listener | null = null
  return {
    listen(channel) {
      if (open === null) throw new GatewayError('UNAVAILABLE', NO_LISTENER)
      listener ??= open(onChannel)
      counts.set(channel, (counts.get(channel) ?? 0) + 1)
      return listener.listen(channel)
    },
    unlisten(channel) {
      const count = (counts.get(channel) ?? 0) - 1
      if (count > 0) {
        counts.set(channel, count)
        return
      }
      counts.delete(channel)
      listener?.unlisten(channel)
      if (counts.size > 0) return
      listener?.close()
      listener = null
    },
    get connected() {
      return listener?.connected ?? false
    },
    close() {
      counts.clear()
      listener?.close()
      listener = null
    },
  }
}
