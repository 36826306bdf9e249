/**
 * docs/reference/realtime.md#delivered-changes for captured tables. Whatever other clients write, whatever
 * fails, and wherever a client reconnects, in the end every copy equals the result of its own SELECT, and no
 * message contained a row that its SELECT could not have returned. A printed seed reproduces the random
 * choices.
 */
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { SECRET } from '../support/gateway.ts'
import { installed } from '../support/install.ts'
import { execute, privateServer } from '../support/postgres.ts'
import { killSvc, type Svc, startSvc } from '../support/process.ts'
import type { Message } from '../support/socket.ts'
import { FILTERS, type Filter, meets, randomOf, THINGS, WORDS } from './model.ts'
import { assertCopies, openReplica, type Replica, type ReplicaOptions } from './replica.ts'

const SEED = Number(process.env.SVC_SEED ?? Math.floor(Math.random() * 2 ** 31))
const TENANTS = ['red', 'green', 'blue'] as const
const ROUNDS = 240
const LOOK_EVERY = 12
const ROWS = 60
/** Keys of rows that are written by the thousand. */
const MANY = 100_000
const WRITERS = 4

let other: Svc
const server = databaseFixture(
  privateServer,
  `${THINGS}
   create policy own on things using (tenant = (select current_setting('app.current_tenant_id', true)));
   grant select on things to app;`,
)

beforeAll(() => installed(server))
const gateway = gatewayFixture(server, { toml: 'acquire_timeout_ms = 500' })

beforeAll(async () => {
  other = startOther()
})

afterAll(async () => {
  killSvc()
})

/** A gateway that can be killed like a process. */
function startOther(): Svc {
  return startSvc(['serve'], { DATABASE_URL: server.url, JWT_SECRET: SECRET, SVC_BIND: '127.0.0.1:0' })
}

async function otherGateway(): Promise<ReplicaOptions['gateway']> {
  const url = await other.says(/"url":"(http:[^"]+)"/)
  return { url, token: gateway.token, get: gateway.get }
}

test(`every copy equals the result of a SELECT (SVC_SEED=${SEED})`, { timeout: 240_000 }, async () => {
  const random = randomOf(SEED)
  const one = <T>(list: readonly T[]): T => list[random(list.length)] as T
  /** The tenants that a row has ever belonged to. */
  const owners = new Map<number, Set<string>>()
  const leaks: string[] = []
  const counts = new Map<string, number>()
  const count = (what: string) => counts.set(what, (counts.get(what) ?? 0) + 1)

  function own(id: number, tenant: string): number {
    owners.set(id, (owners.get(id) ?? new Set()).add(tenant))
    return id
  }

  function watch(tenantId: string, filter: Filter) {
    return (message: Message) => {
      if (message.type !== 'notification') return count(message.type)
      count(message.operation)
      const isOwn = message.new === null ? owners.get(message.key.id)?.has(tenantId) : message.new.tenant === tenantId
      if (isOwn !== true) leaks.push(`${tenantId}: ${JSON.stringify(message)}`)
      if (message.new !== null && !meets(message.new, filter)) leaks.push(`${filter}: ${JSON.stringify(message)}`)
    }
  }

  const anywhere = async () => (random(3) === 0 ? otherGateway() : gateway)

  async function openOne(): Promise<Replica> {
    const [tenantId, filter] = [one(TENANTS), one(FILTERS)]
    return openReplica({
      gateway: await anywhere(),
      tenantId,
      filter,
      table: 'things',
      onMessage: watch(tenantId, filter),
    })
  }

  const replicas: Replica[] = []
  for (let n = 0; n < 12; n++) replicas.push(await openOne())

  // ---- writers ----

  async function connect(): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: server.adminUrl })
    client.on('error', () => {})
    await client.connect()
    // No step waits for a transaction that stays open over several rounds.
    await client.query(`set lock_timeout = '20ms'`)
    return client
  }

  /** Each writer has its own transaction, which can stay open while others commit. */
  const writers = await Promise.all(Array.from({ length: WRITERS }, connect))
  const inTransaction = new Set<number>()

  async function write(index: number): Promise<void> {
    const client = writers[index] as pg.Client
    try {
      if (!inTransaction.has(index) && random(3) === 0) {
        await client.query('begin')
        inTransaction.add(index)
      }
      await client.query(statement(index))
      if (inTransaction.has(index) && random(4) === 0) {
        await client.query('savepoint s')
        await client.query(statement(index))
        await client.query(random(2) === 0 ? 'rollback to s' : 'release s')
      }
      if (inTransaction.has(index) && random(4) === 0) {
        inTransaction.delete(index)
        await client.query(random(4) === 0 ? 'rollback' : 'commit')
      }
      count('written')
    } catch {
      // The row is locked or exists already, or the server is stopped: the transaction is rolled back.
      inTransaction.delete(index)
      await client.query('rollback').catch(async () => {
        await client.end().catch(() => {})
        writers[index] = await connect()
      })
    }
  }

  function statement(writer: number): string {
    const tenant = one(TENANTS)
    const [id, n] = [random(ROWS), random(100)]
    switch (random(14)) {
      case 0:
      case 1:
      case 2:
        return `insert into things values (${own(id, tenant)}, '${tenant}', '${one(WORDS)}', ${n})
          on conflict do nothing`
      case 3:
        return `insert into things select n, '${tenant}', '${one(WORDS)}', ${n}
          from unnest(array[${[0, 1, 2].map(() => own(random(ROWS), tenant))}]) n
          on conflict (id) do update set word = excluded.word, tenant = excluded.tenant`
      case 4:
      case 5:
        return `update things set word = '${one(WORDS)}', n = ${n} where id = ${id}`
      case 6:
        return `update things set n = (n + 7) % 100 where word = '${one(WORDS)}'`
      case 7:
        return `delete from things where id = ${id}`
      case 8:
        return `delete from things where n < ${random(8)}`
      case 9:
        return `update things set tenant = '${tenant}' where id = ${own(id, tenant)}`
      case 10: {
        const to = random(ROWS)
        for (const each of TENANTS) own(to, each)
        return `update things set id = ${to} where id = ${id}`
      }
      case 11:
        return `insert into things values (${own(id, tenant)}, '${tenant}', 'a', 5000)`
      case 12:
        // The write-ahead log has no statements: some of these rows are logged one by one.
        for (let n = 1; n <= 1001; n++) own(MANY + n, tenant)
        return random(3) > 0
          ? `delete from things where id >= ${MANY}`
          : `insert into things select ${MANY} + n, '${tenant}', 'd', 999 from generate_series(1, 1001) n
            on conflict do nothing`
      default:
        // It blocks all readers as long as its transaction is open.
        return random(6) > 0 || inTransaction.has(writer) ? `select 1` : `truncate things`
    }
  }

  // ---- failures ----

  async function disturb(round: number): Promise<void> {
    if (round === 80 || round === 160) {
      // All of it at once: its clients, the gateway, and the events that it had not delivered.
      other.child.kill('SIGKILL')
      other = startOther()
      for (const replica of replicas) await replica.move(await anywhere())
      count('killed')
    } else if (round === 120) {
      await server.restart()
      count('restarted')
    }
    switch (random(12)) {
      case 0:
        await execute(server.adminUrl, `select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app'`)
        break
      case 1:
      case 2:
        await one(replicas).move(await anywhere())
        break
      case 3: {
        const index = random(replicas.length)
        await replicas[index]?.close()
        replicas[index] = await openOne()
        break
      }
      case 4:
        await one(replicas).resume()
        break
      case 5:
        if (random(2) === 0) break
        await one(replicas).expire(random(2) === 0 ? 'renew' : 'come back')
        count('expired')
        break
      case 6:
        if (random(4) === 0)
          await execute(server.adminUrl, 'update svc.installation set forgotten = pg_current_xact_id()')
    }
  }

  for (let round = 0; round < ROUNDS; round++) {
    if (round % LOOK_EVERY === 0) await assertCopies(replicas)
    await Promise.all(writers.map((_, index) => write(index)))
    await disturb(round)
  }

  for (const client of writers) await client.end()
  await assertCopies(replicas)
  expect(leaks).toEqual([])
  // The test did exercise changes.
  for (const kind of ['INSERT', 'UPDATE', 'DELETE', 'resync', 'written', 'killed', 'restarted', 'expired'])
    expect([kind, counts.get(kind) ?? 0]).not.toEqual([kind, 0])
  for (const replica of replicas) await replica.close()
})
