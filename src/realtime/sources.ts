/** Where changes of a table are heard of: the log, where triggers write all of them down; else what our own writes tell of themselves. */
import type { Listener } from '../postgres/listener.ts'
import { channelOf } from '../run/announce.ts'
import { createChannels, type Hearing } from './channels.ts'
import type { ChangeLog, LogHearer } from './log.ts'

/** `trigger`: whoever writes. `gateway`: writes through gateways alone. */
export type CaptureKind = 'trigger' | 'gateway'

export interface Named {
  /** `schema.name`. */
  readonly name: string
  /** What it is called in messages: `orders`, `sales.orders`. */
  readonly resource: string
}

export interface SourceHearer extends LogHearer {
  /** A write told of itself. */
  notice(payload: string): void
  /** Notices may have been missed. */
  gap(): void
}

export interface Heard {
  readonly capture: CaptureKind
  /** Every change that is committed from then on is heard of. Rejects with `UNAVAILABLE` where nobody can listen. */
  readonly ready: Promise<void>
  close(): void
}

export interface Sources {
  captureOf(table: Named): CaptureKind
  hear(table: Named, hearer: SourceHearer): Heard
  /** The connection for notices stands. */
  readonly listening: boolean
  close(): void
}

export interface SourcesParts {
  readonly log: ChangeLog
  /** Whether triggers write down every change of a table, `schema.name`. */
  readonly isCaptured: (name: string) => boolean
  /** Null: through a pooler alone, nobody can listen. */
  readonly openListener: ((on: Hearing) => Listener) | null
}

export function createSources({ log, isCaptured, openListener }: SourcesParts): Sources {
  const hearers = new Map<string, Set<SourceHearer>>()
  const channels = createChannels(openListener, {
    notification(channel, payload) {
      for (const hearer of hearers.get(channel) ?? []) hearer.notice(payload)
    },
    gap() {
      for (const of of hearers.values()) for (const hearer of of) hearer.gap()
    },
  })

  function hearChannel(channel: string, hearer: SourceHearer): Heard {
    // Also what it throws at once.
    const listen = async () => channels.hear(channel)
    const ready = listen()
    ready.catch(() => {})
    const of = hearers.get(channel) ?? new Set()
    hearers.set(channel, of)
    of.add(hearer)
    return {
      ...{ capture: 'gateway', ready },
      close() {
        of.delete(hearer)
        if (of.size === 0) hearers.delete(channel)
        channels.unhear(channel)
      },
    }
  }

  const captureOf = ({ name }: Named): CaptureKind => (isCaptured(name) ? 'trigger' : 'gateway')
  return {
    captureOf,
    hear(table, hearer) {
      return captureOf(table) === 'trigger'
        ? { capture: 'trigger', ...log.hear(table.name, hearer) }
        : hearChannel(channelOf(table.resource), hearer)
    },
    get listening() {
      return channels.connected
    },
    close() {
      hearers.clear()
      channels.close()
      log.close()
    },
  }
}
