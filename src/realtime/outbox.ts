/**
 * What is on its way to one client. A reader who cannot keep up is told less and less, and in the end nothing: first only the last news of each row, then
 * that it should read again, then the connection ends (docs/reference/realtime.md#limits). Memory for one client ends at the last of the limits, whatever it does.
 */

/** From here on, of several changes of a row only the last is sent. */
export const CONFLATE_BYTES: number = 256 * 1024

/** From here on, changes are not kept at all: the client is told to read again. */
export const RESYNC_BYTES: number = 1024 * 1024

/** From here on the client is given up. */
export const CLOSE_BYTES: number = 4 * 1024 * 1024

/** A client that is behind for so long is given up as well. */
export const BEHIND_MS_MAX = 30_000

/** How often somebody who is behind is looked at. */
const CHECK_MS = 50

export interface Pipe {
  send(text: string): void
  /** Bytes that were sent and have not left the process. */
  readonly buffered: number
}

/** For whom something is sent, as far as that matters when not all can be. */
export interface Recipient {
  /** What tells it that it missed something. */
  resyncText(): string
  /** It did, because it was too slow. */
  lose(): void
}

export interface Outbox {
  /** Answers, which nothing else replaces. */
  send(text: string): void
  /** News of a row, which later news of the same row make worthless. */
  notify(recipient: Recipient, key: string, text: string): void
  /** It reads again: what was to be sent before is worthless. */
  resync(recipient: Recipient): void
  forget(recipient: Recipient): void
  close(): void
}

export interface OutboxParts {
  readonly pipe: Pipe
  readonly now: () => number
  /** Called once. */
  readonly onTooSlow: () => void
}

export function createOutbox({ pipe, now, onTooSlow }: OutboxParts): Outbox {
  const waiting = new Map<Recipient, Map<string, string>>()
  /** Those who are to read again. */
  const lost = new Set<Recipient>()
  let bytes = 0
  let behindSince: number | null = null
  let timer: NodeJS.Timeout | null = null
  let over = false

  function isBehind(): boolean {
    return waiting.size > 0 || lost.size > 0 || pipe.buffered >= CONFLATE_BYTES
  }

  function watch(): void {
    if (over || timer !== null || !isBehind()) return
    behindSince ??= now()
    timer = setTimeout(() => {
      timer = null
      check()
      watch()
    }, CHECK_MS)
  }

  function check(): void {
    if (pipe.buffered < CONFLATE_BYTES) flush()
    if (!isBehind()) behindSince = null
    else if (behindSince !== null && now() - behindSince > BEHIND_MS_MAX) end()
  }

  function flush(): void {
    for (const recipient of lost) pipe.send(recipient.resyncText())
    lost.clear()
    for (const [recipient, texts] of waiting) {
      if (pipe.buffered >= CONFLATE_BYTES) return
      waiting.delete(recipient)
      for (const text of texts.values()) {
        bytes -= text.length
        pipe.send(text)
      }
    }
  }

  function end(): void {
    if (over) return
    over = true
    clear()
    onTooSlow()
  }

  function clear(): void {
    waiting.clear()
    lost.clear()
    bytes = 0
    if (timer !== null) clearTimeout(timer)
    timer = null
  }

  function drop(recipient: Recipient): void {
    for (const text of waiting.get(recipient)?.values() ?? []) bytes -= text.length
    waiting.delete(recipient)
  }

  function loseAll(): void {
    for (const recipient of waiting.keys()) {
      recipient.lose()
      lost.add(recipient)
    }
    waiting.clear()
    bytes = 0
  }

  return {
    send(text) {
      if (over) return
      pipe.send(text)
      if (pipe.buffered > CLOSE_BYTES) end()
      else watch()
    },
    notify(recipient, key, text) {
      if (over || lost.has(recipient)) return
      if (waiting.size === 0 && pipe.buffered < CONFLATE_BYTES) {
        pipe.send(text)
        return
      }
      const texts = waiting.get(recipient) ?? new Map<string, string>()
      waiting.set(recipient, texts)
      bytes += text.length - (texts.get(key)?.length ?? 0)
      // The later news come later.
      texts.delete(key)
      texts.set(key, text)
      if (pipe.buffered + bytes > RESYNC_BYTES) loseAll()
      watch()
    },
    resync(recipient) {
      if (over) return
      drop(recipient)
      if (waiting.size === 0 && lost.size === 0 && pipe.buffered < CONFLATE_BYTES) pipe.send(recipient.resyncText())
      else lost.add(recipient)
      watch()
    },
    forget(recipient) {
      drop(recipient)
      lost.delete(recipient)
    },
    close() {
      over = true
      clear()
    },
  }
}
