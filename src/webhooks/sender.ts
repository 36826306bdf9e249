/**
 * Sends one POST request to an endpoint (HTTP/1.1 with keep-alive) and returns its outcome. Redirects are not
 * followed.
 */
import { lookup as systemLookup } from 'node:dns'
import { type buildConnector, Client } from 'undici'
import type { Clock } from '../clock.ts'
import type { AddressGuard } from '../outbound/address-guard.ts'
import { AddressRefused, guardedConnector, type ResolveName } from '../outbound/connector.ts'
import type { Outcome } from './delivery.ts'

/** A request to an endpoint. */
export interface WebhookRequest {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** Time limit on the whole request, from the DNS lookup to the end of the response. */
  readonly timeoutMs: number
}

/** Sends webhook requests. */
export interface Sender {
  /** Sends a request. Never rejects. */
  send(post: WebhookRequest): Promise<Outcome>
  /** Aborts requests in flight; their outcome is a failure. */
  close(): Promise<void>
}

/** The dependencies of a sender. */
export interface SenderParts {
  readonly guard: AddressGuard
  readonly clock: Clock
  /** Limit on idle connections per origin. The caller limits how many are in use. */
  readonly connections: number
  readonly resolve?: ResolveName
}

/** Bytes kept of a response body. The rest is read only as far as needed to reuse the connection. */
export const KEPT_BODY_BYTES = 16_384
const READ_BODY_BYTES_MAX = 131_072

const KEEP_ALIVE_MS = 10_000

class TimedOut extends Error {
  override readonly name = 'TimedOut'
}

/** Creates a sender without open connections. */
export function createSender({ guard, clock, connections, resolve = systemLookup }: SenderParts): Sender {
  const clients = createClients(guardedConnector(guard, resolve), connections, clock)
  return {
    async send({ url, headers, body, timeoutMs }) {
      const client = clients.take(url.origin)
      let isComplete = false
      const timedOut = new TimedOut(`no complete response within ${timeoutMs} ms`)
      const cancel = clock.after(timeoutMs, () => void client.destroy(timedOut))
      try {
        const path = `${url.pathname}${url.search}`
        const answer = await client.request({ ...{ method: 'POST', path, body }, headers: { ...headers } })
        const retryAfter = answer.headers['retry-after']
        const read = await readBeginning(answer.body)
        isComplete = read.isComplete
        return {
          kind: 'answered',
          status: answer.statusCode,
          retryAfter: typeof retryAfter === 'string' ? retryAfter : null,
          body: read.text,
        }
      } catch (error) {
        return failureOf(error)
      } finally {
        cancel()
        clients.leave(url.origin, client, isComplete ? 'reusable' : 'spent')
      }
    },
    close: clients.close,
  }
}

interface Clients {
  take(origin: string): Client
  /** `spent`: the connection may still receive data and cannot be reused. */
  leave(origin: string, client: Client, state: 'reusable' | 'spent'): void
  close(): Promise<void>
}

/**
 * One connection per request, kept open for the next one. undici's pool is not used: after a request that is
 * aborted it reconnects and leaves that connection open with nothing to send, whereas a client that is
 * destroyed never reconnects.
 */
function createClients(connect: buildConnector.connector, idleMax: number, clock: Clock): Clients {
  const all = new Set<Client>()
  /** Idle clients by origin, with the function that cancels their timeout. */
  const idle = new Map<string, Map<Client, () => void>>()

  function destroy(client: Client): void {
    all.delete(client)
    void client.destroy().catch(() => {})
  }

  function keepIdle(origin: string, client: Client): void {
    const idleClients = idle.get(origin) ?? new Map<Client, () => void>()
    idle.set(origin, idleClients)
    const expire = (): void => {
      takeIdle(origin, client)
      destroy(client)
    }
    const cancel = clock.after(KEEP_ALIVE_MS, expire)
    client.once('disconnect', expire)
    idleClients.set(client, () => {
      cancel()
      client.off('disconnect', expire)
    })
  }

  function takeIdle(origin: string, client: Client): void {
    const idleClients = idle.get(origin)
    idleClients?.get(client)?.()
    idleClients?.delete(client)
    if (idleClients?.size === 0) idle.delete(origin)
  }

  return {
    take(origin) {
      // The client used last is the least likely to have been closed by the server.
      const known = [...(idle.get(origin)?.keys() ?? [])].at(-1)
      if (known !== undefined) {
        takeIdle(origin, known)
        return known
      }
      const client = new Client(origin, {
        ...{ connect, pipelining: 1, allowH2: false },
        // The caller's single time limit replaces undici's; idle clients have their own.
        ...{ headersTimeout: 0, bodyTimeout: 0, keepAliveTimeout: 2 * KEEP_ALIVE_MS },
      })
      all.add(client)
      return client
    },
    leave(origin, client, state) {
      const isOpen = all.has(client) && !client.destroyed
      if (state === 'reusable' && isOpen && (idle.get(origin)?.size ?? 0) < idleMax) keepIdle(origin, client)
      else destroy(client)
    },
    async close() {
      for (const [origin, idleClients] of idle) for (const client of idleClients.keys()) takeIdle(origin, client)
      const open = [...all]
      all.clear()
      await Promise.all(open.map(client => client.destroy()))
    },
  }
}

/**
 * Reads the beginning of a body. The status has been received, so a body that breaks off or never ends does
 * not change the outcome.
 */
async function readBeginning(
  body: AsyncIterable<Buffer>,
): Promise<{ readonly text: string; readonly isComplete: boolean }> {
  const kept: Buffer[] = []
  let bytes = 0
  let isComplete = false
  try {
    for await (const chunk of body) {
      if (bytes < KEPT_BODY_BYTES) kept.push(chunk.subarray(0, KEPT_BODY_BYTES - bytes))
      bytes += chunk.length
      if (bytes > READ_BODY_BYTES_MAX) break
    }
    isComplete = bytes <= READ_BODY_BYTES_MAX
  } catch {
    // Keep what was received.
  }
  return { text: Buffer.concat(kept).toString(), isComplete }
}

function failureOf(error: unknown): Outcome {
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof AddressRefused) return { kind: 'failed', reason: 'address', message: cause.message }
    if (cause instanceof TimedOut) return { kind: 'failed', reason: 'timeout', message: cause.message }
  }
  const message = error instanceof Error ? messageOf(error) : String(error)
  return { kind: 'failed', reason: 'connection', message }
}

/** When a connection to several addresses fails, the aggregate error has an empty message. */
function messageOf(error: Error): string {
  const first = error instanceof AggregateError && error.errors[0] instanceof Error ? error.errors[0] : error
  return first.message || (first as NodeJS.ErrnoException).code || first.name
}
