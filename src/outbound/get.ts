/** A GET of a small document, bounded in time, size and redirects. */
import { lookup as systemLookup } from 'node:dns'
import { Client } from 'undici'
import type { AddressGuard } from './address-guard.ts'
import { guardedConnector, type ResolveName } from './connector.ts'

export interface GetRequest {
  readonly url: URL
  readonly accept: string
  readonly userAgent: string
  /** From the first connection to the end of the last answer. */
  readonly timeoutMs: number
  readonly redirectsMax: number
  readonly bodyBytesMax: number
  /** Which addresses this URL may lead to; asked of the first URL and of each redirect. Throws for a URL that is not to be asked at all. */
  readonly guardOf: (url: URL) => Pick<AddressGuard, 'refusalReason'>
  readonly resolve?: ResolveName
}

export interface GetAnswer {
  readonly cacheControl: string
  readonly body: Buffer
}

/** Why there is no document; the message says what was asked for. */
export class GetError extends Error {
  override readonly name = 'GetError'
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** Answers what came with status 200; rejects with `GetError` for everything else. */
export async function get(request: GetRequest): Promise<GetAnswer> {
  const signal = AbortSignal.timeout(request.timeoutMs)
  let { url } = request
  for (let redirects = 0; ; redirects += 1) {
    const answer = await ask(url, request, signal)
    if ('body' in answer) return answer
    if (redirects === request.redirectsMax) {
      throw new GetError(`${request.url.href}: more than ${request.redirectsMax} redirects`)
    }
    if (!URL.canParse(answer.location, url.href)) throw new GetError(`${url.href}: redirects to what is no URL`)
    url = new URL(answer.location, url.href)
  }
}

type Answer = GetAnswer | { readonly location: string }

async function ask(url: URL, request: GetRequest, signal: AbortSignal): Promise<Answer> {
  const { resolve = systemLookup } = request
  const connect = guardedConnector(request.guardOf(url), resolve)
  const client = new Client(url.origin, { connect, allowH2: false, headersTimeout: 0, bodyTimeout: 0 })
  try {
    // The signal does not end the lookup of a name.
    return await Promise.race([read(client, url, request, signal), aborted(signal)])
  } catch (error) {
    if (error instanceof GetError) throw error
    throw new GetError(
      `${url.href}: ${signal.aborted ? `no whole answer after ${request.timeoutMs} ms` : reasonOf(error)}`,
    )
  } finally {
    // Not awaited: a lookup that does not end would delay it too.
    client.destroy().catch(() => {})
  }
}

async function read(client: Client, url: URL, request: GetRequest, signal: AbortSignal): Promise<Answer> {
  const { accept, userAgent, bodyBytesMax } = request
  const { statusCode, headers, body } = await client.request({
    ...{ method: 'GET', path: `${url.pathname}${url.search}`, signal },
    headers: { accept, 'user-agent': userAgent, 'accept-encoding': 'identity' },
  })
  const { location } = headers
  if (REDIRECTS.has(statusCode) && typeof location === 'string') return { location }
  if (statusCode !== 200) throw new GetError(`${url.href}: it answers ${statusCode}; expected 200`)
  const cacheControl = headers['cache-control'] ?? ''
  return {
    cacheControl: Array.isArray(cacheControl) ? cacheControl.join(', ') : cacheControl,
    body: await readAll(body, url, bodyBytesMax),
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

async function readAll(body: AsyncIterable<Buffer>, url: URL, bytesMax: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > bytesMax) throw new GetError(`${url.href}: it answers more than ${bytesMax} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** Several addresses that all failed are one error without a message of its own. */
function reasonOf(error: unknown): string {
  const first = error instanceof AggregateError ? error.errors[0] : error
  if (!(first instanceof Error)) return String(first)
  return first.message || (first as NodeJS.ErrnoException).code || first.name
}
