/**
 * One WebSocket for all subscriptions and live queries of a client. It opens with the first, closes after the
 * last, and reconnects with pauses. When the network returns or the page becomes visible, it reconnects at
 * once; without a network, or while the page is hidden, it waits.
 */
import { ClientError } from './error.ts'
import { type ClientSocket, isHidden, isOffline, onReturn, pauseMs, type SocketConstructor } from './platform.ts'
import type { Tokens } from './tokens.ts'

/** `live`: connected. `waiting`: waits for the next attempt. `idle`: there is no subscription. */
export type ConnectionState = 'idle' | 'connecting' | 'live' | 'waiting'

// biome-ignore lint/suspicious/noExplicitAny: messages of many shapes (docs/reference/realtime.md)
export type ServerMessage = any

/** A subscription or a live query on the socket. */
export interface SocketSubscription {
  /** The message that starts it on every connection, without the `id`. */
  begin(): object
  /** The type of the message that ends it, such as `unsubscribe`. */
  readonly end: string
  receive(message: ServerMessage): void
  /** Called when the token was refused: the next one can belong to a user who must not see these rows. */
  forget?(): void
}

export interface SharedSocket {
  /** Returns a function that ends it. */
  add(subscription: SocketSubscription): () => void
  close(): void
}

export interface SocketOptions {
  readonly url: string
  readonly tokens: Tokens
  readonly WebSocket: SocketConstructor | undefined
  readonly onState: (state: ConnectionState, why: string) => void
  readonly onError: (error: unknown) => void
}

/** After this long without a message, the connection is pinged; after as long again, it is closed. */
const SILENCE_MS = 20_000
/** The socket stays open for a moment, because a page that ends a subscription often begins another. */
const LINGER_MS = 1_000
/** Limit on the subscriptions of a client; a gateway accepts fewer by default. */
const SUBSCRIPTIONS_MAX = 1_000
const OPEN = 1
const CLOSE_UNAUTHORIZED = 4401
const CLOSE_GOING_AWAY = 1001

export function createSocket({ url, tokens, WebSocket, onState, onError }: SocketOptions): SharedSocket {
  const subscriptions = new Map<string, SocketSubscription>()
  let count = 0
  let failures = 0
  let socket: ClientSocket | null = null
  let state: ConnectionState = 'idle'
  let stop: () => void = () => {}
  let linger: ReturnType<typeof setTimeout> | undefined
  let wakeUp: (() => void) | null = null

  function enter(next: ConnectionState, why = ''): void {
    state = next
    onState(next, why)
  }

  const say = (message: object): void => {
    if (socket?.readyState === OPEN) socket.send(JSON.stringify(message))
  }

  /** Never rejects. */
  async function connect(): Promise<void> {
    if (WebSocket === undefined) {
      onError(new TypeError('this platform has no WebSocket: pass one to createClient, such as that of the package ws'))
      return
    }
    enter('connecting')
    let ended = false
    stop = () => {
      ended = true
    }
    let token: string | null
    try {
      token = await tokens.get()
    } catch (error) {
      if (!ended) {
        onError(error)
        later(pauseMs(failures++), 'the function "token" returned no token')
      }
      return
    }
    if (!ended) open(token)

    function open(first: string | null): void {
      let bearer = first
      const own = new (WebSocket as SocketConstructor)(url)
      socket = own
      let heard = true
      const watch = setInterval(() => {
        if (!heard) return over({})
        heard = false
        say({ type: 'ping' })
      }, SILENCE_MS)
      stop = () => {
        ended = true
        clearInterval(watch)
        own.onopen = own.onclose = own.onmessage = null
        own.onerror = () => {}
        socket = null
        own.close()
      }
      own.onopen = () => {
        // Sent as a message, not in the handshake: browsers do not report why a handshake failed.
        if (bearer !== null) say({ type: 'auth', id: 'auth', token: bearer })
        enter('live')
        for (const [id, subscription] of subscriptions) say({ ...subscription.begin(), id })
      }
      // `onclose` follows.
      own.onerror = () => {}
      own.onclose = over
      own.onmessage = ({ data }) => {
        heard = true
        const message = JSON.parse(String(data)) as ServerMessage
        if (message.type === 'error' && message.code === 'UNAUTHORIZED') {
          // A refusal has the id of `auth`, and the connection is closed. Otherwise the token expires soon.
          if (message.id !== 'auth') void renew()
          return
        }
        if (message.type === 'subscribed') failures = 0
        subscriptions.get(message.id)?.receive(message)
      }

      /** Sends a new token of the same caller, so that the connection continues. */
      async function renew(): Promise<void> {
        try {
          const other = await tokens.replace(bearer, 'expires')
          if (ended || other === null) return
          bearer = other
          say({ type: 'auth', id: 'auth', token: other })
        } catch (error) {
          onError(error)
        }
      }

      function over({ code, reason = '' }: { readonly code?: number; readonly reason?: string }): void {
        if (ended) return
        stop()
        if (code === CLOSE_UNAUTHORIZED) void refused(bearer)
        else if (code === CLOSE_GOING_AWAY) later(askedMs(reason), 'the gateway is stopping')
        else later(pauseMs(failures++), 'the connection is lost')
      }
    }
  }

  async function refused(token: string | null): Promise<void> {
    let ended = false
    stop = () => {
      ended = true
    }
    for (const subscription of subscriptions.values()) subscription.forget?.()
    let other: string | null = null
    try {
      other = await tokens.replace(token, 'refused')
    } catch (error) {
      onError(error)
    }
    if (ended) return
    if (other === null)
      onError(new ClientError('UNAUTHORIZED', 'the gateway did not accept the token', { status: 401 }))
    // If new tokens are refused at once, the function is not called again without a pause.
    if (other !== null && failures++ === 0) void connect()
    else later(pauseMs(failures), 'the token was refused')
  }

  /** Waits for the given time, and then until there is a network and the page is visible. */
  function later(ms: number, why: string): void {
    enter('waiting', why)
    const again = (): void => {
      if (isOffline() || isHidden()) return
      stop()
      void connect()
    }
    const timer = setTimeout(again, ms)
    // All pages of a device, and all devices of a network, reconnect at the same time.
    let soon: ReturnType<typeof setTimeout> | undefined
    wakeUp = () => {
      clearTimeout(soon)
      soon = setTimeout(again, Math.random() * 300)
    }
    const forget = onReturn(wakeUp)
    stop = () => {
      clearTimeout(timer)
      clearTimeout(soon)
      forget()
    }
  }

  function close(): void {
    clearTimeout(linger)
    stop()
    stop = () => {}
    if (state !== 'idle') enter('idle')
  }

  return {
    add(subscription) {
      if (subscriptions.size >= SUBSCRIPTIONS_MAX)
        throw new RangeError(`a client has at most ${SUBSCRIPTIONS_MAX} subscriptions`)
      clearTimeout(linger)
      const id = `c${count++}`
      subscriptions.set(id, subscription)
      if (state === 'idle') void connect()
      else say({ ...subscription.begin(), id })
      return () => {
        if (!subscriptions.delete(id)) return
        say({ type: subscription.end, id })
        if (subscriptions.size === 0) linger = setTimeout(close, LINGER_MS)
      }
    },
    close() {
      subscriptions.clear()
      close()
    },
  }
}

/** The pause that a stopping gateway asks for. A stopping proxy gives none. */
function askedMs(reason: string): number {
  try {
    return Number((JSON.parse(reason) as { readonly retry_after_ms?: unknown }).retry_after_ms) || pauseMs(0)
  } catch {
    return pauseMs(0)
  }
}
