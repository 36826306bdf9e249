/** docs/guides/coming-from-postgrest.md#settings-in-the-database */
import { describe, expect, test } from 'vitest'
import { databaseFixture } from '../support/fixtures.ts'
import { testGateway } from '../support/gateway.ts'
import { execute } from '../support/postgres.ts'
import { postgrestFixture } from '../support/postgrest.ts'

describe('the settings that pre_config makes', () => {
  const { ask } = postgrestFixture(
    `create schema stock; create schema "Old Stock";
     create table stock.crates (id int primary key, weight int);
     create table "Old Stock".crates (id int primary key);
     create function stock.tare() returns int language sql immutable as 'select 7';
     insert into stock.crates values (1, 10), (2, 30), (3, 5);
     grant usage on schema stock, "Old Stock" to :anon;
     grant select on stock.crates, "Old Stock".crates to :anon;
     create function configure() returns void language sql as $$
       select set_config('pgrst.db_schemas', 'stock, Old Stock', true),
         set_config('pgrst.db_max_rows', '2', true),
         set_config('pgrst.db_anon_role', ':anon', true),
         set_config('pgrst.server_trace_header', '', true)
     $$;
     do $$ begin
       execute format('alter database %I set pgrst.db_aggregates_enabled = ''true''', current_database());
     end $$`,
    'pre_config = "public.configure"\nschemas = ["public"]\nmax_rows = 100\ntrace_header = "X-Trace"',
  )

  test('replace those of svc.toml', async () => {
    expect((await ask('/crates?order=id')).json).toEqual([
      { id: 1, weight: 10 },
      { id: 2, weight: 30 },
    ])
    expect((await ask('/crates', { headers: { 'Accept-Profile': 'Old Stock' } })).json).toEqual([])
    const { status, json } = await ask('/crates', { headers: { 'Accept-Profile': 'public' } })
    expect([status, json.code]).toEqual([406, 'PGRST106'])
  })

  test('settings that are stored for the database are read as well', async () => {
    expect((await ask('/crates?select=weight.sum()')).json).toEqual([{ sum: 45 }])
  })

  test('an empty setting replaces nothing', async () => {
    const { headers } = await ask('/crates', { headers: { 'X-Trace': 'abc' } })
    expect(headers.get('X-Trace')).toBe('abc')
  })
})

describe('the gateway does not start', () => {
  const database = databaseFixture()
  const start = async (body: string) => {
    await execute(
      database.adminUrl,
      `create or replace function configure() returns void language plpgsql as $$ begin ${body} end $$`,
    )
    const toml = '[postgrest]\nenabled = true\nanon_role = "a"\nrealtime = true\npre_config = "configure"'
    return testGateway(database.url, { toml })
  }

  test.each([
    [
      "raise 'no configuration for this cluster';",
      /postgrest.pre_config: calling configure\(\) failed: no configuration/,
    ],
    [
      "perform set_config('pgrst.db_max_rows', 'many', true);",
      /database: pgrst.db_max_rows: expected an integer .*, not "many"/,
    ],
    [
      "perform set_config('pgrst.jwt_secret', 'abc', true);",
      /pgrst.jwt_secret: is not read from the database; set JWT_SECRET/,
    ],
    [
      "perform set_config('pgrst.db_pre_request', 'check_it', true);",
      /pgrst.db_pre_request: cannot be combined with postgrest.realtime/,
    ],
  ])('after %s', async (body, message) => {
    await expect(start(body)).rejects.toThrow(message)
  })

  test('with a function that does not exist', async () => {
    const toml = '[postgrest]\nenabled = true\npre_config = "nowhere.configure"'
    await expect(testGateway(database.url, { toml })).rejects.toThrow(
      /postgrest.pre_config: calling nowhere.configure\(\) failed: schema "nowhere" does not exist/,
    )
  })
})
