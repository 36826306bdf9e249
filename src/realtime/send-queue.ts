/**
 * The messages queued for one client. A slow reader receives less and less: first only the latest change of
 * each row, then a request to resync, and finally the connection is closed
 * (docs/reference/realtime.md#limits). The last limit bounds the memory per client.
 */
import type { WaitingBytes } from './waiting-bytes.ts'

/** Beyond this many bytes, only the latest of several changes to a row is sent. */
export const CONFLATE_BYTES: number = 256 * 1024

/** Beyond this many bytes, changes are dropped and the client is asked to resync. */
export const RESYNC_BYTES: number = 1024 * 1024

/** Beyond this many bytes, the connection is closed. */
export const CLOSE_BYTES: number = 4 * 1024 * 1024

/** How long a client may be behind before its connection is closed. */
export const BEHIND_MS_MAX = 30_000

/** Interval between checks of a client that is behind. */
const CHECK_MS = 50

/** A socket as the queue uses it. */
export interface Pipe {
  send(text: string): void
  /** Bytes handed to the socket that have not left the process. */
  readonly buffered: number
}

/** A subscription or live query that messages are sent for. */
export interface Recipient {
  /** The message that asks the client to resync. */
  resyncText(): string
  /** Called when messages were dropped because the client is too slow. */
  markLost(): void
}

/** Sends messages to one client. */
export interface SendQueue {
  /** Sends a response, which is never dropped. */
  send(text: string): void
  /** Sends a change, which a later change of the same row may replace. */
  notify(recipient: Recipient, key: string, text: string): void
  /** Asks the client to resync; pending changes are dropped. */
  resync(recipient: Recipient): void
  forget(recipient: Recipient): void
  close(): void
}

/** The dependencies of a queue. */
export interface SendQueueParts {
  readonly pipe: Pipe
  /** Counts the pending changes. */
  readonly waiting: Pick<WaitingBytes, 'refusal' | 'take' | 'give'>
  readonly now: () => number
  /** Called once. */
  readonly onTooSlow: () => void
}

/** Creates an empty queue. */
export function createSendQueue({ pipe, waiting, now, onTooSlow }: SendQueueParts): SendQueue {
  const pending = new Map<Recipient, Map<string, string>>()
  /** Recipients that must be asked to resync. */
  const resyncing = new Set<Recipient>()
  let bytes = 0
  let behindSince: number | null = null
  let timer: NodeJS.Timeout | null = null
  let isClosed = false

  function count(change: number): void {
    bytes += change
    if (change > 0) waiting.take(change)
    else if (change < 0) waiting.give(-change)
  }

  function isBehind(): boolean {
    return pending.size > 0 || resyncing.size > 0 || pipe.buffered >= CONFLATE_BYTES
  }

  function scheduleCheck(): void {
    if (isClosed || timer !== null || !isBehind()) return
    behindSince ??= now()
    timer = setTimeout(() => {
      timer = null
      check()
      scheduleCheck()
    }, CHECK_MS)
  }

  function check(): void {
    if (pipe.buffered < CONFLATE_BYTES) flush()
    if (!isBehind()) behindSince = null
    else if (behindSince !== null && now() - behindSince > BEHIND_MS_MAX) end()
  }

  function flush(): void {
    for (const recipient of resyncing) pipe.send(recipient.resyncText())
    resyncing.clear()
    for (const [recipient, texts] of pending) {
      if (pipe.buffered >= CONFLATE_BYTES) return
      pending.delete(recipient)
      for (const text of texts.values()) {
        count(-text.length)
        pipe.send(text)
      }
    }
  }

  function end(): void {
    if (isClosed) return
    isClosed = true
    clear()
    onTooSlow()
  }

  function clear(): void {
    pending.clear()
    resyncing.clear()
    count(-bytes)
    if (timer !== null) clearTimeout(timer)
    timer = null
  }

  function drop(recipient: Recipient): void {
    for (const text of pending.get(recipient)?.values() ?? []) count(-text.length)
    pending.delete(recipient)
  }

  function resyncAll(): void {
    for (const recipient of pending.keys()) {
      recipient.markLost()
      resyncing.add(recipient)
    }
    pending.clear()
    count(-bytes)
  }

  return {
    send(text) {
      if (isClosed) return
      pipe.send(text)
      if (pipe.buffered > CLOSE_BYTES) end()
      else scheduleCheck()
    },
    notify(recipient, key, text) {
      if (isClosed || resyncing.has(recipient)) return
      if (pending.size === 0 && pipe.buffered < CONFLATE_BYTES) {
        pipe.send(text)
        return
      }
      const texts = pending.get(recipient) ?? new Map<string, string>()
      pending.set(recipient, texts)
      count(text.length - (texts.get(key)?.length ?? 0))
      // A later change is sent later.
      texts.delete(key)
      texts.set(key, text)
      if (pipe.buffered + bytes > RESYNC_BYTES || waiting.refusal() !== null) resyncAll()
      scheduleCheck()
    },
    resync(recipient) {
      if (isClosed) return
      drop(recipient)
      if (pending.size === 0 && resyncing.size === 0 && pipe.buffered < CONFLATE_BYTES)
        pipe.send(recipient.resyncText())
      else resyncing.add(recipient)
      scheduleCheck()
    },
    forget(recipient) {
      drop(recipient)
      resyncing.delete(recipient)
    },
    close() {
      isClosed = true
      clear()
    },
  }
}
