/**
 * Many clients of shapes in one separate process: `node shape-clients.ts URL SECRET CLIENTS TENANTS`. Each
 * follows a tenth of the rows of its tenant with long polls. With 0 tenants, no client has a token, and each
 * follows a tenth of all rows. Reports to the parent process on request.
 */
import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { mintToken } from '../../src/identity/mint.ts'

/** The results for the parent process, since the last request for them. */
export interface Polled {
  /** For each change the milliseconds since its statement. */
  readonly delays: readonly number[]
  readonly requests: number
  /** Requests that were answered 429 or 503, and sent again. */
  readonly refused: number
  /** Requests that were sent again, because their connection had been closed before they arrived. */
  readonly sentAgain: number
  /** Requests that a shared cache could have answered, or joined to an equal one in progress. */
  readonly shareable: number
}

/** The replicas of all shapes: when each row was last changed, by its key. */
export type Replicas = readonly (readonly [id: number, at: number | null])[]

/** Number of shapes opened concurrently. */
const AT_ONCE = 50
const TOKEN_SECONDS = 3600
const RETRY_MS = 1_000
const ATTEMPTS_MAX = 60

/** The number of shapes into which the rows of a tenant are divided. */
const PARTS = 10

const [, , url = '', secret = '', shapes = '0', tenants = '1'] = process.argv
const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })
let delays: number[] = []
let requests = 0
let refused = 0
let sentAgain = 0
let shareable = 0
/** When the response to a request is no longer fresh in a shared cache; infinite while it is in progress. */
const freshUntil = new Map<string, number>()
const replica = new Map<number, number | null>()

interface Row {
  readonly id: string
  readonly at?: string | null
}

interface Answer {
  readonly headers: IncomingHttpHeaders
  readonly messages: readonly { readonly value?: Row; readonly headers: object }[]
}

/** Like the client of npm, tries again when the gateway has no connection for it, but not forever. */
async function ask(token: string | null, query: URLSearchParams): Promise<Answer> {
  for (let attempts = 1; ; attempts++) {
    const answer = await attempt(token, query)
    if (answer !== null) return answer
    if (attempts === ATTEMPTS_MAX) throw new Error(`/v1/shape?${query} was refused ${attempts} times`)
    refused += 1
    await delay(RETRY_MS)
  }
}

function attempt(token: string | null, query: URLSearchParams): Promise<Answer | null> {
  const path = `/v1/shape?${query}`
  requests += 1
  const key = `${token ?? ''} ${path}`
  const isFresh = (freshUntil.get(key) ?? 0) > performance.now()
  if (!isFresh) freshUntil.set(key, Number.POSITIVE_INFINITY)
  return new Promise((resolve, reject) => {
    const headers = token === null ? {} : { Authorization: `Bearer ${token}` }
    const sent = request(url + path, { agent, headers }, response => {
      const freshMs = sharedFreshMs(response.headers['cache-control'] ?? '')
      if (freshMs > 0 && isFresh) shareable += 1
      if (!isFresh) freshUntil.set(key, performance.now() + freshMs)
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.once('error', reject)
      response.once('end', () => {
        const body = Buffer.concat(chunks).toString()
        if (response.statusCode === 429 || response.statusCode === 503) resolve(null)
        else if (response.statusCode !== 200) reject(new Error(`${path} was answered ${response.statusCode}: ${body}`))
        else resolve({ headers: response.headers, messages: JSON.parse(body) })
      })
    })
    // As browsers do: a server can close an idle connection at the moment of a request. A new connection is
    // never reused.
    sent.once('error', (error: NodeJS.ErrnoException) => {
      if (!sent.reusedSocket || error.code !== 'ECONNRESET') return reject(error)
      sentAgain += 1
      resolve(attempt(token, query))
    })
    sent.end()
  })
}

/** How long a shared cache may serve a response (RFC 9111, 4.2.1). */
function sharedFreshMs(cacheControl: string): number {
  if (!/\bpublic\b/.test(cacheControl)) return 0
  const [, seconds = '0'] = /s-maxage=(\d+)/.exec(cacheControl) ?? /max-age=(\d+)/.exec(cacheControl) ?? []
  return Number(seconds) * 1_000
}

/** Resolves when the shape is up to date, and follows it from then on. */
async function follow(shape: number): Promise<void> {
  const owners = Math.max(1, Number(tenants))
  const claims = { tenantId: `tenant-${shape % owners}`, expiresInSeconds: TOKEN_SECONDS }
  const part = Math.floor(shape / owners) % PARTS
  const token = tenants === '0' ? null : await mintToken(secret, claims, Date.now())
  const query = new URLSearchParams({ table: 'prices', where: `(id / ${owners}) % ${PARTS} = ${part}`, offset: '-1' })
  const next = ({ headers, messages }: Answer): boolean => {
    for (const { value } of messages)
      if (value?.at !== undefined) replica.set(Number(value.id), value.at === null ? null : Number(value.at))
    query.set('handle', String(headers['electric-handle']))
    query.set('offset', String(headers['electric-offset']))
    if (headers['electric-cursor'] !== undefined) query.set('cursor', String(headers['electric-cursor']))
    return headers['electric-up-to-date'] !== undefined
  }
  while (!next(await ask(token, query)));
  query.set('live', 'true')
  void poll()

  async function poll(): Promise<never> {
    for (;;) {
      const answer = await ask(token, query)
      for (const { value } of answer.messages) if (value?.at !== undefined) delays.push(Date.now() - Number(value.at))
      next(answer)
    }
  }
}

for (let opened = 0; opened < Number(shapes); opened += AT_ONCE) {
  const count = Math.min(AT_ONCE, Number(shapes) - opened)
  await Promise.all(Array.from({ length: count }, (_, n) => follow(opened + n)))
}
process.send?.('ready')
process.on('message', message => {
  if (message === 'replicas?') {
    process.send?.([...replica] satisfies Replicas)
    return
  }
  const polled: Polled = { delays, requests, refused, sentAgain, shareable }
  process.send?.(polled)
  delays = []
  requests = 0
  refused = 0
  sentAgain = 0
  shareable = 0
})
// Without a parent process, no results are needed.
process.on('disconnect', () => process.exit())
