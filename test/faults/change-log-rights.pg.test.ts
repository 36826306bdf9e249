/**
 * An injectable function of the application executes any SQL as the gateway's role during a request. After
 * `svc install`, it can neither read the change log, which contains rows of every tenant, nor forge webhooks,
 * whatever settings it changes. Realtime and webhooks still work.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { databaseFixture, fixture, folderFixture, gatewayFixture } from '../support/fixtures.ts'
import { feedUrl, installed } from '../support/install.ts'
import { execute } from '../support/postgres.ts'
import { receiver } from '../support/receiver.ts'
import { openSocket } from '../support/socket.ts'

const database = databaseFixture(`
  create table notes (id int primary key, body text, tenant_id text);
  create table logs (id int primary key, body text, tenant_id text);
  grant select, insert, update on notes, logs to app;
  create function find(what text) returns setof text language plpgsql as $$ begin
    return query execute 'select ' || what || '::text';
  end $$;
  create function change(what text) returns void language plpgsql as $$ begin execute what; end $$
`)
const folder = folderFixture()
const file = join(folder, 'triggers.yaml')
const hook = fixture(receiver)

beforeAll(async () => {
  await installed(database, [{ schema: 'public', table: 'notes' }])
  const triggers = ['notes', 'logs'].map(table => ({
    ...{ name: table, table, operations: ['create'], webhook_url: hook.url },
  }))
  await writeFile(file, JSON.stringify(triggers))
})
const gateway = gatewayFixture(database, {
  toml: `webhook_allow = ["127.0.0.0/8"]\nevents_path = ${JSON.stringify(file)}`,
})

const post = (path: string, body: unknown, more: Readonly<Record<string, string>> = {}) =>
  gateway.get(path, {
    ...{ method: 'POST', headers: { 'Content-Type': 'application/json', ...more }, body: JSON.stringify(body) },
  })

test('writes reach subscribers through the change log, and receivers through the outbox', async () => {
  const socket = await openSocket(gateway.url, { token: await gateway.token({ tenantId: 't1' }) })
  socket.say({ type: 'subscribe', channel: 'svc_table_notes' })
  await socket.nextOf('subscribed')
  await execute(database.adminUrl, `insert into notes values (1, 'from psql', 't1')`)
  expect(await socket.nextOf('notification')).toMatchObject({ operation: 'INSERT', new: { id: 1 } })
  expect((await post('/api/notes', { id: 2, body: 'captured' })).status).toBe(201)
  expect((await post('/api/logs', { id: 2, body: 'not captured' })).status).toBe(201)
  const bodies = (await hook.until(2)).map(({ json }) => json.data.new.body)
  expect(bodies.sort()).toEqual(['captured', 'not captured'])
  const { json } = await gateway.get('/health/internal', { as: null })
  expect(json.webhooks.storage).toBe('mixed')
  expect(json.realtime.tables).toEqual({ notes: { capture: 'trigger', durable: true } })
  await socket.close()
})

const READS = [
  'new from svc.change',
  'old from svc.change_0',
  'new from svc.webhook',
  'new from svc.webhook_dead',
  'answer from svc.webhook_attempt',
  'hash from svc.ticket',
  'svc.forget_changes()',
  'svc.repair()',
]

test.each(READS)('an injected "select %s" is rejected with any session setting', async what => {
  const settings = ['app.current_tenant_id', 'svc.origin', 'svc.ticket', 'svc.repairing', 'app.is_super_admin']
  const set = settings.map(name => `set_config('${name}', 'on', true)`).join(' || ')
  for (const injected of [what, `${set}; select ${what}`, `(${set})::text union all select ${what}`]) {
    const { status, text } = await post('/api/rpc/find', { what: injected })
    expect([400, 403], text).toContain(status)
    expect(text).not.toContain('from psql')
  }
})

const FORGERIES = [
  `insert into svc.webhook (trigger, "schema", "table", operation, new, created_at) values ('logs', 'public',
    'logs', 'INSERT', '{"body": "forged"}', now())`,
  `insert into svc.webhook_dead (id, trigger, "schema", "table", operation, created_at, tries, reason)
    values ('msg_1', 'logs', 'public', 'logs', 'INSERT', now(), 1, 'forged')`,
  `insert into svc.webhook_attempt (webhook, trigger, try, outcome, duration_ms) values ('msg_1', 'logs', 1,
    'delivered', 1)`,
  `insert into svc.webhook_trigger values ('forged', 'public', 'notes', '{INSERT}', 'database', false, null)`,
  `insert into svc.ticket values (sha256('mine'), now() + interval '1 hour')`,
  `insert into svc.change ("schema", "table", operation) values ('public', 'notes', 'B')`,
  `set role app_feed`,
  `create temp table mine (id int); create trigger mine after insert on mine referencing new table as svc_new
    for each statement execute function svc.capture_insert('public', 'notes', 'id')`,
]

test.each(FORGERIES)('an injected %s is rejected', async what => {
  const { status, text } = await post('/api/rpc/change', { what })
  expect([400, 403], text).toContain(status)
  expect(text).toContain('permission denied')
  expect(await execute(feedUrl(database), `select from svc.webhook where new ->> 'body' = 'forged'`)).toEqual([])
})

test('the statement texts of a write with an idempotency key do not contain the ticket', async () => {
  await execute(
    database.adminUrl,
    `create function spy() returns trigger language plpgsql as $$ begin
       new.body := coalesce(current_query(), '')
         || (select string_agg(query, ' ') from pg_stat_activity where usename = current_user)
         || (select coalesce(string_agg(name || statement, ' '), '') from pg_prepared_statements)
         || (select coalesce(string_agg(setting, ' '), '') from pg_settings);
       return new; end $$;
     create trigger spy before insert on logs for each row execute function spy()`,
  )
  const { json } = await post('/api/logs?returning=body', { id: 3, body: '' }, { 'Idempotency-Key': 'k' })
  const seen: string = json.data.body
  expect(seen).toContain('svc.claim_key')
  const hashes = await execute(feedUrl(database), `select encode(hash, 'hex') as hash from svc.ticket`)
  const words = new Set(seen.match(/[A-Za-z0-9_-]{32}/g) ?? [])
  const { createHash } = await import('node:crypto')
  const digests = [...words].map(word => createHash('sha256').update(word).digest('hex'))
  expect(hashes).toHaveLength(1)
  for (const { hash } of hashes) expect(digests).not.toContain(hash)
})
