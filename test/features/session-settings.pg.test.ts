/**
 * docs/guides/row-level-security.md#fewer-settings: settings that nothing in the database can read are not
 * set, as long as the gateway hears of changes of the schema.
 */
import { beforeAll, expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { testGateway } from '../support/gateway.ts'
import { installed } from '../support/install.ts'
import { execute } from '../support/postgres.ts'

const database = databaseFixture(
  `create table notes (id int primary key, tenant text not null default current_setting('app.current_tenant_id'),
     owner text);
   insert into notes values (1, 't1', 'u1'), (2, 't1', 'u2'), (3, 't2', 'u1');
   alter table notes enable row level security;
   alter table notes force row level security;
   create function seen() returns text stable language sql as $$ select ''::text $$;
   create policy own_tenant on notes using (tenant = (select current_setting('app.current_tenant_id', true)));
   grant all on notes to app`,
)
beforeAll(() => installed(database))

const ADMIN = 'an-operator-token'
const gateway = gatewayFixture(database, {
  environment: { SVC_ADMIN_TOKEN: ADMIN },
  toml: `session_settings = "readable"
[postgrest]
enabled = true
anon_role = "app"
[gateway.tables.notes]
created_by = "owner"`,
})

const operator = { as: null, headers: { authorization: `Bearer ${ADMIN}` } }
const internal = async () => (await gateway.get('/health/internal', operator)).json.session_settings
const run = (sql: string) => execute(database.adminUrl, sql)

/** Waits for a state of the settings. The listener reports nothing when the schema is unchanged. */
const until = (state: object) => expect.poll(internal, { timeout: 10_000 }).toMatchObject(state)

const ALL = [
  ...['app.current_user_id', 'app.is_super_admin', 'app.current_role', 'app.current_scopes', 'request.jwt.claims'],
  ...['request.method', 'request.path', 'request.headers', 'request.cookies'],
]
const without = (...names: readonly string[]) => ALL.filter(name => !names.includes(name))
const idsOf = async (userId: string, path = '/api/notes') => {
  const { json } = await gateway.get(path, { as: { tenantId: 't1', userId } })
  return (path.startsWith('/api') ? json.data : json).map(({ id }: { id: number }) => id)
}

test('only the tenant and what limits a caller are set', async () => {
  await until({ not_set: ALL, read_by: {}, all_because: null })
  expect(await idsOf('u1')).toEqual([1, 2])
  expect(await idsOf('u1', '/rest/v1/notes')).toEqual([1, 2])
})

test('a statement of the gateway that reads a setting itself has it', async () => {
  const { status } = await gateway.get('/api/notes', {
    as: { tenantId: 't1', userId: 'u9' },
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: '{"id": 9}',
  })
  expect(status).toBe(201)
  expect(await run('delete from notes where id = 9 returning owner')).toEqual([{ owner: 'u9' }])
})

const SEEN = `create or replace function seen() returns text stable language sql as $$
  select concat_ws(' ', nullif(current_setting('app.current_user_id', true), ''),
    nullif(current_setting('request.method', true), '')) $$`
const seen = async (path: string) => (await gateway.get(path, { as: { tenantId: 't1', userId: 'u1' } })).json

test('a function whose change is not announced reads nothing until the schema is read', async () => {
  await run(`set session_replication_role = replica; ${SEEN}`)
  expect([await seen('/api/rpc/seen'), await seen('/rest/v1/rpc/seen')]).toMatchObject([{ data: '' }, ''])
  await run('notify svc_schema')
  await until({ not_set: without('app.current_user_id', 'request.method') })
  expect([await seen('/api/rpc/seen'), await seen('/rest/v1/rpc/seen')]).toMatchObject([{ data: 'u1' }, 'u1 GET'])
  await run('drop function seen()')
  await until({ not_set: ALL })
})

const OWN = `create policy own on notes as restrictive
  using (owner = (select current_setting('app.current_user_id', true)))`

test('a policy that is created later reads the setting', async () => {
  await run(OWN)
  await until({
    not_set: without('app.current_user_id'),
    read_by: { 'app.current_user_id': 'policy public.notes.own' },
  })
  expect(await idsOf('u1')).toEqual([1])
  expect(await idsOf('u2', '/rest/v1/notes')).toEqual([2])
  await run('drop policy own on notes')
  await until({ not_set: ALL })
})

test('no request fails or sees rows of others while policies change', async () => {
  let isOver = false
  const seenRows = new Set<string>()
  const requests = [1, 2, 3, 4].map(async number => {
    while (!isOver) seenRows.add(JSON.stringify(await idsOf('u1', number % 2 ? '/api/notes' : '/rest/v1/notes')))
  })
  for (let round = 0; round < 3; round++) {
    await run(OWN)
    await until({ not_set: without('app.current_user_id') })
    expect(await idsOf('u1')).toEqual([1])
    await run('drop policy own on notes')
    await until({ not_set: ALL })
    expect(await idsOf('u1')).toEqual([1, 2])
  }
  isOver = true
  await Promise.all(requests)
  expect(['[1,2]', '[1]', '[]']).toEqual(expect.arrayContaining([...seenRows]))
})

test('a function with dynamic SQL causes all to be set, and the reason is shown', async () => {
  await run(`create function any_sql(q text) returns void language plpgsql as 'begin execute q; end'`)
  await until({ not_set: [], all_because: 'function public.any_sql uses EXECUTE' })
  await run('drop function any_sql')
  await until({ not_set: ALL })
})

test('all are set while changes are not announced', async () => {
  await run('alter event trigger svc_schema_changed disable; notify svc_schema')
  await until({ not_set: [], all_because: 'the event triggers of svc install are missing or disabled' })
  const found = (await gateway.get('/internal/checks', operator)).json
  expect(found.findings).toContainEqual(
    expect.objectContaining({ level: 'note', message: expect.stringContaining('the event triggers of svc install') }),
  )
})

test('the default is to set all, and only an operator sees which objects read settings', async () => {
  const other = await testGateway(database.url, { environment: { SVC_ADMIN_TOKEN: ADMIN } })
  const { session_settings: shown } = (await other.get('/health/internal', operator)).json
  expect(shown).toEqual({ not_set: [], read_by: {}, all_because: 'session_settings = "all"' })
  await other.close()
  const open = await testGateway(database.url, { toml: 'session_settings = "readable"' })
  expect((await open.get('/health/internal', { as: null })).json).not.toHaveProperty('session_settings')
  await open.close()
})
