/** Which channels of the database are heard, for as many as want to: one connection for all, and none while nobody does – then no write tells of itself. */
import { GatewayError } from '../errors.ts'
import type { Listener } from '../postgres/listener.ts'

export interface Hearing {
  notification(channel: string, payload: string): void
  /** Some may have been missed. */
  gap(): void
}

export interface Channels {
  /** Resolves once it is heard, however long the database is away. Each call is taken back by one of `unhear`. */
  hear(channel: string): Promise<void>
  unhear(channel: string): void
  readonly connected: boolean
  close(): void
}

const NO_LISTENER =
  'subscriptions need a direct connection to the database (realtime_database_url), which this gateway does not have; use live_query'

/** `open` null: through a pooler alone, nobody can listen. */
export function createChannels(open: ((hearing: Hearing) => Listener) | null, hearing: Hearing): Channels {
  /** How many want each. */
  const wanted = new Map<string, number>()
  let listener: Listener | null = null
  return {
    hear(channel) {
      if (open === null) throw new GatewayError('UNAVAILABLE', NO_LISTENER)
      listener ??= open(hearing)
      wanted.set(channel, (wanted.get(channel) ?? 0) + 1)
      return listener.listen(channel)
    },
    unhear(channel) {
      const count = (wanted.get(channel) ?? 0) - 1
      if (count > 0) {
        wanted.set(channel, count)
        return
      }
      wanted.delete(channel)
      listener?.unlisten(channel)
      if (wanted.size > 0) return
      listener?.close()
      listener = null
    },
    get connected() {
      return listener?.connected ?? false
    },
    close() {
      wanted.clear()
      listener?.close()
      listener = null
    },
  }
}
