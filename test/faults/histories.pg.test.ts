/**
 * docs/reference/batches.md and docs/reference/writing.md#idempotency-keys: histories of writes while the
 * gateway and PostgreSQL are killed. Every write is acknowledged, refused or unknown to its client. An
 * acknowledged one has its whole effect once, a refused one has none, and one with an unknown outcome has all
 * of its effect or none. With an idempotency key, a write is repeated until its outcome is known.
 * `SVC_HISTORY_WRITES=10000` runs a longer history than the default.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { mintToken } from '../../src/identity/mint.ts'
import { databaseFixture, fixture } from '../support/fixtures.ts'
import { SECRET } from '../support/gateway.ts'
import { installed } from '../support/install.ts'
import { execute, privateServer } from '../support/postgres.ts'
import { type Svc, startSvc } from '../support/process.ts'

const WRITES = Number(process.env.SVC_HISTORY_WRITES ?? 320)
const CLIENTS = 8
/** Kills of the gateway and of PostgreSQL, in turn. */
const KILLS = Math.max(4, Math.ceil(WRITES / 500))
const ACCOUNTS = 8
const BALANCE = 1_000_000

const SCHEMA = `
create table effects (write int not null, part int not null check (part < 3), unique (write, part));
create table counters (write int primary key, n int not null default 0);
insert into counters select generate_series(0, ${WRITES - 1});
create table accounts (id int primary key, balance int not null);
insert into accounts select n, ${BALANCE} from generate_series(1, ${ACCOUNTS}) n;
grant select, insert, update, delete on all tables in schema public to app;
`

interface Kind {
  readonly method?: string
  readonly path?: string
  readonly body: (write: number) => unknown
  /** The rows of `effects` and the count of an acknowledged write. */
  readonly parts: number
  readonly count: number
  readonly keyed?: boolean
  /** A constraint refuses its last operation. */
  readonly fails?: boolean
  readonly transfers?: boolean
}

const effect = (write: number, part: number) => ({ method: 'POST', path: '/api/effects', body: { write, part } })
const increment = (write: number) => ({ method: 'PATCH', path: `/api/counters/${write}`, body: { n: { $inc: 1 } } })
const batch = (operations: (write: number) => readonly unknown[], more: object = {}) => ({
  path: '/api/_batch',
  body: (write: number) => ({ operations: operations(write), ...more }),
})
const accountsOf = (write: number) => ({ from: (write % ACCOUNTS) + 1, to: ((write * 3 + 1) % ACCOUNTS) + 1 })
const transfer = (write: number) => {
  const { from, to } = accountsOf(write)
  return [
    { method: 'PATCH', path: `/api/accounts/${from}`, body: { balance: { $inc: -(write + 1) } } },
    { method: 'PATCH', path: `/api/accounts/${to}`, body: { balance: { $inc: write + 1 } } },
    increment(write),
  ]
}

const KINDS: readonly Kind[] = [
  {
    ...batch(write => [
      effect(write, 0),
      { ...effect(write, 1), body: { write: '$0.data.write', part: 1 } },
      increment(write),
    ]),
    ...{ parts: 2, count: 1 },
  },
  { ...batch(write => [effect(write, 0), increment(write), effect(write, 3)]), parts: 0, count: 0, fails: true },
  { ...batch(transfer, { isolation: 'serializable' }), parts: 0, count: 1, transfers: true },
  {
    path: '/api/effects',
    body: write => [
      { write, part: 0 },
      { write, part: 1 },
    ],
    parts: 2,
    count: 0,
  },
  { ...batch(write => [effect(write, 0), increment(write)]), parts: 1, count: 1, keyed: true },
  { ...batch(transfer, { isolation: 'serializable' }), parts: 0, count: 1, transfers: true, keyed: true },
  { path: '/api/effects', body: write => ({ write, part: 0 }), parts: 1, count: 0, keyed: true },
  { method: 'PATCH', path: '/api/counters/', body: () => ({ n: { $inc: 1 } }), parts: 0, count: 1, keyed: true },
]

const kindOf = (write: number): Kind => KINDS[write % KINDS.length] as Kind

type Outcome = 'acknowledged' | 'refused' | 'unknown'

const database = databaseFixture(async () => {
  const server = await privateServer()
  await execute(server.adminUrl, SCHEMA)
  await installed(server)
  return server
})

class RestartedGateway {
  #svc: Svc | null = null
  url = ''

  async open(): Promise<this> {
    const bind = this.url === '' ? '127.0.0.1:0' : new URL(this.url).host
    const svc = startSvc(['serve'], { DATABASE_URL: database.url, JWT_SECRET: SECRET, SVC_BIND: bind })
    this.#svc = svc
    this.url = await svc.says(/(http:\/\/127\.0\.0\.1:\d+)/)
    return this
  }

  async close(): Promise<void> {
    this.#svc?.child.kill('SIGKILL')
    await this.#svc?.exited
  }

  async kill(): Promise<void> {
    await this.close()
    await this.open()
  }
}

const gateway = fixture(() => new RestartedGateway().open())

test('every write is done once, not at all, or not acknowledged', { timeout: 1_200_000 }, async () => {
  const token = await mintToken(SECRET, { expiresInSeconds: 3_600, tenantId: 't1' }, Date.now())
  const history: Outcome[] = Array.from({ length: WRITES }, () => 'unknown')
  const surprises: string[] = []
  let known = 0
  let kills = 0
  let killing: Promise<void> = Promise.resolve()

  const learn = () => {
    known += 1
    if (kills >= KILLS || known < ((kills + 1) * WRITES * 0.6) / (KILLS + 1)) return
    const ofGateway = kills++ % 2 === 0
    killing = killing.then(async () => {
      if (ofGateway) return gateway.kill()
      await database.kill()
      await database.start()
    })
  }

  /** One attempt. A response that is not complete, or that says so, leaves the outcome unknown. */
  const send = async (write: number, { method = 'POST', path = '', body, keyed }: Kind): Promise<Outcome> => {
    const reply = await fetch(`${gateway.url}${path.endsWith('/') ? path + write : path}`, {
      method,
      headers: {
        Authorization: `Bearer ${token}`,
        'Content-Type': 'application/json',
        ...(keyed ? { 'Idempotency-Key': `write-${write}` } : {}),
      },
      body: JSON.stringify(body(write)),
    }).catch(() => null)
    const text = await reply?.text().catch(() => null)
    if (reply === null || text == null) return 'unknown'
    if (reply.status < 300) return 'acknowledged'
    // Also a refusal before the database was asked, or after a conflict, is repeated with a key.
    if (reply.status === 503) return JSON.parse(text).error.hint === undefined && !keyed ? 'refused' : 'unknown'
    if (reply.status === 409 && keyed && text.includes('IDEMPOTENCY_KEY_IN_USE')) return 'unknown'
    if (reply.status !== 400) surprises.push(`${write}: ${reply.status} ${text}`)
    return 'refused'
  }

  const write = async (number: number): Promise<void> => {
    const kind = kindOf(number)
    for (;;) {
      const outcome = await send(number, kind)
      if (outcome === 'unknown' && kind.keyed) {
        await pause(10)
        continue
      }
      history[number] = outcome
      learn()
      // Writes must not be used up while the gateway starts.
      if (outcome === 'unknown') await killing
      return
    }
  }

  let next = 0
  const client = async (): Promise<void> => {
    while (next < WRITES) await write(next++)
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
  await killing

  expect(surprises).toEqual([])
  expect(kills).toBe(KILLS)
  const counted = await execute(
    database.adminUrl,
    `select c.write, c.n as count, (select count(*)::int from effects e where e.write = c.write) as parts
      from counters c order by c.write`,
  )
  const found = counted.map(row => ({ write: Number(row.write), parts: Number(row.parts), count: Number(row.count) }))
  const wrong = found.filter(({ write, parts, count }) => {
    const kind = kindOf(write)
    const isDone = !kind.fails && parts === kind.parts && count === kind.count
    const isUndone = parts === 0 && count === 0
    const outcome = history[write]
    return outcome === 'acknowledged' ? !isDone : outcome === 'refused' ? !isUndone : !isDone && !isUndone
  })
  expect(wrong.map(one => ({ ...one, outcome: history[one.write] }))).toEqual([])

  const unkeyed = found.filter(({ write }) => kindOf(write).keyed !== true)
  const keyed = found.filter(({ write }) => kindOf(write).keyed === true)
  expect(keyed.filter(({ write }) => history[write] !== 'acknowledged')).toEqual([])
  expect(unkeyed.filter(({ write }) => history[write] === 'acknowledged').length).toBeGreaterThan(WRITES / 8)

  const balances = Array.from({ length: ACCOUNTS }, () => BALANCE)
  for (const { write, count } of found) {
    if (kindOf(write).transfers !== true) continue
    const { from, to } = accountsOf(write)
    balances[from - 1] = (balances[from - 1] ?? 0) - count * (write + 1)
    balances[to - 1] = (balances[to - 1] ?? 0) + count * (write + 1)
  }
  const stored = await execute(database.adminUrl, 'select balance from accounts order by id')
  expect(stored.map(({ balance }) => balance)).toEqual(balances)
})
