/**
 * docs/guides/coming-from-postgrest.md: what access policies and row-level security hide stays hidden in
 * PostgREST's dialect, also in errors, suggestions and counts.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { databaseFixture, folderFixture, gatewayFixture } from '../support/fixtures.ts'
import { type AskOptions, SECRET } from '../support/gateway.ts'
import { signed } from '../support/postgrest-token.ts'

const folder = folderFixture()
const database = databaseFixture(`
  create table staff (id int primary key, name text not null, salary int unique default 777,
    age int check (age > 0), boss_id int references staff);
  create table badges (id int primary key, staff_id int references staff, code text);
  create table teams (id int primary key, name text);
  create table members (staff_id int references staff, team_id int references teams, primary key (staff_id, team_id));
  insert into staff values (1, 'ann', 999, 30), (2, 'bob', 998, 40);
  insert into badges values (1, 1, 'hidden');
  create table payments (id int generated always as identity primary key, tenant_id text not null, mail text);
  insert into payments (tenant_id, mail) select 't2', 'theirs@example.org' from generate_series(1, 2000);
  insert into payments (tenant_id, mail) select 't1', 'own' || n from generate_series(1, 200) n;
  create table words (id int primary key, twin int);
  insert into words select n, n from generate_series(1, 2000) n;
  create view shown with (security_invoker) as select * from payments;
  create view listed with (security_invoker) as select * from words;
  alter table payments enable row level security, force row level security;
  create policy own on payments using (tenant_id = current_setting('app.current_tenant_id', true));
  analyze;
  create function reply(headers text) returns int volatile language plpgsql as $$ begin
    perform set_config('response.headers', headers, true);
    return 1;
  end $$;
  create function refuse(detail text) returns int volatile language plpgsql as $$ begin
    raise sqlstate 'PGRST' using message = '{"code":"1","message":"no"}', detail = detail;
  end $$;
  grant all on all tables in schema public to app
`)

const POLICY = `
default_decision = "deny"
[tables.staff]
operations = ["read", "create", "update", "delete"]
read_columns = { except = ["salary"] }
write_columns = { only = ["id", "name", "age"] }
[tables.teams]
operations = ["read"]
[tables.payments]
operations = ["read"]
[tables.words]
operations = ["read"]
[tables.shown]
operations = ["read"]
[tables.listed]
operations = ["read"]
`

const gateway = gatewayFixture(database, async () => {
  const file = join(folder, 'policy.toml')
  await writeFile(file, POLICY)
  const door = `[postgrest]\nenabled = true\nanon_role = "${decodeURIComponent(new URL(database.url).username)}"`
  return { toml: `[access]\nenabled = true\npath = ${JSON.stringify(file)}\n${door}` }
})
const open = gatewayFixture(database, async () => ({
  toml: `[postgrest]\nenabled = true\nanon_role = "${decodeURIComponent(new URL(database.url).username)}"`,
}))
const bearer = (claims: object) => ({ Authorization: `Bearer ${signed({ tenant_id: 't1', ...claims }, SECRET)}` })
const get = (path: string, options: AskOptions = {}, at = gateway) =>
  at.get(`/rest/v1${path}`, { ...options, headers: { ...bearer({}), ...options.headers } })
const send = (method: string, path: string, body: unknown, at = gateway) =>
  get(path, { method, body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } }, at)

describe('a hidden column', () => {
  test.each([
    ['a check', 'PATCH', '/staff?id=eq.1', { age: -5 }],
    ['NOT NULL', 'PATCH', '/staff?id=eq.1', { name: null }],
    ['NOT NULL, with its default', 'POST', '/staff', { id: 5, name: null }],
    [
      'a unique constraint on its default',
      'POST',
      '/staff',
      [
        { id: 6, name: 'x' },
        { id: 7, name: 'y' },
      ],
    ],
  ])('has no value in the error of %s', async (_, method, path, body) => {
    const reply = await send(method, path, body)
    expect([reply.status >= 400, reply.json.details]).toEqual([true, null])
    expect(reply.text).not.toMatch(/999|777/)
    // Without a policy, the detail is PostgreSQL's.
    expect((await send(method, path, body, open)).json.details).toMatch(/999|777/)
  })

  test('is not suggested', async () => {
    expect((await get('/staff?select=salari')).json.hint).toBeNull()
    expect((await get('/staff?select=nam')).json.hint).toContain('staff.name')
    expect((await get('/staff?select=salari', {}, open)).json.hint).toContain('staff.salary')
  })
})

describe('a hidden table', () => {
  test('is like one that does not exist', async () => {
    const hidden = await get('/staff?select=id,badges(*)')
    const missing = await get('/staff?select=id,nothing(*)')
    expect([hidden.status, hidden.text]).toEqual([400, missing.text.replaceAll('nothing', 'badges')])
    expect((await get('/staff?select=id,badges(*)&id=eq.1', {}, open)).json[0].badges).toHaveLength(1)
  })

  test('is not suggested, and joins nothing', async () => {
    expect((await get('/staff?select=id,badge(*)')).json.hint).toBeNull()
    expect((await get('/staff?select=id,badge(*)', {}, open)).json.hint).toContain('badges')
    const joined = await get('/staff?select=id,teams(*)')
    expect([joined.status, joined.text.includes('members')]).toEqual([400, false])
    expect((await get('/staff?select=id,teams(*)', {}, open)).status).toBe(200)
  })

  test('is not named in the detail of a foreign key', async () => {
    const reply = await send('DELETE', '/staff?id=eq.1', undefined)
    expect([reply.status, reply.json.code, reply.json.details]).toEqual([409, '23503', null])
    expect((await send('DELETE', '/staff?id=eq.1', undefined, open)).json.details).toContain('badges')
  })
})

describe('a count', () => {
  const range = async (path: string, count: string, claims: object = {}) => {
    const headers = { ...bearer(claims), Prefer: `count=${count}` }
    return (await get(path, { headers })).headers.get('content-range')
  }

  test.each(['/payments', '/shown'])('of %s does not use statistics of rows that policies hide', async table => {
    for (const count of ['planned', 'estimated', 'exact']) {
      expect(await range(`${table}?mail=eq.theirs@example.org&limit=1`, count)).toBe('*/0')
      expect(await range(`${table}?mail=eq.own1&limit=1`, count)).toBe('0-0/1')
    }
  })

  test('uses them for a caller with the scope svc:explain', async () => {
    const figure = await range('/payments?mail=eq.theirs@example.org&limit=1', 'planned', { scope: 'svc:explain' })
    expect(Number(figure?.split('/')[1])).toBeGreaterThan(1)
  })

  test.each(['/words', '/listed'])("of %s, whose rows nothing hides, is PostgreSQL's estimate", async table => {
    // PostgreSQL takes the conditions for independent.
    const total = await range(`${table}?id=lt.1000&twin=lt.1000&limit=1`, 'planned')
    expect(Number(total?.split('/')[1])).toBeLessThan(900)
  })
})

describe('a header that a function sets', () => {
  const framing = [{ 'Content-Length': '1' }, { 'transfer-encoding': 'chunked' }, { Connection: 'close' }]

  test('cannot change where the response ends', async () => {
    const reply = await send('POST', '/rpc/reply', { headers: JSON.stringify([{ 'X-Own': 'yes' }, ...framing]) })
    expect([reply.status, reply.text, reply.headers.get('x-own')]).toEqual([200, '1', 'yes'])
    expect(reply.headers.get('transfer-encoding')).toBeNull()
    expect(reply.headers.get('content-length')).toBe('1')
  })

  test('of an error cannot either', async () => {
    const headers = Object.assign({ 'X-Own': 'yes' }, ...framing)
    const reply = await send('POST', '/rpc/refuse', { detail: JSON.stringify({ status: 418, headers }) })
    expect([reply.status, reply.json.message, reply.headers.get('x-own')]).toEqual([418, 'no', 'yes'])
  })

  test('cannot contain a line break', async () => {
    const reply = await send('POST', '/rpc/reply', { headers: JSON.stringify([{ 'X-Own': 'a\r\nX-Other: b' }]) })
    expect([reply.status, reply.json.code, reply.headers.get('x-other')]).toEqual([500, 'PGRST111', null])
  })
})
