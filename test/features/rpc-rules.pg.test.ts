/**
 * docs/reference/functions.md#transactions-and-rights: the rules under which functions run. Calls do not
 * affect later requests.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { watchActivity } from '../support/activity.ts'
import { databaseFixture, fixture, folderFixture, gatewayFixture } from '../support/fixtures.ts'
import { type AskOptions, type Reply, type TestGateway, testGateway } from '../support/gateway.ts'
import { execute } from '../support/postgres.ts'
import { functionsDatabase } from './functions.ts'

const database = databaseFixture(functionsDatabase)

beforeAll(() => execute(database.adminUrl, LATER))
/** A gateway with one connection, so the next request uses the same session. */
const gateway = gatewayFixture(database, {
  toml: 'max_connections = 1\nstatement_timeout_ms = 2000\nschema_poll_secs = 3600',
})
const activity = fixture(() => watchActivity(database.adminUrl))

/** A trigger that runs at the end of the transaction, after the function that caused it. */
const LATER = `
create table later (id int generated always as identity primary key);
create function remember() returns trigger language plpgsql as $$
  begin
    insert into journal (what) values (
      concat_ws(',', 'tenant', current_setting('app.current_tenant_id'), 'super',
        current_setting('app.is_super_admin')));
    return null;
  end $$;
create constraint trigger at_the_end after insert on later deferrable initially deferred for each row
  execute function remember();
grant insert on later to app;
create function become_later(tenant text) returns void volatile language plpgsql as $$
  begin
    insert into later default values;
    perform set_config('app.current_tenant_id', tenant, false), set_config('app.is_super_admin', 'true', true);
  end $$;
create function settings() returns json stable language sql as $$
  select json_build_object('tenant', current_setting('app.current_tenant_id'), 'super',
    current_setting('app.is_super_admin'),
    'path', current_setting('search_path'), 'timeout', current_setting('statement_timeout'), 'user', current_user,
    'own', current_setting('my.own', true)) $$;
create function set_all() returns void volatile language plpgsql as $$
  begin
    perform set_config('my.own', 'left', false), set_config('work_mem', '1MB', false),
      set_config('role', 'none', false);
    perform set_config('transaction_isolation', 'read committed', false);
  end $$;
create function any_enum(x anyenum) returns text immutable language sql as 'select x::text';
create function kept_from_all() returns int immutable language sql return 1;
create function kept_from_some() returns int immutable language sql return 1;
create function kept_from_some(x int) returns int immutable language sql return x;
revoke execute on function kept_from_all, kept_from_some() from public;
`

function call(path: string, body: unknown = [], options: AskOptions = {}): Promise<Reply> {
  const headers = { 'Content-Type': 'application/json', ...options.headers }
  return gateway.get(`/api/rpc/${path}`, { method: 'POST', body: JSON.stringify(body), ...options, headers })
}

const as = (tenantId: string): AskOptions => ({ as: { tenantId } })

describe('the caller of a function', () => {
  test('is the caller in the session settings, under row-level security', async () => {
    expect((await call('caller')).json.data).toEqual({ tenant: 't1', who: 'app', read_only: 'on' })
    expect((await call('own_notes')).json.data).toBe(3)
    expect((await call('own_notes', [], as('t2'))).json.data).toBe(1)
    expect((await call('own_notes', [], as('nobody'))).json.data).toBe(0)
    expect((await gateway.get('/api/rpc/own_notes', { as: null })).status).toBe(401)
  })
  test('is the owner for a SECURITY DEFINER function, as in PostgreSQL', async () => {
    expect((await call('as_owner')).json.data).toBe('postgres')
  })
  test('needs the EXECUTE privilege, otherwise 403', async () => {
    const reply = await call('only_admin')
    expect(reply.json.error).toMatchObject({ code: 'FORBIDDEN', status: 403, details: { sqlstate: '42501' } })
  })
  test('is kept apart from concurrent callers of other tenants', async () => {
    const tenants = Array.from({ length: 40 }, (_, n) => `tenant ${n}`)
    const replies = await Promise.all(tenants.map(tenant => call('caller', [], as(tenant))))
    expect(replies.map(reply => reply.json.data.tenant)).toEqual(tenants)
  })
})

describe('session settings changed by a function do not last', () => {
  const became = { tenant: 't1', super: 'false', user: 'app' }

  /**
   * The settings that a function sees. The time already used by the request is subtracted from its timeout.
   */
  async function settings() {
    const { timeout, ...others } = (await call('settings')).json.data
    const leftMs = Number.parseFloat(timeout) * (timeout.endsWith('ms') ? 1 : 1_000)
    expect(leftMs).toBeLessThanOrEqual(2_000)
    expect(leftMs).toBeGreaterThan(1_000)
    return others
  }

  test('until the next request on the connection', async () => {
    const before = await settings()
    expect(before).toMatchObject(became)
    expect((await call('become', ['t2'])).json.data).toBe('secret')
    expect(await settings()).toEqual(before)
    expect((await gateway.get('/api/notes?select=id')).json.data).toEqual([{ id: 1 }, { id: 2 }, { id: 3 }])
    expect((await call('own_notes', [], { as: { userId: 'u' } })).json.data).toBe(0)
    expect((await call('set_all')).status).toBe(200)
    expect((await settings()).own ?? '').toBe('')
    expect((await settings()).path).toBe(before.path)
  })
  test('if the function fails', async () => {
    const before = await settings()
    expect((await call('become_and_fail', ['t2'])).status).toBe(400)
    expect(await settings()).toEqual(before)
  })
  test('until the end of its own transaction', async () => {
    expect((await call('become_later', ['t2'])).status).toBe(200)
    expect(await activity.value('select what from journal order by at desc limit 1')).toBe('tenant,t1,super,false')
  })
  test('in any of several pipelined requests', async () => {
    const replies = await Promise.all(
      Array.from({ length: 30 }, (_, n) => (n % 2 === 0 ? call('become', ['t2']) : call('own_notes'))),
    )
    expect(replies.filter((_, n) => n % 2 === 1).map(reply => reply.json.data)).toEqual(Array(15).fill(3))
  })
})

describe('a function call', () => {
  test('is read-only if declared stable, also by POST; volatile functions can write', async () => {
    expect((await call('lies')).json.error).toMatchObject({ code: 'QUERY_ERROR', details: { sqlstate: '25006' } })
    expect((await gateway.get('/api/rpc/lies')).json.error.details.sqlstate).toBe('25006')
    const { data } = (await call('note_down', ['one'])).json
    expect(await activity.value(`select what from journal where at = ${data}`)).toBe('one')
  })
  test('runs the function once', async () => {
    expect((await call('twice', [21])).json.data).toBe(42)
    expect(await activity.value("select count(*)::int from journal where what = 'twice 21'")).toBe(1)
  })
  test('that fails changes nothing, and returns the function’s message', async () => {
    const reply = await call('fail')
    expect(reply.status).toBe(400)
    expect(reply.json.error).toMatchObject({
      ...{ code: 'QUERY_ERROR', message: 'it is not possible', hint: 'try less' },
      details: { sqlstate: 'P0001' },
    })
    expect((await call('fail', ['42501'])).status).toBe(403)
    expect((await call('fail', ['23505'])).json.error.details.sqlstate).toBe('23505')
    expect((await call('divide', [1, 0])).json.error).toMatchObject({
      ...{ code: 'QUERY_ERROR', details: { sqlstate: '22012' } },
    })
    expect((await call('own_notes')).status).toBe(200)
  })
  test('that takes too long is answered with 408', async () => {
    const reply = await call('sleep', [60])
    expect(reply.json.error).toMatchObject({ code: 'TIMEOUT', status: 408 })
  })
  test('is cancelled when its client disconnects', async () => {
    const gone = new AbortController()
    const headers = {
      Authorization: `Bearer ${await gateway.token({ tenantId: 't1' })}`,
      'Content-Type': 'application/json',
    }
    const request = fetch(`${gateway.url}/api/rpc/sleep`, {
      method: 'POST',
      body: '[1.9]',
      headers,
      signal: gone.signal,
    })
    await activity.started(/"?sleep"?\(/)
    gone.abort()
    await expect(request).rejects.toThrow()
    expect(await activity.gone(/"?sleep"?\(/)).toBeLessThan(1_500)
  })
})

describe('unknown functions', () => {
  test.each(['an_itn', 'now', 'pg_catalog.now', 'information_schema._pg_truetypid', 'public', '%20'])(
    '%s: 404',
    async name => {
      const reply = await call(name)
      expect(reply.json.error).toMatchObject({ code: 'NOT_FOUND', status: 404 })
    },
  )
  test('get a suggestion in the error', async () => {
    expect((await call('an_itn')).json.error.message).toBe('there is no function "an_itn"; did you mean "an_int"?')
  })
  test('include trigger functions', async () => {
    expect((await call('remember')).status).toBe(404)
  })
})

describe('contracts', () => {
  test('list all functions with their arguments and results', async () => {
    const { functions, count } = (await gateway.get('/api/_rpc/contracts')).json
    expect(functions).toHaveLength(count)
    expect(functions.filter((one: { name: string }) => one.name === 'note_down')).toEqual([
      {
        ...{ schema: 'public', name: 'note_down', function: 'note_down', identity_args: 'what text' },
        ...{ result_type: 'integer', returns_set: false, volatility: 'volatile', variadic: false },
        args: [{ position: 1, name: 'what', type: 'text', mode: 'in', required: true, default: null }],
        comment: 'Writes a line',
      },
    ])
    expect(functions.filter((one: { name: string }) => one.name === 'over')).toHaveLength(7)
    expect(functions.some((one: { name: string }) => one.name === 'remember')).toBe(false)
  })
  test('omit functions that cannot be called, because of their result or missing privileges', async () => {
    const { functions } = (await gateway.get('/api/_rpc/contracts')).json
    const names = functions.map((one: { name: string; identity_args: string }) => `${one.name}(${one.identity_args})`)
    expect(names).toContain('kept_from_some(x integer)')
    for (const name of ['whatever()', 'whatevers()', 'any_enum(x anyenum)', 'kept_from_all()', 'kept_from_some()']) {
      expect(names).not.toContain(name)
    }
    expect((await call('kept_from_all')).json.error).toMatchObject({ code: 'FORBIDDEN', status: 403 })
    expect((await call('kept_from_some', [1])).json.data).toBe(1)
    const paths = Object.keys((await gateway.get('/api/_openapi')).json.paths)
    expect(paths).toContain('/api/rpc/kept_from_some')
    expect(paths.filter(path => /kept_from_all|whatever|any_enum/.test(path))).toEqual([])
  })
  test('include a newly granted function after a reload', async () => {
    await execute(database.adminUrl, 'grant execute on function kept_from_all to app')
    await gateway.gateway.reload()
    const { functions } = (await gateway.get('/api/_rpc/contracts')).json
    expect(functions.some((one: { name: string }) => one.name === 'kept_from_all')).toBe(true)
    expect((await gateway.get('/api/rpc/kept_from_all')).json.data).toBe(1)
  })
  test('are only available to authorised callers, and only by GET', async () => {
    expect((await gateway.get('/api/_rpc/contracts', { as: null })).status).toBe(401)
    expect((await gateway.get('/api/_rpc/contracts', { method: 'POST' })).status).toBe(405)
  })
})

describe('a function that changed after the schema was read', () => {
  test('is rejected when PostgreSQL parses the call, with its signature, until a reload', async () => {
    await execute(
      database.adminUrl,
      'drop function gone; create function gone(x int) returns text language sql return $1',
    )
    const reply = await call('gone')
    expect(reply.json.error).toMatchObject({ code: 'PARSE_ERROR', status: 400 })
    expect(reply.json.error.message).toMatch(/gone\(\) does not exist; call gone\(\)/)
    await gateway.gateway.reload()
    expect((await call('gone', [1])).json.data).toBe('1')
  })
})

describe('settings of the gateway', () => {
  const folder = folderFixture()
  beforeAll(() =>
    writeFile(join(folder, 'rpc.txt'), '# allowed\nAN_INT\nsales.report # of the second schema\npublic.missing\n'),
  )

  async function withGateway(toml: string, use: (one: TestGateway) => Promise<void>): Promise<void> {
    const one = await testGateway(database.url, { toml: `schemas = ["public", "sales"]\n${toml}` })
    try {
      await use(one)
    } finally {
      await one.close()
    }
  }

  test('without any, functions of the second schema are called by their plain name', async () => {
    await withGateway('', async one => {
      expect((await one.get('/api/rpc/sales.report?x=1')).json).toMatchObject({
        data: 'sales 1',
        function: 'sales.report',
      })
      expect((await one.get('/api/rpc/sales.an_int')).json.data).toBe(43)
      expect((await one.get('/api/rpc/public.an_int')).json).toMatchObject({ data: 42, function: 'an_int' })
    })
  })

  test('rpc_allowlist_path: unlisted functions are answered with 403, whether they exist or not', async () => {
    await withGateway(`rpc_allowlist_path = "${join(folder, 'rpc.txt')}"`, async one => {
      const status = async (name: string) => (await one.get(`/api/rpc/${name}`)).status
      expect(await status('an_int')).toBe(200)
      expect(await status('public.an_int')).toBe(200)
      expect(await status('sales.report?x=1')).toBe(200)
      for (const name of ['sales.an_int', 'a_text', 'report', 'no_such', 'pg_catalog.now']) {
        expect((await one.get(`/api/rpc/${name}`)).json.error).toMatchObject({ code: 'FORBIDDEN', status: 403 })
      }
      expect(await status('missing')).toBe(404)
      const { functions } = (await one.get('/api/_rpc/contracts')).json
      expect(functions.map((of: { function: string }) => of.function)).toEqual(['an_int', 'sales.report'])
    })
  })

  test('rpc_allowlist_path: a missing or invalid file prevents the start', async () => {
    await expect(withGateway(`rpc_allowlist_path = "${join(folder, 'none.txt')}"`, async () => {})).rejects.toThrow(
      'none.txt',
    )
    await writeFile(join(folder, 'broken.txt'), 'an_int\nan_int(int)\n')
    await expect(withGateway(`rpc_allowlist_path = "${join(folder, 'broken.txt')}"`, async () => {})).rejects.toThrow(
      'broken.txt:2',
    )
  })

  test('rpc_require_schema_qualified: an unqualified name is answered with 403', async () => {
    await withGateway('rpc_require_schema_qualified = true', async one => {
      expect((await one.get('/api/rpc/an_int')).json.error).toMatchObject({ code: 'FORBIDDEN', status: 403 })
      expect((await one.get('/api/rpc/no_such')).status).toBe(403)
      expect((await one.get('/api/rpc/public.an_int')).json).toMatchObject({ data: 42, function: 'public.an_int' })
      expect((await one.get('/api/rpc/sales.an_int')).json).toMatchObject({ data: 43, function: 'sales.an_int' })
      const { functions } = (await one.get('/api/_rpc/contracts')).json
      expect(functions.find((of: { name: string }) => of.name === 'an_int').function).toBe('public.an_int')
    })
  })

  test('rpc_signature_check = false: PostgreSQL does not parse the call in advance', async () => {
    await execute(database.adminUrl, 'create function short_lived() returns int language sql return 1')
    await withGateway('rpc_signature_check = false\nschema_poll_secs = 3600', async one => {
      await execute(database.adminUrl, 'drop function short_lived')
      const options = { method: 'POST', body: '[]', headers: { 'Content-Type': 'application/json' } }
      expect((await one.get('/api/rpc/short_lived', options)).json.error).toMatchObject({
        ...{ code: 'QUERY_ERROR', details: { sqlstate: '42883' } },
      })
      expect((await one.get('/api/rpc/an_int?x=1')).json.error.message).toContain('no parameter "x"')
    })
  })

  test('functions can be called without prepared statements', async () => {
    await withGateway('prepared_statements = false', async one => {
      expect((await one.get('/api/rpc/an_int')).json.data).toBe(42)
      const headers = { 'x-svc-result-format': 'binary' }
      expect((await one.get('/api/rpc/an_int', { headers })).json.data).toBe('AAAAKg==')
    })
  })
})
