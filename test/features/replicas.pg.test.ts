/**
 * Read replicas (docs/operations/replicas.md): where reads run, and what they see. The view `placed` shows
 * which server answered. Replay is paused on the standby to make it lag.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { fixture, gatewayFixture } from '../support/fixtures.ts'
import type { AskOptions, Reply } from '../support/gateway.ts'
import { installed } from '../support/install.ts'
import { execute } from '../support/postgres.ts'
import { forThisVersion } from '../support/postgres-version.ts'
import { PASSWORD } from '../support/server.ts'
import { openSocket } from '../support/socket.ts'
import { startReplication } from '../support/standby.ts'

const SCHEMA = forThisVersion(`
create table notes (id int primary key, body text not null, tenant_id text not null default 't1');
alter table notes enable row level security;
create policy own on notes using (tenant_id = current_setting('app.current_tenant_id', true));
grant select, insert, update, delete on notes to app;
insert into notes values (1, 'first', 't1'), (2, 'other', 't2');
create view placed with (security_invoker = true) as select id, body, pg_is_in_recovery() as standby from notes;
grant select on placed to app;
create function place() returns boolean stable language sql as 'select pg_is_in_recovery()';
create function add_note(id int) returns int volatile language sql as
  $$ insert into notes values (id, 'x') returning id $$;
create function place_now() returns boolean volatile language sql as 'select pg_is_in_recovery()';
create function pretended() returns text stable language plpgsql as
  $$ begin perform pg_notify('pretended', 'x'); return 'notified'; end $$;
`)

const servers = fixture(() => startReplication(SCHEMA, { synchronous: false }))
const database = {
  get url() {
    return servers.primary.url
  },
}

const replicaTable = (port: number) =>
  `[[gateway.replicas]]\nurl = "postgres://app:${PASSWORD}@127.0.0.1:${port}/postgres"`

/** One row of the view, which has no key. */
const PLACED = '/api/placed?id=1'

const JSON_BODY = { 'content-type': 'application/json' }

const ANA: AskOptions = { as: { tenantId: 't1', userId: 'ana' } }
const BEN: AskOptions = { as: { tenantId: 't1', userId: 'ben' } }

const onStandby = (sql: string) => execute(servers.standby.adminUrl, sql)
const onPrimary = (sql: string) => execute(servers.primary.adminUrl, sql)

/** Waits until the standby has replayed everything. */
async function caughtUp(): Promise<void> {
  const [at] = await onPrimary('select pg_current_wal_insert_lsn() as lsn')
  await expect
    .poll(async () => (await onStandby(`select pg_last_wal_replay_lsn() >= '${at?.lsn}' as seen`))[0]?.seen, {
      timeout: 10_000,
    })
    .toBe(true)
}

/** Pausing takes effect with the next record. */
async function pause(): Promise<void> {
  await onStandby('select pg_wal_replay_pause()')
  await expect
    .poll(async () => {
      await onPrimary('select pg_switch_wal()')
      return (await onStandby('select pg_get_wal_replay_pause_state() as state'))[0]?.state
    })
    .toBe('paused')
}

const resume = () => onStandby('select pg_wal_replay_resume()')

describe('with one replica', () => {
  const gateway = gatewayFixture(database, () => ({
    toml:
      `replica_max_lag_ms = 60000\n${replicaTable(servers.standby.port)}\n` +
      '[postgrest]\nenabled = true\nanon_role = "app"',
  }))
  const ask = (path: string, options: AskOptions = ANA): Promise<Reply> => gateway.get(path, options)
  const place = async (options: AskOptions = ANA, path = PLACED): Promise<unknown> => {
    const { text, json } = await ask(path, options)
    if (path !== PLACED) return text
    return json.data?.[0]?.standby ?? text
  }
  const write = (body: string, options: AskOptions = ANA): Promise<Reply> =>
    ask('/api/notes/1', {
      ...options,
      method: 'PATCH',
      headers: { 'content-type': 'application/json', ...options.headers },
      body: JSON.stringify({ body }),
    })
  const bodyFor = async (options: AskOptions): Promise<unknown> => (await ask('/api/notes/1', options)).json.data.body
  const metric = async (line: string): Promise<number> => {
    const { text } = await ask('/metrics', { as: null })
    return Number(
      text
        .split('\n')
        .find(of => of.startsWith(`${line} `))
        ?.slice(line.length + 1),
    )
  }

  beforeEach(async () => {
    await caughtUp()
    await expect
      .poll(() => place({ as: { tenantId: 't1', userId: `probe${Math.random()}` } }), { timeout: 10_000 })
      .toBe(true)
  })
  afterEach(resume)

  test('reads of every kind run on the replica', async () => {
    const text = (query: string) => ({ method: 'POST', headers: JSON_BODY, body: JSON.stringify({ query }) })
    expect(await place(BEN)).toBe(true)
    expect(await place(BEN, '/api/placed?select=standby&id=eq.1')).toContain('"standby":true')
    expect(await place(BEN, '/api/placed?stream=true')).toContain('"standby":true')
    expect(await place({ ...BEN, ...text('get placed fields standby where id = 1') }, '/api/_query')).toContain('true')
    expect(await place(BEN, '/api/rpc/place')).toContain('true')
    expect(await place({ ...BEN, as: { ...BEN.as, role: 'app' } }, '/rest/v1/placed?select=standby&id=eq.1')).toContain(
      'true',
    )
  })

  test('volatile functions, and reads in a transaction, run on the primary', async () => {
    const json = { method: 'POST', headers: { 'content-type': 'application/json' } }
    expect(await place({ ...BEN, ...json, body: '{}' }, '/api/rpc/place_now')).toContain('false')
    const app = { as: { ...BEN.as, role: 'app' } }
    expect(await place(app, '/rest/v1/rpc/place')).toContain('true')
    expect(await place(app, '/rest/v1/rpc/place_now')).toContain('false')
    const operations = [{ method: 'GET', path: PLACED }]
    const batch = (atomic: boolean) =>
      place({ ...BEN, ...json, body: JSON.stringify({ atomic, operations }) }, '/api/_batch')
    expect(await batch(true)).toContain('"standby":false')
    expect(await batch(false)).toContain('"standby":true')
  })

  test('a function that the replica cannot run is run on the primary, and from then on at once', async () => {
    const before = await metric('svc_replica_fallbacks_total{reason="error"}')
    for (let count = 0; count < 3; count++) expect(await place(BEN, '/api/rpc/pretended')).toContain('notified')
    expect((await metric('svc_replica_fallbacks_total{reason="error"}')) - before).toBe(1)
    expect(await metric('svc_replica_primary_reads_total{reason="refused"}')).toBeGreaterThan(0)
  })

  test('the error of a statement is that of the primary', async () => {
    const body = JSON.stringify({ query: 'get notes fields 1 / (id - 1) as x where id = 1' })
    const { status, json } = await ask('/api/_query', { ...BEN, method: 'POST', headers: JSON_BODY, body })
    expect([status, json.error.details?.sqlstate]).toEqual([400, '22012'])
  })

  test('row-level security applies on the replica', async () => {
    const seen = await ask('/api/placed?select=id,standby', { as: { tenantId: 't2' } })
    expect(seen.json.data).toEqual([{ id: 2, standby: true }])
  })

  test('a caller reads its own write at once, from the primary while the replica lacks it', async () => {
    const before = await bodyFor(BEN)
    await pause()
    const written = await write('ana was here')
    expect(written.headers.get('x-svc-lsn')).toMatch(/^[0-9A-F]+\/[0-9A-F]+$/)
    expect(await bodyFor(ANA)).toBe('ana was here')
    expect(await place(ANA)).toBe(false)
    // Another caller may see what the replica has.
    expect(await place(BEN)).toBe(true)
    expect(await bodyFor(BEN)).toBe(before)
    await resume()
    await expect.poll(() => place(ANA), { timeout: 10_000 }).toBe(true)
    expect(await bodyFor(ANA)).toBe('ana was here')
  })

  test('X-Svc-LSN makes the reads of another caller see the write', async () => {
    await pause()
    const lsn = (await write('by position')).headers.get('x-svc-lsn') ?? ''
    const headers = { 'x-svc-lsn': lsn }
    expect(await bodyFor({ ...BEN, headers })).toBe('by position')
    expect(await place({ ...BEN, headers })).toBe(false)
    await resume()
    await expect.poll(() => place({ ...BEN, headers }), { timeout: 10_000 }).toBe(true)
  })

  test('Prefer: consistency=strong reads from the primary', async () => {
    const headers = { prefer: 'consistency=strong' }
    expect(await place({ ...BEN, headers })).toBe(false)
    expect(await place({ ...BEN, headers: { prefer: 'count=exact, Consistency="strong"' } })).toBe(false)
    expect(await place({ ...BEN, headers: { prefer: 'consistency=weak' } })).toBe(true)
    const door = { as: { ...BEN.as, role: 'app' }, headers: { prefer: 'handling=strict, consistency=strong' } }
    expect(await place(door, '/rest/v1/placed?select=standby&id=eq.1')).toContain('false')
  })

  test.each(['', 'x', '0', '0/', '1/2/3', '123456789/0', '0/123456789', '0x1/2', '0/1, 0/2', '0/'.padEnd(300, '1')])(
    'X-Svc-LSN %j is rejected',
    async lsn => {
      const { status, json } = await ask('/api/notes/1', { ...BEN, headers: { 'x-svc-lsn': lsn } })
      expect([status, json.error.code]).toEqual([400, 'PARSE_ERROR'])
      expect(json.error.message).toContain('X-Svc-LSN must be one position')
      expect(json.error.message.length).toBeLessThan(300)
    },
  )

  test('a position that does not exist yet is not waited for', async () => {
    const { status, json } = await ask(PLACED, { ...BEN, headers: { 'x-svc-lsn': 'FFFFFFFF/FFFFFFFF' } })
    expect([status, json.data[0].standby]).toEqual([200, false])
  })

  test('every kind of write returns its position and is seen', async () => {
    await pause()
    const own = (userId: string) => ({ as: { tenantId: 't1', userId } })
    const seenBy = async (userId: string, id: number) => (await ask(`/api/notes/${id}`, own(userId))).status
    const requests: readonly (readonly [string, AskOptions])[] = [
      ['/api/notes', { headers: JSON_BODY, body: '{"id": 11, "body": "x"}' }],
      ['/api/notes', { headers: { 'content-type': 'text/csv' }, body: 'id,body\n12,x\n' }],
      [
        '/api/_query',
        { headers: JSON_BODY, body: JSON.stringify({ query: "add notes fields id, body values 13, 'x'" }) },
      ],
      [
        '/api/_batch',
        {
          headers: JSON_BODY,
          body: JSON.stringify({ operations: [{ method: 'POST', path: '/api/notes', body: { id: 14, body: 'x' } }] }),
        },
      ],
      ['/api/rpc/add_note', { headers: JSON_BODY, body: '{"id": 15}' }],
      ['/rest/v1/notes', { headers: JSON_BODY, body: '{"id": 16, "body": "x"}' }],
      ['/rest/v1/rpc/add_note', { headers: JSON_BODY, body: '{"id": 17}' }],
    ]
    for (const [index, [path, options]] of requests.entries()) {
      const userId = `writer${index}`
      const as = { ...own(userId).as, role: 'app' }
      const reply = await ask(path, { as, method: 'POST', ...options })
      expect(reply.status, reply.text).toBeLessThan(300)
      expect(reply.headers.get('x-svc-lsn'), path).toMatch(/^[0-9A-F]+\/[0-9A-F]+$/)
      expect(await seenBy(userId, 11 + index), path).toBe(200)
      expect(await seenBy('reader', 11 + index), path).toBe(404)
    }
  })

  test('the stored response of an idempotency key has a position that contains the first write', async () => {
    await installed({ adminUrl: servers.primary.adminUrl })
    await gateway.gateway.reload()
    await caughtUp()
    await pause()
    const send = (userId: string) =>
      ask('/api/notes', {
        as: { tenantId: 't1', userId },
        method: 'POST',
        headers: { ...JSON_BODY, 'idempotency-key': 'once' },
        body: '{"id": 21, "body": "once"}',
      })
    const first = await send('ana')
    expect([first.status, first.headers.get('x-svc-lsn')]).toEqual([201, expect.stringMatching(/^[0-9A-F]+\//)])
    const again = await send('ana')
    expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([201, 'true'])
    const headers = { 'x-svc-lsn': again.headers.get('x-svc-lsn') ?? '' }
    expect((await ask('/api/notes/21', { ...BEN, headers })).status).toBe(200)
  })

  test('a live query sees the change that it reports', async () => {
    await pause()
    const socket = await openSocket(gateway.url, { token: await gateway.token({ tenantId: 't1', userId: 'viewer' }) })
    socket.say({
      ...{ type: 'live_query', id: 'live', svc: 'get notes fields body where id = 1', table: 'notes' },
      interval_ms: 100,
    })
    await socket.nextOf('subscribed')
    await socket.nextOf('notification')
    await write('live')
    expect(await socket.nextOf('notification')).toMatchObject({ rows: [{ body: 'live' }] })
  })

  test('a statement for a schema that the replica does not have yet runs on the primary', async () => {
    await pause()
    await onPrimary(`alter table notes add column extra text default 'new'; notify svc_schema`)
    await expect
      .poll(async () => (await ask('/api/notes/1?select=extra', BEN)).text, { timeout: 10_000 })
      .toContain('"extra":"new"')
  })

  test('the state of the replica is reported', async () => {
    const { json } = await ask('/health/internal', { as: null })
    expect(json.replicas).toEqual([
      {
        host: `127.0.0.1:${servers.standby.port}`,
        state: 'available',
        lag_ms: expect.any(Number),
        running: 0,
        reads: expect.any(Number),
      },
    ])
    expect(await metric(`svc_replica_available{replica="127.0.0.1:${servers.standby.port}"}`)).toBe(1)
    expect(await metric(`svc_replica_reads_total{replica="127.0.0.1:${servers.standby.port}"}`)).toBeGreaterThan(0)
  })
})
