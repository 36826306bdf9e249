/**
 * docs/guides/shapes.md: whatever others write, whatever fails, and whichever gateway answers a request, in
 * the end every shape that the client of npm replicates equals the result of its own SELECT, and no message
 * contained a row that its SELECT could not have returned. A printed seed reproduces the random choices.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isChangeMessage, Shape, ShapeStream } from '@electric-sql/client'
import pg from 'pg'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { SECRET } from '../support/gateway.ts'
import { installed } from '../support/install.ts'
import { privateServer } from '../support/postgres.ts'
import { killSvc, type Svc, startSvc } from '../support/process.ts'
import { randomOf, THINGS, WORDS } from './model.ts'

const SEED = Number(process.env.SVC_SEED ?? Math.floor(Math.random() * 2 ** 31))
const TENANTS = ['red', 'green', 'blue'] as const
const ROUNDS = 90
const ROWS = 40
const WRITERS = 3

/** Conditions of shapes, and what they mean for a row. */
const CONDITIONS = [
  { where: '', meets: () => true },
  { where: 'n > 50', meets: ({ n }: Thing) => n > 50 },
  { where: `word in ('a', 'b') or n < 10`, meets: ({ n, word }: Thing) => word === 'a' || word === 'b' || n < 10 },
] as const

interface Thing {
  readonly [column: string]: string | number
  readonly id: number
  readonly tenant: string
  readonly word: string
  readonly n: number
}

const server = databaseFixture(
  privateServer,
  `${THINGS}
   create policy own on things using (tenant = (select current_setting('app.current_tenant_id', true)));
   grant select on things to app;`,
)

beforeAll(() => installed(server))

const SHAPES = '[shapes]\nenabled = true\nlong_poll_ms = 1000'
const gateway = gatewayFixture(server, { toml: `acquire_timeout_ms = 500\n\n${SHAPES}` })
/** A gateway that can be killed like a process. It always has the same address. */
let other: Svc
let otherPort = 0
let folder = ''

beforeAll(async () => {
  otherPort = await freePort()
  folder = await mkdtemp(join(tmpdir(), 'svc-shapes-'))
  await writeFile(join(folder, 'svc.toml'), SHAPES)
  other = startOther()
})
afterAll(async () => {
  killSvc()
  await rm(folder, { recursive: true })
})

function startOther(): Svc {
  return startSvc(['serve', '--config', join(folder, 'svc.toml')], {
    DATABASE_URL: server.url,
    JWT_SECRET: SECRET,
    SVC_BIND: `127.0.0.1:${otherPort}`,
  })
}

function print(rows: readonly Thing[]): string {
  return rows.map(({ id, tenant, word, n }) => [id, tenant, word, n].join(' ')).join(', ')
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await new Promise(resolve => probe.once('listening', resolve))
  const address = probe.address()
  await new Promise(resolve => probe.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}

test(`every shape equals the result of a SELECT (SVC_SEED=${SEED})`, { timeout: 120_000 }, async () => {
  const random = randomOf(SEED)
  const one = <T>(list: readonly T[]): T => list[random(list.length)] as T
  /** The tenants that a row has ever belonged to. */
  const owners = new Map<number, Set<string>>()
  const leaks: string[] = []
  const counts = new Map<string, number>()
  const count = (what: string) => counts.set(what, (counts.get(what) ?? 0) + 1)
  const aborter = new AbortController()

  function own(id: number, tenant: string): number {
    owners.set(id, (owners.get(id) ?? new Set()).add(tenant))
    return id
  }

  /** Each request goes to one of the gateways. */
  const anywhere: typeof fetch = async (input, init) => {
    const url = new URL(String(input))
    if (random(2) === 0) url.port = String(otherPort)
    const response = await fetch(url, init)
    count(String(response.status))
    return response
  }

  async function open(tenantId: string, { where, meets }: (typeof CONDITIONS)[number], liveSse: boolean) {
    const token = await gateway.token({ tenantId })
    const stream = new ShapeStream<Thing>({
      url: `${gateway.url}/v1/shape`,
      headers: { Authorization: `Bearer ${token}` },
      params: { table: 'things', replica: 'full', ...(where === '' ? {} : { where }) },
      backoffOptions: { initialDelay: 20, maxDelay: 300, multiplier: 2 },
      ...{ liveSse, fetchClient: anywhere, signal: aborter.signal },
      // The client does not retry a response that ended early unless it is asked to.
      onError: error => {
        if (error.message === 'terminated') return {}
        leaks.push(`${tenantId}: ${String(error)}`)
      },
    })
    stream.subscribe(messages => {
      for (const message of messages.filter(isChangeMessage)) {
        const { headers, value } = message
        count(headers.operation)
        const isOwn =
          headers.operation === 'delete'
            ? owners.get(value.id)?.has(tenantId)
            : value.tenant === tenantId && meets(value)
        if (isOwn !== true) leaks.push(`${tenantId} ${where}: ${JSON.stringify(message)}`)
      }
    })
    return { shape: new Shape<Thing>(stream as never), tenantId, where }
  }

  const copies = await Promise.all(
    TENANTS.flatMap(tenant => CONDITIONS.map((condition, index) => open(tenant, condition, index % 3 === 2))),
  )

  // ---- writers ----

  async function connect(): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: server.adminUrl })
    client.on('error', () => {})
    await client.connect()
    // No step waits for a transaction that stays open over several rounds.
    await client.query(`set lock_timeout = '20ms'`)
    return client
  }

  const writers = await Promise.all(Array.from({ length: WRITERS }, connect))
  const inTransaction = new Set<number>()

  async function write(index: number): Promise<void> {
    const client = writers[index] as pg.Client
    try {
      if (!inTransaction.has(index) && random(3) === 0) {
        await client.query('begin')
        inTransaction.add(index)
      }
      await client.query(statement())
      if (inTransaction.has(index) && random(3) === 0) {
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

  function statement(): string {
    const tenant = one(TENANTS)
    const [id, n] = [random(ROWS), random(100)]
    switch (random(10)) {
      case 0:
      case 1:
      case 2:
        return `insert into things values (${own(id, tenant)}, '${tenant}', '${one(WORDS)}', ${n})
          on conflict do nothing`
      case 3:
      case 4:
        return `update things set word = '${one(WORDS)}', n = ${n} where id = ${id}`
      case 5:
        return `update things set n = (n + 7) % 100 where word = '${one(WORDS)}'`
      case 6:
        return `delete from things where id = ${id}`
      case 7:
        return `update things set tenant = '${tenant}' where id = ${own(id, tenant)}`
      case 8: {
        const to = random(ROWS)
        for (const each of TENANTS) own(to, each)
        return `update things set id = ${to} where id = ${id}`
      }
      default:
        return random(3) > 0
          ? `delete from things where id >= 100000`
          : `insert into things select 100000 + n, '${tenant}', 'd', 5 from generate_series(1, 1001) n
            on conflict do nothing`
    }
  }

  for (let n = 1; n <= 1_001; n++) for (const tenant of TENANTS) own(100_000 + n, tenant)
  for (let round = 0; round < ROUNDS; round++) {
    await Promise.all(writers.map((_, index) => write(index)))
    if (round === 30 || round === 70) {
      other.child.kill('SIGKILL')
      await other.exited
      other = startOther()
      count('killed')
    } else if (round === 50) {
      await server.restart()
      count('restarted')
    }
    await new Promise(resolve => setTimeout(resolve, random(60)))
  }
  for (const client of writers) await client.end()

  const admin = await connect()
  for (const { shape, tenantId, where } of copies) {
    const condition = where === '' ? 'true' : where
    const sql = `select id, tenant, word, n from things where tenant = $1 and (${condition}) order by id`
    const { rows } = await admin.query<Thing>(sql, [tenantId])
    const copy = () => print(shape.currentRows.toSorted((first, second) => first.id - second.id))
    await vi.waitFor(() => expect([leaks, where, copy()]).toEqual([[], where, print(rows)]), { timeout: 20_000 })
  }
  await admin.end()
  aborter.abort()
  expect(leaks).toEqual([])
  // The test did exercise changes and failures.
  for (const kind of ['insert', 'update', 'delete', '200', '409', 'written', 'killed', 'restarted'])
    expect([kind, counts.get(kind) ?? 0]).not.toEqual([kind, 0])
})
