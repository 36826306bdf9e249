/**
 * The PostgreSQL of Debian 12, three years older than the embedded one: the objects of `svc install`, and a
 * restore of their dump.
 */
import { execFile, execFileSync } from 'node:child_process'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DEBIAN_POSTGRES_MISSING, type DebianServer, startDebianPostgres } from '../support/debian-postgres.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { FEED_ROLE, installed } from '../support/install.ts'
import { execute } from '../support/postgres.ts'
import { missingPrograms, programPath } from '../support/programs.ts'
import { openSocket } from '../support/socket.ts'

const MISSING =
  DEBIAN_POSTGRES_MISSING ?? missingPrograms({ pg_dump: 'postgresql-client-15', psql: 'postgresql-client-15' })
const TITLE = MISSING === null ? 'PostgreSQL 15' : `PostgreSQL 15 – skipped: ${MISSING}`

describe.skipIf(MISSING !== null)(TITLE, () => {
  let folder: string
  let server: DebianServer
  let gateway: TestGateway
  const url = (database: string, role: string): string => `postgres://${role}@127.0.0.1:${server.port}/${database}`
  const admin = (database: string) => ({ adminUrl: url(database, 'postgres') })
  const log = (database: string) =>
    execute(
      url(database, FEED_ROLE),
      `select concat_ws(' ', operation, "table", key, was, old) as entry from svc.change where operation <> 'B'
        order by seq`,
    )

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-15-'))
    await chmod(folder, 0o755)
    server = await startDebianPostgres({ folder, hba: [`host all app,${FEED_ROLE} 127.0.0.1/32 trust`] })
    await execute(url('postgres', 'postgres'), 'create role app login')
    await execute(url('postgres', 'postgres'), 'create database shop')
    await execute(
      url('shop', 'postgres'),
      `create table items (id int primary key, "Name" text, stock int);
       create table parts (id int, d int, primary key (id, d)) partition by range (d);
       create table parts_1 partition of parts for values from (0) to (10);
       grant all on items, parts, parts_1 to app`,
    )
    await installed(admin('shop'))
    gateway = await testGateway(url('shop', 'app'))
  }, 120_000)
  afterAll(async () => {
    await gateway?.close()
    await server?.close()
    await rm(folder, { recursive: true, force: true, maxRetries: 10 })
  })

  const send = (method: string, path: string, body: unknown, headers = {}) =>
    gateway.get(path, {
      method,
      body: JSON.stringify(body),
      headers: { 'Content-Type': 'application/json', ...headers },
    })

  test('the gateway’s writes are in the log: inserts, upserts, changed keys, deletions', async () => {
    expect((await send('POST', '/api/items', [{ id: 1, Name: 'a' }, { id: 2 }])).status).toBe(201)
    const upsert = await send('POST', '/api/items', [{ id: 1, Name: 'b' }, { id: 3 }], { 'X-Upsert': 'true' })
    expect(upsert.status).toBe(201)
    expect((await send('PATCH', '/api/items/3', { id: 4 })).status).toBe(200)
    expect((await gateway.get('/api/items/2', { method: 'DELETE' })).status).toBe(204)
    await execute(url('shop', 'app'), 'insert into parts values (1, 5); update parts_1 set id = 2')
    expect((await log('shop')).map(({ entry }) => entry)).toEqual([
      'I items {"id": 1}',
      'I items {"id": 2}',
      'U items {"id": 1} {"id":1,"Name":"a","stock":null}',
      'I items {"id": 3}',
      'U items {"id": 4} {"id": 3} {"id":3,"Name":null,"stock":null}',
      'D items {"id": 2} {"id":2,"Name":null,"stock":null}',
      'I parts {"d": 5, "id": 1}',
      'U parts {"d": 5, "id": 2} {"d": 5, "id": 1} {"id":1,"d":5}',
    ])
  })

  test('without triggers, a subscriber receives rows that an update brings into or out of view', async () => {
    await execute(url('postgres', 'postgres'), 'create database bare')
    await execute(
      url('bare', 'postgres'),
      `create table items (id int primary key, stock int); insert into items values (1, 0), (2, 9);
        grant all on items to app`,
    )
    const there = await testGateway(url('bare', 'app'))
    const socket = await openSocket(there.url, { token: await there.token({}) })
    try {
      socket.say({ type: 'subscribe', channel: 'svc_table_items', filter: 'stock=gt.5' })
      await socket.nextOf('subscribed')
      const heard: unknown[] = []
      for (const [id, stock] of [
        [1, 7],
        [1, 8],
        [2, 3],
      ]) {
        const headers = { 'Content-Type': 'application/json' }
        const reply = await there.get(`/api/items/${id}`, { method: 'PATCH', body: JSON.stringify({ stock }), headers })
        expect(reply.status).toBe(200)
        const { operation, key, new: row } = await socket.nextOf('notification')
        heard.push([operation, key, row])
      }
      expect(heard).toEqual([
        ['INSERT', { id: 1 }, { id: 1, stock: 7 }],
        ['UPDATE', { id: 1 }, { id: 1, stock: 8 }],
        ['DELETE', { id: 2 }, null],
      ])
    } finally {
      await socket.close()
      await there.close()
    }
  })

  test('a dump restores triggers and log tables, and the log starts from the beginning', {
    timeout: 60_000,
  }, async () => {
    const { stdout } = await promisify(execFile)(programPath('pg_dump'), [url('shop', 'postgres')], { maxBuffer: 1e8 })
    await execute(url('postgres', 'postgres'), 'create database restored')
    execFileSync(programPath('psql'), ['-q', '-v', 'ON_ERROR_STOP=1', url('restored', 'postgres')], {
      input: stdout,
      stdio: 'pipe',
    })
    const there = await testGateway(url('restored', 'app'))
    try {
      expect((await there.get('/health/internal', { as: null })).json.installation).toEqual({
        ...{ installed: true, captured_tables: 2, broken_tables: [] },
      })
      expect(await log('restored')).toEqual([])
      await execute(
        url('restored', 'app'),
        'update items set stock = 7 where id = 1; insert into parts_1 values (9, 9)',
      )
      expect((await log('restored')).map(({ entry }) => entry)).toEqual([
        'U items {"id": 1} {"id":1,"Name":"b","stock":null}',
        'I parts {"d": 9, "id": 9}',
      ])
      await execute(
        url('restored', 'postgres'),
        'alter table items rename column id to number; insert into items values (77)',
      )
      expect((await log('restored')).at(-1)).toEqual({ entry: 'I items {"number": 77}' })
    } finally {
      await there.close()
    }
  })
})
