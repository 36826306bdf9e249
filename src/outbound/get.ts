/** A GET of a small document, bounded in time, size and redirects. */
import { lookup as systemLookup } from 'node:dns'
import { Client } from 'undici'
import type { AddressGuard } from './address-guard.ts'
import { guardedConnector, type ResolveName } from './connector.ts'

/** A GET request and its limits. */
export interface GetRequest {
  readonly url: URL
  readonly accept: string
  readonly userAgent: string
  /** From the first connection to the end of the last answer. */
  readonly timeoutMs: number
  readonly redirectsMax: number
  readonly bodyBytesMax: number
  /**
   * The address guard for a URL, called for the first URL and for each redirect. Throws if the URL must not
   * be requested at all.
   */
  readonly guardOf: (url: URL) => Pick<AddressGuard, 'refusalReason'>
  readonly resolve?: ResolveName
}

/** The response to a GET request. */
export interface GetAnswer {
  readonly cacheControl: string
  readonly body: Buffer
}

/** Why the document could not be fetched; the message contains the URL. */
export class GetError extends Error {
  override readonly name = 'GetError'
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** Fetches a document. Returns responses with status 200 only; rejects with `GetError` otherwise. */
export async function fetchDocument(request: GetRequest): Promise<GetAnswer> {
  const signal = AbortSignal.timeout(request.timeoutMs)
  let { url } = request
  for (let redirects = 0; ; redirects += 1) {
    const answer = await ask(url, request, signal)
    if ('body' in answer) return answer
    if (redirects === request.redirectsMax) {
      throw new GetError(`${request.url.href}: more than ${request.redirectsMax} redirects`)
    }
    if (!URL.canParse(answer.location, url.href)) throw new GetError(`${url.href}: redirects to an invalid URL`)
    url = new URL(answer.location, url.href)
  }
}

type Answer = GetAnswer | { readonly location: string }

async function ask(url: URL, request: GetRequest, signal: AbortSignal): Promise<Answer> {
  const { resolve = systemLookup } = request
  const connect = guardedConnector(request.guardOf(url), resolve)
  const client = new Client(url.origin, { connect, allowH2: false, headersTimeout: 0, bodyTimeout: 0 })
  try {
    // The signal does not end a DNS look-up.
    return await Promise.race([read(client, url, request, signal), aborted(signal)])
  } catch (error) {
    if (error instanceof GetError) throw error
    throw new GetError(
      `${url.href}: ${signal.aborted ? `no complete response after ${request.timeoutMs} ms` : reasonOf(error)}`,
    )
  } finally {
    // Not awaited: a DNS look-up that does not end would delay it too.
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
  if (statusCode !== 200) throw new GetError(`${url.href}: the response has status ${statusCode}; expected 200`)
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
    if (bytes > bytesMax) throw new GetError(`${url.href}: the response has more than ${bytesMax} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** When a connection to several addresses fails, the aggregate error has an empty message. */
function reasonOf(error: unknown): string {
  const first = error instanceof AggregateError ? error.errors[0] : error
  if (!(first instanceof Error)) return String(first)
  return first.message || (first as NodeJS.ErrnoException).code || first.name
}
