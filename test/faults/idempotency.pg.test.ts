/**
 * docs/reference/writing.md#idempotency-keys under faults: requests are repeated until they are acknowledged,
 * by gateways that are killed again and again. Each has its effect once, and all responses to it are equal.
 * `SVC_IDEMPOTENT_REQUESTS=10000` repeats more requests than the default.
 */
import { beforeAll, expect, test } from 'vitest'
import { clientFixture, databaseFixture, fixture, gatewayFixture } from '../support/fixtures.ts'
import { SECRET } from '../support/gateway.ts'
import { installed } from '../support/install.ts'
import { type Svc, startSvc } from '../support/process.ts'

const REQUESTS = Number(process.env.SVC_IDEMPOTENT_REQUESTS ?? 300)
const CLIENTS = 12
/** How often each request is sent at once. */
const DUPLICATES = 2
const KILLS = Math.max(4, Math.ceil(REQUESTS / 500))

const database = databaseFixture(`
  create table effects (id int generated always as identity primary key, request int not null, part int not null);
  create table counters (id int primary key, n int not null);
  insert into counters select n, 0 from generate_series(0, ${REQUESTS - 1}) n;
  create function record(of int) returns int language sql volatile as
    'insert into effects (request, part) values (of, 0) returning id';
  grant select, insert, update, delete on all tables in schema public to app;
`)
beforeAll(() => installed(database))
const admin = clientFixture(() => database.adminUrl)
/** Signs the tokens. */
const gateway = gatewayFixture(database)

interface Sent {
  readonly method: string
  readonly path: string
  readonly body: unknown
  /** How many rows of `effects` it inserts. */
  readonly rows: number
}

const KINDS: readonly ((request: number) => Sent)[] = [
  request => ({ method: 'POST', path: '/api/effects', body: { request, part: 0 }, rows: 1 }),
  request => ({ method: 'POST', path: '/api/rpc/record', body: { of: request }, rows: 1 }),
  request => ({ method: 'PATCH', path: `/api/counters/${request}`, body: { n: { $inc: 1 } }, rows: 0 }),
  request => ({
    ...{ method: 'POST', path: '/api/_batch', rows: 2 },
    body: {
      operations: [
        { method: 'POST', path: '/api/effects', body: { request, part: 0 } },
        { method: 'POST', path: '/api/effects', body: { request: '$0.data.request', part: 1 } },
        { method: 'PATCH', path: `/api/counters/${request}`, body: { n: { $inc: 1 } } },
      ],
    },
  }),
]

const sentAs = (request: number): Sent => (KINDS[request % KINDS.length] as (typeof KINDS)[number])(request)

/** Two gateways that can be killed; a killed one is started again. */
class Gateways {
  readonly #running: { svc: Svc; url: string }[] = []

  async open(): Promise<this> {
    for (let n = 0; n < 2; n++) this.#running.push(await this.#start())
    return this
  }

  url(n: number): string {
    return this.#running[n % this.#running.length]?.url ?? ''
  }

  async kill(n: number): Promise<void> {
    const at = n % this.#running.length
    const { svc } = this.#running[at] as { svc: Svc }
    svc.child.kill('SIGKILL')
    await svc.exited
    this.#running[at] = await this.#start()
  }

  async close(): Promise<void> {
    for (const { svc } of this.#running) svc.child.kill('SIGKILL')
    await Promise.all(this.#running.map(({ svc }) => svc.exited))
  }

  async #start(): Promise<{ svc: Svc; url: string }> {
    const svc = startSvc(['serve'], { DATABASE_URL: database.url, JWT_SECRET: SECRET, SVC_BIND: '127.0.0.1:0' })
    return { svc, url: await svc.says(/(http:\/\/127\.0\.0\.1:\d+)/) }
  }
}

const gateways = fixture(() => new Gateways().open())

test('a request that is repeated while gateways are killed takes effect once', {
  timeout: Math.max(600_000, 240 * REQUESTS),
}, async () => {
  const authorization = `Bearer ${await gateway.token({ tenantId: 't1' })}`
  /** The acknowledged responses of each request. */
  const history = Array.from({ length: REQUESTS }, (): string[] => [])
  const refused: string[] = []
  let acknowledged = 0
  let replayed = 0
  let kills = 0
  let killing: Promise<void> = Promise.resolve()
  const acknowledge = () => {
    acknowledged += 1
    if (kills >= KILLS || acknowledged < ((kills + 1) * REQUESTS * DUPLICATES) / (KILLS + 1)) return
    const n = kills++
    killing = killing.then(() => gateways.kill(n))
  }

  /** Sends until there is an answer other than that it is unknown, or running elsewhere. */
  const repeat = async (request: number, first: number): Promise<void> => {
    const { method, path, body } = sentAs(request)
    for (let attempt = first; ; attempt++) {
      const reply = await fetch(`${gateways.url(attempt)}${path}`, {
        method,
        headers: { authorization, 'Content-Type': 'application/json', 'Idempotency-Key': `"request-${request}"` },
        body: JSON.stringify(body),
      }).catch(() => null)
      const text = await reply?.text().catch(() => null)
      // Without a complete response the outcome is unknown.
      if (reply === null || text == null || [409, 429, 503].includes(reply.status)) {
        await new Promise(resolve => setTimeout(resolve, 5))
        continue
      }
      if (reply.status >= 300) refused.push(`${reply.status} ${text}`)
      if (reply.headers.get('idempotency-replayed') === 'true') replayed += 1
      history[request]?.push(text)
      acknowledge()
      return
    }
  }

  let next = 0
  const client = async (): Promise<void> => {
    for (;;) {
      const request = next++
      if (request >= REQUESTS) return
      await Promise.all(Array.from({ length: DUPLICATES }, (_, n) => repeat(request, request + n)))
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
  await killing

  expect(kills).toBe(KILLS)
  expect(refused).toEqual([])
  expect(history.filter(answers => answers.length !== DUPLICATES || new Set(answers).size !== 1)).toEqual([])
  expect(replayed).toBeGreaterThan(0)
  const { rows: effects } = await admin.query(
    `select n as request, (select count(*)::int from effects where request = n) as rows,
      (select c.n from counters c where c.id = g.n) as count from generate_series(0, ${REQUESTS - 1}) g(n) order by 1`,
  )
  const expected = Array.from({ length: REQUESTS }, (_, request) => {
    const { rows } = sentAs(request)
    return { request, rows, count: rows === 1 ? 0 : 1 }
  })
  expect(effects).toEqual(expected)
  const { rows: kept } = await admin.query('select count(*)::int from svc.idempotency_key')
  expect(kept).toEqual([{ count: REQUESTS }])
})
