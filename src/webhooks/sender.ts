/** One POST to an endpoint (HTTP/1.1, kept alive), and what came of it. Redirects are answers like any other; nothing here follows one. */
import { lookup as systemLookup } from 'node:dns'
import { type buildConnector, Client } from 'undici'
import type { Clock } from '../clock.ts'
import type { AddressGuard } from '../outbound/address-guard.ts'
import { AddressRefused, guardedConnector, type Resolve } from '../outbound/connector.ts'
import type { Outcome } from './delivery.ts'

export interface Post {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** From the first look at the name to the end of the answer. */
  readonly timeoutMs: number
}

export interface Sender {
  /** Never rejects. */
  send(post: Post): Promise<Outcome>
  /** Ends what is on its way, which fails. */
  close(): Promise<void>
}

export interface SenderParts {
  readonly guard: AddressGuard
  readonly clock: Clock
  /** Connections to one origin that are kept for the next request. How many are in use is up to the caller. */
  readonly connections: number
  readonly resolve?: Resolve
}

/** Of an answer; the rest is read no further than it takes to use the connection again. */
export const KEPT_BODY_BYTES = 16_384
const READ_BODY_BYTES_MAX = 131_072

const KEEP_ALIVE_MS = 10_000

class TimedOut extends Error {
  override readonly name = 'TimedOut'
}

export function createSender({ guard, clock, connections, resolve = systemLookup }: SenderParts): Sender {
  const clients = createClients(guardedConnector(guard, resolve), connections, clock)
  return {
    async send({ url, headers, body, timeoutMs }) {
      const client = clients.take(url.origin)
      let isWhole = false
      const timedOut = new TimedOut(`no whole answer after ${timeoutMs} ms`)
      const cancel = clock.after(timeoutMs, () => void client.destroy(timedOut))
      try {
        const path = `${url.pathname}${url.search}`
        const answer = await client.request({ ...{ method: 'POST', path, body }, headers: { ...headers } })
        const retryAfter = answer.headers['retry-after']
        const read = await readSome(answer.body)
        isWhole = read.isWhole
        return {
          kind: 'answered',
          status: answer.statusCode,
          retryAfter: typeof retryAfter === 'string' ? retryAfter : null,
          body: read.text,
        }
      } catch (error) {
        return failure(error)
      } finally {
        cancel()
        clients.leave(url.origin, client, isWhole ? 'reusable' : 'spent')
      }
    },
    close: clients.close,
  }
}

interface Clients {
  take(origin: string): Client
  /** `spent`: something may still come on its connection. */
  leave(origin: string, client: Client, state: 'reusable' | 'spent'): void
  close(): Promise<void>
}

/**
 * One connection for each request, kept for the next one. A pool would do, but undici connects again after a request that is aborted on its connection, and leaves that
 * connection open with nothing to send; a client that is destroyed never connects again.
 */
function createClients(connect: buildConnector.connector, idleMax: number, clock: Clock): Clients {
  const all = new Set<Client>()
  /** By origin, with what ends the wait. */
  const idle = new Map<string, Map<Client, () => void>>()

  function end(client: Client): void {
    all.delete(client)
    void client.destroy().catch(() => {})
  }

  function rest(origin: string, client: Client): void {
    const resting = idle.get(origin) ?? new Map<Client, () => void>()
    idle.set(origin, resting)
    const forget = (): void => {
      wake(origin, client)
      end(client)
    }
    const cancel = clock.after(KEEP_ALIVE_MS, forget)
    client.once('disconnect', forget)
    resting.set(client, () => {
      cancel()
      client.off('disconnect', forget)
    })
  }

  function wake(origin: string, client: Client): void {
    const resting = idle.get(origin)
    resting?.get(client)?.()
    resting?.delete(client)
    if (resting?.size === 0) idle.delete(origin)
  }

  return {
    take(origin) {
      // The one used last is the least likely to have been closed by the other side.
      const known = [...(idle.get(origin)?.keys() ?? [])].at(-1)
      if (known !== undefined) {
        wake(origin, known)
        return known
      }
      const client = new Client(origin, {
        ...{ connect, pipelining: 1, allowH2: false },
        // One time limit, ours, for all of it; and one for what rests.
        ...{ headersTimeout: 0, bodyTimeout: 0, keepAliveTimeout: 2 * KEEP_ALIVE_MS },
      })
      all.add(client)
      return client
    },
    leave(origin, client, state) {
      const isOpen = all.has(client) && !client.destroyed
      if (state === 'reusable' && isOpen && (idle.get(origin)?.size ?? 0) < idleMax) rest(origin, client)
      else end(client)
    },
    async close() {
      for (const [origin, resting] of idle) for (const client of resting.keys()) wake(origin, client)
      const open = [...all]
      all.clear()
      await Promise.all(open.map(client => client.destroy()))
    },
  }
}

/** The status has been answered: a body that breaks off or never ends changes nothing of it. */
async function readSome(body: AsyncIterable<Buffer>): Promise<{ readonly text: string; readonly isWhole: boolean }> {
  const kept: Buffer[] = []
  let bytes = 0
  let isWhole = false
  try {
    for await (const chunk of body) {
      if (bytes < KEPT_BODY_BYTES) kept.push(chunk.subarray(0, KEPT_BODY_BYTES - bytes))
      bytes += chunk.length
      if (bytes > READ_BODY_BYTES_MAX) break
    }
    isWhole = bytes <= READ_BODY_BYTES_MAX
  } catch {
    // What came until then is kept.
  }
  return { text: Buffer.concat(kept).toString(), isWhole }
}

function failure(error: unknown): Outcome {
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof AddressRefused) return { kind: 'failed', reason: 'address', message: cause.message }
    if (cause instanceof TimedOut) return { kind: 'failed', reason: 'timeout', message: cause.message }
  }
  const message = error instanceof Error ? messageOf(error) : String(error)
  return { kind: 'failed', reason: 'connection', message }
}

/** Several addresses that all failed are one error without a message of its own. */
function messageOf(error: Error): string {
  const first = error instanceof AggregateError && error.errors[0] instanceof Error ? error.errors[0] : error
  return first.message || (first as NodeJS.ErrnoException).code || first.name
}
