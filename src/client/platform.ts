/**
 * The parts of browsers and Node that the client uses. Each of them is optional.
 */

/** The part of a WebSocket that the client uses. */
export interface ClientSocket {
  readonly readyState: number
  onopen: (() => void) | null
  onclose: ((event: { readonly code?: number; readonly reason?: string }) => void) | null
  onerror: ((event: never) => void) | null
  onmessage: ((event: { readonly data: unknown }) => void) | null
  send(text: string): void
  close(): void
}

export type SocketConstructor = new (url: string) => ClientSocket

interface EventSource {
  addEventListener?(name: string, listener: () => void): void
  removeEventListener?(name: string, listener: () => void): void
}

interface Platform extends EventSource {
  readonly WebSocket?: SocketConstructor
  readonly document?: EventSource & { readonly visibilityState?: string }
  readonly navigator?: { readonly onLine?: boolean }
  readonly crypto?: { getRandomValues?(bytes: Uint8Array): Uint8Array }
}

const platform = globalThis as unknown as Platform

export function globalSocket(): SocketConstructor | undefined {
  return platform.WebSocket
}

export function isOffline(): boolean {
  return platform.navigator?.onLine === false
}

/** True if the page is hidden. Always false in a program without a page. */
export function isHidden(): boolean {
  return platform.document?.visibilityState === 'hidden'
}

/** Calls `listener` when the network returns or the page becomes visible, until the returned call. */
export function onReturn(listener: () => void): () => void {
  const { document } = platform
  const visible = (): void => {
    if (!isHidden()) listener()
  }
  platform.addEventListener?.('online', listener)
  document?.addEventListener?.('visibilitychange', visible)
  return () => {
    platform.removeEventListener?.('online', listener)
    document?.removeEventListener?.('visibilitychange', visible)
  }
}

/** 128 random bits in hexadecimal. */
export function randomKey(): string {
  const bytes = new Uint8Array(16)
  if (platform.crypto?.getRandomValues === undefined) {
    for (let at = 0; at < bytes.length; at++) bytes[at] = Math.random() * 256
  } else platform.crypto.getRandomValues(bytes)
  return Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('')
}

const RETRY_MS_FIRST = 500
const RETRY_MS_MAX = 15_000

/** A pause that grows with each failure. It is random, so that clients do not reconnect all at once. */
export function pauseMs(failures: number): number {
  return Math.min(RETRY_MS_MAX, RETRY_MS_FIRST * 2 ** Math.min(failures, 10)) * (0.5 + Math.random() / 2)
}
