/**
 * The tool server over HTTP (decision 0014): `POST /mcp` with one JSON-RPC message and one response
 * (Streamable HTTP of https://modelcontextprotocol.io/specification/2025-06-18/basic/transports, without
 * sessions and streams, which are not needed here).
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { watchConnections } from '../http/connections.ts'
import { createHosts } from '../http/hosts.ts'
import { createClientAddress } from '../limits/client-address.ts'
import { createRateLimit } from '../limits/rate.ts'
import { type Answerer, PROTOCOL_VERSIONS } from './answer.ts'
import { RPC, RPC_MESSAGE_BYTES_MAX, type RpcCode, RpcError, type RpcResponse, rpcError } from './rpc.ts'

/** The path of the tool server. */
export const PATH = '/mcp'

/** For each address; docs/guides/agents.md#rules-and-limits has it for clients. */
export const RATE_LIMIT = { burst: 120, rate: 2 } as const

/** Room for 131 072 addresses, in 2 MB; beyond that, the fullest of a few candidate buckets is removed. */
const RATE_SETS = 8_192

const HEADER_BYTES_MAX = 16 * 1024
/** Limit on the time to receive a whole request, including one that is too large and is discarded. */
const REQUEST_MS_MAX = 10_000
/** Interval at which Node checks for requests that have timed out. */
const REQUEST_CHECK_MS = 1_000
/** A connection on which the client neither sends nor reads anything for this long is closed. */
const IDLE_MS_MAX = 30_000
const KEEP_ALIVE_MS = 10_000
/** Connections above the limit are closed at once. */
const CONNECTIONS_MAX = 1_024
/** How long clients may take to read pending responses when the server closes. */
const DRAIN_MS_MAX = 5_000

/** The options of the tool server. */
export interface ToolServerOptions {
  readonly host: string
  /** 0 selects a free port. */
  readonly port: number
  /** Host names by which it is reached in addition to loopback and its address. */
  readonly allowedHosts: readonly string[]
  /** Addresses whose `X-Forwarded-For` is trusted. */
  readonly trustedProxies: readonly string[]
  readonly answerer: Answerer
  /** 0 switches it off. */
  readonly rateLimit: { readonly burst: number; readonly rate: number }
  /** Milliseconds, from any monotonic clock. */
  readonly now: () => number
  /** Any secret number of 32 bits. */
  readonly seed: number
  readonly connectionsMax?: number
  readonly requestMsMax?: number
  readonly idleMsMax?: number
}

/** A running tool server. */
export interface ToolServer {
  /** `http://127.0.0.1:8090/mcp` */
  readonly url: string
  close(): Promise<void>
}

/** Starts the tool server. */
export async function startToolServer(options: ToolServerOptions): Promise<ToolServer> {
  const { answerer, now, seed, requestMsMax = REQUEST_MS_MAX } = options
  const hosts = createHosts([options.host, ...options.allowedHosts])
  const addressOf = createClientAddress(options.trustedProxies)
  const rate = createRateLimit({ ...options.rateLimit, now, seed, sets: RATE_SETS })

  /** Checks everything that does not require the body, cheapest first; null if the request is accepted. */
  function refusalOf(request: IncomingMessage): Refusal | null {
    const { headers, socket } = request
    // Before the rate limit: a page in a browser must not use up the tokens of a program on the same machine.
    if (!hosts.isOurs(headers.host, headers.origin, socket.localAddress)) return FOREIGN
    const forwardedFor = headers['x-forwarded-for']
    if (rate?.take(addressOf(socket.remoteAddress, String(forwardedFor ?? ''))) === false) return TOO_MANY
    if (pathOf(request) !== PATH) return NOT_FOUND
    if (request.method !== 'POST') return NOT_ALLOWED
    if (!/^application\/json\s*(;|$)/i.test(headers['content-type'] ?? '')) return NOT_JSON
    const version = headers['mcp-protocol-version']
    if (version !== undefined && !PROTOCOL_VERSIONS.some(known => known === version)) return OTHER_VERSION
    return Number(headers['content-length'] ?? 0) > RPC_MESSAGE_BYTES_MAX ? TOO_LARGE : null
  }

  const server = createServer(
    {
      maxHeaderSize: HEADER_BYTES_MAX,
      requestTimeout: requestMsMax,
      headersTimeout: requestMsMax,
      connectionsCheckingInterval: Math.min(REQUEST_CHECK_MS, requestMsMax),
      keepAliveTimeout: KEEP_ALIVE_MS,
    },
    (request, response) => {
      const refusal = refusalOf(request)
      if (refusal !== null) {
        // Read and discarded, so that a client that is still sending receives the response.
        request.resume()
        refuse(response, refusal)
        return
      }
      readBody(request, body => {
        if (body === null) refuse(response, TOO_LARGE)
        else send(response, answerer.answer(body))
      })
    },
  )
  watchConnections(server)
  server.timeout = options.idleMsMax ?? IDLE_MS_MAX
  server.maxConnections = options.connectionsMax ?? CONNECTIONS_MAX
  server.listen(options.port, options.host)
  await once(server, 'listening')
  return { url: urlOf(server.address() as AddressInfo), close: () => closed(server) }
}

/** Calls back once, with null for a body that is too large; never calls back if the client disconnected. */
function readBody(request: IncomingMessage, done: (body: Buffer | null) => void): void {
  const chunks: Buffer[] = []
  let bytes = 0
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes <= RPC_MESSAGE_BYTES_MAX) chunks.push(chunk)
    else if (bytes - chunk.length <= RPC_MESSAGE_BYTES_MAX) done(null)
  })
  request.on('end', () => {
    const [only] = chunks
    if (bytes <= RPC_MESSAGE_BYTES_MAX) done(chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks))
  })
}

interface Refusal {
  readonly status: number
  readonly error: RpcError
  readonly headers?: Readonly<Record<string, string>>
}

function refusal(status: number, message: string, headers: Readonly<Record<string, string>> = {}): Refusal {
  return { status, headers, error: new RpcError(RPC.refused, message) }
}

const FOREIGN = refusal(
  403,
  'Host or Origin is not accepted; add the host name of this server to allowed_hosts in [mcp]',
)
const TOO_MANY = refusal(429, 'too many requests from this address; try again in a second', { 'Retry-After': '1' })
const NOT_FOUND = refusal(404, `there is nothing here; the tool server is at ${PATH}`)
const NOT_ALLOWED = refusal(405, 'messages are sent by POST; streams and sessions are not supported', { Allow: 'POST' })
const NOT_JSON = refusal(415, 'Content-Type: expected application/json')
const OTHER_VERSION = refusal(400, `MCP-Protocol-Version: expected ${PROTOCOL_VERSIONS.join(' or ')}`)
const TOO_LARGE = refusal(413, `a message has at most ${RPC_MESSAGE_BYTES_MAX} bytes`)

function refuse(response: ServerResponse, { status, error, headers }: Refusal): void {
  write(response, status, rpcError(error, null), headers)
}

/** Errors in a message are responses like any other; only an invalid message is an HTTP error too. */
const STATUS_OF: Readonly<Partial<Record<RpcCode, number>>> = {
  [RPC.parseError]: 400,
  [RPC.invalidRequest]: 400,
  [RPC.internalError]: 500,
}

function send(response: ServerResponse, answer: RpcResponse | null): void {
  if (answer === null) response.writeHead(202, HEADERS).end()
  else write(response, 'error' in answer ? (STATUS_OF[answer.error.code] ?? 200) : 200, answer)
}

const HEADERS = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' } as const

function write(response: ServerResponse, status: number, answer: RpcResponse, headers: object = {}): void {
  const body = JSON.stringify(answer)
  response
    .writeHead(status, {
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
      ...HEADERS,
      ...headers,
    })
    .end(body)
}

function pathOf({ url = '/' }: IncomingMessage): string {
  const mark = url.indexOf('?')
  return mark < 0 ? url : url.slice(0, mark)
}

function urlOf({ address, port, family }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}${PATH}`
}

async function closed(server: ReturnType<typeof createServer>): Promise<void> {
  const cutOff = setTimeout(() => server.closeAllConnections(), DRAIN_MS_MAX)
  // Closes idle connections now, and every other connection once its response is sent.
  server.close()
  await once(server, 'close')
  clearTimeout(cutOff)
}
