/** One POST to an endpoint (HTTP/1.1, kept alive), and what came of it. Redirects are answers like any other; nothing here follows one. */
import { type LookupAddress, type LookupAllOptions, lookup as systemLookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { Agent, buildConnector, request } from 'undici'
import { type AddressGuard, withoutBrackets } from './address-guard.ts'
import type { Clock } from './clock.ts'
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

/** All addresses of a name. */
export type Resolve = (
  hostname: string,
  options: LookupAllOptions,
  found: (error: Error | null, addresses: LookupAddress[]) => void,
) => void

export interface SenderParts {
  readonly guard: AddressGuard
  readonly clock: Clock
  /** Connections to one endpoint. */
  readonly connections: number
  readonly resolve?: Resolve
}

/** Of an answer; the rest is read no further than it takes to use the connection again. */
export const KEPT_BODY_BYTES = 16_384
const READ_BODY_BYTES_MAX = 131_072

const KEEP_ALIVE_MS = 10_000

/** The guard's refusal, recognised behind whatever wraps it. */
class AddressRefused extends Error {
  override readonly name = 'AddressRefused'
}

class TimedOut extends Error {
  override readonly name = 'TimedOut'
}

export function createSender({ guard, clock, connections, resolve = systemLookup }: SenderParts): Sender {
  const agent = new Agent({
    connect: guardedConnector(guard, resolve),
    ...{ connections, pipelining: 1, allowH2: false, maxRedirections: 0 },
    // One time limit, ours, for all of it.
    ...{ headersTimeout: 0, bodyTimeout: 0, keepAliveTimeout: KEEP_ALIVE_MS },
  })
  return {
    async send({ url, headers, body, timeoutMs }) {
      const abort = new AbortController()
      const cancel = clock.after(timeoutMs, () => abort.abort(new TimedOut(`no whole answer after ${timeoutMs} ms`)))
      try {
        const answer = await request(url, {
          ...{ method: 'POST', dispatcher: agent, body, signal: abort.signal },
          headers: { ...headers },
        })
        const retryAfter = answer.headers['retry-after']
        return {
          kind: 'answered',
          status: answer.statusCode,
          retryAfter: typeof retryAfter === 'string' ? retryAfter : null,
          body: await readSome(answer.body),
        }
      } catch (error) {
        return failure(error)
      } finally {
        cancel()
      }
    },
    close: () => agent.destroy(),
  }
}

/** The status has been answered: a body that breaks off or never ends changes nothing of it. */
async function readSome(body: AsyncIterable<Buffer>): Promise<string> {
  const kept: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of body) {
      if (bytes < KEPT_BODY_BYTES) kept.push(chunk.subarray(0, KEPT_BODY_BYTES - bytes))
      bytes += chunk.length
      // Leaving the loop destroys the body, and with it the connection.
      if (bytes > READ_BODY_BYTES_MAX) break
    }
  } catch {
    // What came until then is kept.
  }
  return Buffer.concat(kept).toString()
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

/**
 * Asks the guard at the last moment, about the very addresses that are connected to: a name that is resolved once for a check and once more for the
 * connection could have changed in between.
 */
function guardedConnector(guard: AddressGuard, resolve: Resolve): buildConnector.connector {
  const lookup: LookupFunction = (hostname, options, found) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return found(error, '')
      const refusals = addresses.map(({ address }) => guard.whyRefused(address))
      const allowed = addresses.filter((_, index) => refusals[index] === null)
      const [first] = allowed
      if (first === undefined) {
        const reason = refusals.find(refusal => refusal !== null) ?? 'it has no address'
        return found(new AddressRefused(`${hostname}: ${reason}`), '')
      }
      if (options.all === true) return found(null, allowed)
      return found(null, first.address, first.family)
    })
  }
  const connect = buildConnector({ lookup } as buildConnector.BuildOptions)
  return (options, connected) => {
    // An address is never looked up, so nobody would be asked.
    const host = withoutBrackets(options.hostname)
    const refused = isIP(host) === 0 ? null : guard.whyRefused(host)
    if (refused !== null) return connected(new AddressRefused(refused), null)
    return connect({ ...options, hostname: host }, connected)
  }
}
