/**
 * The effects of the SQL of `svc install` in a real database: what it records, who can read it, and what it
 * survives.
 */
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { databaseFixture } from '../../test/support/fixtures.ts'
import { feedUrl, installed } from '../../test/support/install.ts'
import { createDatabase, execute, testDatabase } from '../../test/support/postgres.ts'
import { PLAIN_ROLE } from '../../test/support/roles.ts'
import { uniqueName } from '../../test/support/server.ts'
import type { Query } from '../catalog/introspect.ts'
import { RETENTION_HOURS, ROWS_MAX, SLOTS } from './change-log.ts'
import { FORGOTTEN_AT_ONCE } from './idempotency-keys.ts'
import { readInstallation } from './installation.ts'
import { webhookIdSql } from './outbox.ts'
import { INSTALLED_VERSION, installScript, uninstallScript } from './script.ts'
import { REGISTER_TICKET } from './tickets.ts'

const database = databaseFixture()
let admin: pg.Client
let app: pg.Client
/** Connects as the feed role. */
let feed: pg.Client

beforeAll(async () => {
  admin = await connected(database.adminUrl)
  await admin.query(`
    alter default privileges in schema public grant all on tables to app;
    create table items (id int primary key, name text, amount numeric(10, 2));
    create table pairs (a int, "B b" text, v int, primary key ("B b", a));
    create table keyless (x int);
    create table parts (id int, d int, v text, primary key (d, id)) partition by range (d);
    create table parts_1 partition of parts for values from (0) to (10);
    create table parts_2 partition of parts for values from (10) to (20)`)
  await installed(database)
  await installed(database)
  app = await connected(database.url)
  feed = await connected(feedUrl(database))
})
afterAll(async () => {
  await admin.end()
  await app.end()
  await feed.end()
})

async function connected(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return client
}

const asker =
  (client: pg.Client): Query =>
  async (text, values) => {
    // All values as the text that PostgreSQL sends.
    const types = { getTypeParser: () => (value: unknown) => value }
    const { rows } = await client.query({ text, values: [...values], rowMode: 'array', types } as never)
    return rows as unknown as (string | null)[][]
  }

/** The installation for a gateway with role `app`. */
const found = () => readInstallation(asker(app), async () => asker(feed))

/**
 * The entries of the log for the transactions of `work`: `I items {"id": 1}`, with the key and the row
 * before the change if they are recorded.
 */
async function logged(work: () => Promise<unknown>, client = admin): Promise<readonly string[]> {
  const { rows: before } = await client.query('select coalesce(max(seq), 0) as seq from svc.change')
  await work()
  const { rows } = await client.query(
    `select concat_ws(' ', operation, "table", key, was, old) as entry from svc.change where seq > $1 order by seq`,
    [before[0].seq],
  )
  return rows.map(({ entry }) => entry)
}

describe('the change log', () => {
  beforeEach(() => admin.query('truncate items, pairs, keyless, parts'))

  test('records what each statement did to each row, in order, for every writer', async () => {
    expect(
      await logged(async () => {
        await app.query(`insert into items values (1, 'one', 1.50), (2, 'two', null)`)
        await app.query(`update items set name = upper(name)`)
        await app.query(`delete from items where id = 2`)
      }),
    ).toEqual([
      'I items {"id": 1}',
      'I items {"id": 2}',
      'U items {"id": 1} {"id":1,"name":"one","amount":1.50}',
      'U items {"id": 2} {"id":2,"name":"two","amount":null}',
      'D items {"id": 2} {"id":2,"name":"TWO","amount":null}',
    ])
  })

  test('records the actual operation of an upsert, and of a statement that does several things', async () => {
    expect(
      await logged(async () => {
        await app.query(`insert into items values (1, 'a')`)
        await app.query(
          `insert into items values (1, 'b'), (2, 'c') on conflict (id) do update set name = excluded.name`,
        )
        await app.query(`insert into items values (1, 'x') on conflict (id) do nothing`)
        await app.query(
          `with gone as (delete from items where id = 2 returning id) insert into items select id + 1 from gone`,
        )
      }),
    ).toEqual([
      'I items {"id": 1}',
      'U items {"id": 1} {"id":1,"name":"a","amount":null}',
      'I items {"id": 2}',
      expect.stringMatching(/^[ID] items {"id": [23]}/),
      expect.stringMatching(/^[ID] items {"id": [23]}/),
    ])
  })

  test('contains the key before an update that changes it, even if rows exchange keys', async () => {
    await app.query(`insert into items values (1, 'a'), (2, 'b')`)
    expect(await logged(() => app.query('update items set id = id + 10 where id = 1'))).toEqual([
      'U items {"id": 11} {"id": 1} {"id":1,"name":"a","amount":null}',
    ])
    await admin.query(
      `create table passed_on (id int primary key deferrable initially deferred); grant all on passed_on to app`,
    )
    await app.query('insert into passed_on values (2), (11)')
    expect(await logged(() => app.query('update passed_on set id = id + 9'))).toEqual([
      'U passed_on {"id": 11} {"id": 2} {"id":2}',
      'U passed_on {"id": 20} {"id": 11} {"id":11}',
    ])
    await admin.query('drop table passed_on')
  })

  test('has keys of several columns, and for a table without a key only that it changed', async () => {
    expect(
      await logged(async () => {
        await app.query(`insert into pairs values (1, 'x"y', 1)`)
        await app.query(`update pairs set v = 2`)
        await app.query(`insert into pairs values (2, 'y', 3)`)
        await app.query(`update pairs set a = a + 1, v = 4 where a = 2; update pairs set a = a + v`)
        await app.query(`insert into keyless values (1), (2)`)
      }),
    ).toEqual([
      'I pairs {"a": 1, "B b": "x\\"y"}',
      'U pairs {"a": 1, "B b": "x\\"y"} {"a":1,"B b":"x\\"y","v":1}',
      'I pairs {"a": 2, "B b": "y"}',
      'U pairs {"a": 3, "B b": "y"} {"a": 2, "B b": "y"} {"a":2,"B b":"y","v":3}',
      'U pairs {"a": 3, "B b": "x\\"y"} {"a": 1, "B b": "x\\"y"} {"a":1,"B b":"x\\"y","v":2}',
      'U pairs {"a": 7, "B b": "y"} {"a": 3, "B b": "y"} {"a":3,"B b":"y","v":4}',
      'B keyless',
    ])
  })

  test(`records more than ${ROWS_MAX} rows of a statement, and TRUNCATE, as one entry`, async () => {
    expect(
      await logged(async () => {
        await app.query(`insert into items select n from generate_series(1, ${ROWS_MAX}) as n`)
      }),
    ).toHaveLength(ROWS_MAX)
    expect(
      await logged(() => app.query(`insert into items select -n from generate_series(1, ${ROWS_MAX + 1}) as n`)),
    ).toEqual(['B items'])
    expect(await logged(() => app.query('truncate items'))).toEqual(['B items'])
    expect(await logged(() => app.query('delete from items'))).toEqual([])
  })

  test('records changes of partitions under their parent table, however they are written to', async () => {
    await admin.query('grant all on parts_2 to app')
    expect(
      await logged(async () => {
        await app.query(`insert into parts values (1, 5, 'a')`)
        await app.query(`update parts set d = 15`)
        await app.query(`update parts_2 set v = 'b'`)
      }),
    ).toEqual([
      'I parts {"d": 5, "id": 1}',
      'U parts {"d": 15, "id": 1} {"d": 5, "id": 1} {"id":1,"d":5,"v":"a"}',
      'U parts {"d": 15, "id": 1} {"id":1,"d":15,"v":"a"}',
    ])
  })

  test('is written with the change and rolled back with it', async () => {
    expect(
      await logged(() =>
        app.query(`begin; insert into items values (1); savepoint s; insert into items values (2); rollback to s;
          commit;
                   begin; insert into items values (3); rollback`),
      ),
    ).toEqual(['I items {"id": 1}'])
  })

  test('has the same format whatever the writer’s session settings are', async () => {
    await admin.query(`create table moments (at timestamptz primary key, lasts interval, share float8, data bytea,
      during tstzrange);
      grant all on moments to app`)
    const entries = await logged(async () => {
      await app.query(`begin; set local timezone = 'Asia/Tokyo'; set local datestyle = 'German';
        set local intervalstyle = 'sql_standard';
        set local bytea_output = 'escape'; set local extra_float_digits = -10;
        insert into moments values ('2026-01-02T03:04:05.678901Z', '1 day 02:03', 0.1::float8 + 0.2, '\\x00ff',
        '[2026-01-02T00:00:00Z,)');
        delete from moments; commit`)
    })
    expect(entries).toEqual([
      'I moments {"at": "2026-01-02T03:04:05.678901+00:00"}',
      'D moments {"at": "2026-01-02T03:04:05.678901+00:00"} {"at":"2026-01-02T03:04:05.678901+00:00","lasts":"1 ' +
        'day 02:03:00","share":0.30000000000000004,"data":"\\\\x00ff","during":"[\\"2026-01-02 00:00:00+00\\",)"}',
    ])
  })

  test('follows renames, key changes, new tables, and partitions that are attached and detached', async () => {
    expect(
      await logged(async () => {
        await admin.query('create table late (id int primary key, v text)')
        await admin.query(`insert into late values (1)`)
        await admin.query('alter table late rename column id to number')
        await admin.query(`insert into late values (2)`)
        await admin.query('alter table late rename to later')
        await admin.query(`insert into later values (3, 'c')`)
        await admin.query('truncate later; alter table later drop constraint late_pkey, add primary key (v)')
        await admin.query(`insert into later values (4, 'x')`)
        await admin.query(`create table parts_3 (like parts including all); insert into parts_3 values (7, 25)`)
        await admin.query('alter table parts attach partition parts_3 for values from (20) to (30)')
        await admin.query(`insert into parts_3 values (8, 26)`)
        await admin.query('alter table parts detach partition parts_3')
        await admin.query(`insert into parts_3 values (9, 27)`)
      }),
    ).toEqual([
      ...['B late', 'I late {"id": 1}', 'B late', 'B late', 'I late {"number": 2}', 'B late', 'B later'],
      ...['I later {"number": 3}', 'B later', 'B later', 'B later', 'I later {"v": "x"}'],
      // Attaching a partition adds its rows, and detaching it removes them.
      ...['B parts_3', 'I parts_3 {"d": 25, "id": 7}', 'B parts_3', 'B parts', 'I parts {"d": 26, "id": 8}'],
      ...['B parts', 'B parts_3', 'I parts_3 {"d": 27, "id": 9}'],
    ])
    await admin.query('drop table later, parts_3')
  })
})

test('a table with a foreign table as a partition is not captured, because its writes would fail', async () => {
  await admin.query(`create foreign data wrapper nowhere; create server nowhere foreign data wrapper nowhere;
    create table wide (id int not null) partition by range (id);
    create table wide_1 partition of wide for values from (0) to (10);
    create table above (id int)`)
  expect(await logged(() => admin.query('insert into wide values (1)'))).toEqual(['B wide'])
  await admin.query(`create foreign table wide_2 (id int not null) server nowhere;
    alter table wide attach partition wide_2 for values from (10) to (20);
    create foreign table below () inherits (above) server nowhere`)
  expect(await logged(() => admin.query('insert into wide values (2); insert into above values (1)'))).toEqual([])
  expect(await found()).toMatchObject({ broken: [] })
  await admin.query('drop table wide, above cascade; drop foreign data wrapper nowhere cascade')
})

describe('the outbox', () => {
  beforeEach(() => admin.query('truncate items, svc.webhook; delete from svc.webhook_trigger'))

  const outbox = async (): Promise<readonly unknown[]> =>
    (await admin.query('select trigger, operation, new, old, key, tenant from svc.webhook order by seq')).rows

  test('has a row for each change and each webhook trigger that selects it', async () => {
    await admin.query(`insert into svc.webhook_trigger values
      ('all', 'public', 'items', '{INSERT,UPDATE,DELETE}', 'database', true, 'name'),
      ('gone', 'public', 'items', '{DELETE}', 'database', false, null),
      ('ours', 'public', 'items', '{INSERT}', 'gateway', false, null),
      ('elsewhere', 'public', 'pairs', '{INSERT}', 'database', false, null)`)
    await app.query(`insert into items values (1, 'a', 0.10)`)
    await app.query(
      `begin; set local svc.origin = 'gateway'; insert into items values (1, 'b') on conflict (id) do update set ` +
        `name = 'b'; insert into items values (2); commit`,
    )
    await app.query('delete from items where id = 1')
    expect(await outbox()).toEqual([
      {
        trigger: 'all',
        operation: 'INSERT',
        new: { id: 1, name: 'a', amount: 0.1 },
        old: null,
        key: '{"id": 1}',
        tenant: 'a',
      },
      {
        trigger: 'all',
        operation: 'UPDATE',
        new: { id: 1, name: 'b', amount: 0.1 },
        old: { id: 1, name: 'a', amount: 0.1 },
        key: '{"id": 1}',
        tenant: 'b',
      },
      ...[
        {
          trigger: 'all',
          operation: 'INSERT',
          new: { id: 2, name: null, amount: null },
          old: null,
          key: '{"id": 2}',
          tenant: null,
        },
        {
          trigger: 'ours',
          operation: 'INSERT',
          new: { id: 2, name: null, amount: null },
          old: null,
          key: null,
          tenant: null,
        },
      ],
      {
        trigger: 'all',
        operation: 'DELETE',
        new: null,
        old: { id: 1, name: 'b', amount: 0.1 },
        key: '{"id": 1}',
        tenant: 'b',
      },
      {
        trigger: 'gone',
        operation: 'DELETE',
        new: null,
        old: { id: 1, name: 'b', amount: 0.1 },
        key: null,
        tenant: null,
      },
    ])
  })

  test('has every row of a statement that the change log records as one entry', async () => {
    await admin.query(
      `insert into svc.webhook_trigger values ('all', 'public', 'items', '{INSERT,UPDATE}', 'database', true, null)`,
    )
    await app.query(`insert into items select n from generate_series(1, ${ROWS_MAX + 500}) as n`)
    await app.query(`update items set name = id`)
    const { rows } = await admin.query(
      `select count(distinct ${webhookIdSql('webhook')})::int, count(*) filter (where operation = 'UPDATE'
         and (new ->> 'name') = (old ->> 'id'))::int as pairs from svc.webhook`,
    )
    expect(rows).toEqual([{ count: 2 * (ROWS_MAX + 500), pairs: ROWS_MAX + 500 }])
  })
})

describe('an installation of version 1', () => {
  test('is upgraded and keeps the waiting deliveries', async () => {
    await admin.query(`truncate items, svc.webhook; alter table svc.webhook alter column id set not null;
      update svc.installation set version = 1;
      insert into svc.webhook (id, trigger, "schema", "table", operation, created_at) values ('msg_1', 'all',
      'public', 'items', 'INSERT', now())`)
    expect(await found()).toMatchObject({ fix: 'Run svc install again.' })
    await installed(database)
    expect(await found()).toMatchObject({ broken: [] })
    await admin.query(`delete from svc.webhook_trigger; insert into svc.webhook_trigger values ('all', 'public',
      'items', '{INSERT}', 'database', false, null);
      insert into items values (600)`)
    const { rows } = await admin.query(`select ${webhookIdSql('w')} as id from svc.webhook as w order by w.seq`)
    expect(rows).toEqual([{ id: 'msg_1' }, { id: expect.stringMatching(/^msg_[0-9a-f]{32}$/) }])
    await admin.query('truncate svc.webhook, svc.webhook_trigger')
  })
})

describe('an installation of version 3', () => {
  test('is upgraded with idempotency keys, which only gateways with a ticket can use', async () => {
    await admin.query(`drop table svc.idempotency_key; update svc.installation set version = 3;
      drop function svc.claim_key, svc.store_answer, svc.find_answer, svc.count_keys;
      drop function svc.forget_keys, svc.check_ticket`)
    expect(await found()).toMatchObject({ reason: 'it has version 3, but this gateway requires version 5.' })
    await installed(database)
    expect(await found()).toMatchObject({ broken: [] })
    await expect(app.query('select * from svc.idempotency_key')).rejects.toThrow('permission denied')
    await expect(app.query(`select svc.claim_key('mine', '\\x00')`)).rejects.toThrow('for gateways only')
    await expect(app.query('select svc.forget_keys()')).rejects.toThrow('permission denied')
    await feed.query(REGISTER_TICKET, ['a ticket'])
    await app.query(`select svc.claim_key('a ticket', '\\x00112233445566778899')`)
    await feed.query('delete from svc.ticket')
  })

  test('expired keys are deleted in rounds', async () => {
    await admin.query(`insert into svc.idempotency_key select sha256(n::text::bytea), 't', '', 200, '{}', null,
      now() + (n - ${FORGOTTEN_AT_ONCE + 5}) * interval '1 hour' from generate_series(1, ${FORGOTTEN_AT_ONCE + 7}) n`)
    const forget = async () => (await feed.query('select svc.forget_keys() as n')).rows[0].n
    expect([await forget(), await forget(), await forget()]).toEqual([FORGOTTEN_AT_ONCE, 5, 0])
    expect((await admin.query('delete from svc.idempotency_key')).rowCount).toBe(2)
  })
})

describe('privileges', () => {
  beforeEach(() => admin.query('truncate items'))

  test('the gateway’s role can neither read the change log nor access the outbox, whatever it sets', async () => {
    const { rows: relations } = await admin.query(
      `select relname as name from pg_class where relnamespace = 'svc'::regnamespace and relkind in ('r', 'p', ` +
        `'v') order by 1`,
    )
    const open = new Set(['installation', 'served', 'selected', 'wal'])
    for (const setting of ['app.current_tenant_id', 'svc.origin', 'svc.repairing', 'app.is_super_admin'])
      await app.query('select set_config($1, $2, false)', [setting, 'on'])
    for (const { name } of relations) {
      const read = app.query(`select * from svc."${name}"`)
      if (open.has(name)) await read
      else await expect(read, name).rejects.toThrow('permission denied')
      for (const sql of [`insert into svc."${name}" default values`, `delete from svc."${name}"`])
        await expect(app.query(sql), sql).rejects.toThrow('permission denied')
      await expect(app.query(`truncate svc."${name}"`)).rejects.toThrow('permission denied')
    }
    for (const sql of [
      `update svc.installation set epoch = gen_random_uuid()`,
      `select nextval('svc.webhook_seq')`,
      'create table svc.mine ()',
      'set role app_feed',
      'set role svc_capture',
      'create temp table mine (id int); create trigger mine after insert on mine referencing new table as ' +
        'svc_new execute function svc.capture_insert()',
    ]) {
      await expect(app.query(sql), sql).rejects.toThrow('permission denied')
      await app.query('rollback')
    }
    await app.query('reset all')
  })

  test('the gateway’s role cannot call a function of the schema, except those that check a ticket', async () => {
    const { rows: functions } = await admin.query(
      `select proname as name, has_function_privilege('app', oid, 'EXECUTE') as granted,
        (select coalesce(string_agg('null', ', '), '') from generate_series(1, pronargs)) as arguments
      from pg_proc where pronamespace = 'svc'::regnamespace order by 1`,
    )
    expect(functions.map(({ name, granted }) => `${name}${granted ? ' with a ticket' : ''}`)).toEqual([
      ...['await_writers', 'capture_delete', 'capture_insert', 'capture_truncate', 'capture_update', 'check_ticket'],
      ...['claim_key with a ticket', 'count_keys with a ticket', 'find_answer with a ticket'],
      ...['forget_attempts', 'forget_changes', 'forget_keys', 'repair', 'schema_changed'],
      'store_answer with a ticket',
    ])
    for (const { name, granted, arguments: given } of functions)
      await expect(app.query(`select svc.${name}(${given})`), name).rejects.toThrow(
        granted ? 'idempotency keys are for gateways only' : `permission denied for function ${name}`,
      )
  })

  test('an installation of an earlier release loses the view through which statements stored webhooks', async () => {
    await admin.query(`create view svc.gateway_webhook as select null::text as trigger;
      create function svc.store() returns trigger language plpgsql as 'begin return new; end';
      create trigger svc_store instead of insert on svc.gateway_webhook for each row execute function svc.store();
      grant insert on svc.gateway_webhook to app`)
    await installed(database)
    const { rows } = await admin.query(
      `select to_regclass('svc.gateway_webhook') as view, to_regproc('svc.store') as function`,
    )
    expect(rows).toEqual([{ view: null, function: null }])
  })

  test('the feed role has rights to schema svc and to no table of the application', async () => {
    expect((await feed.query('select count(*) from svc.change')).rows).toHaveLength(1)
    for (const sql of [
      'select * from items',
      `insert into svc.change ("schema", "table", operation) values ('public', 'items', 'B')`,
      'delete from svc.change',
      `insert into svc.selected values ('pg_catalog', '')`,
      'create table svc.mine ()',
    ])
      await expect(feed.query(sql), sql).rejects.toThrow('permission denied')
  })

  test('a table is captured only while a gateway’s role can SELECT from it', async () => {
    await admin.query(`create table secrets (id int primary key, word text); revoke all on secrets from app`)
    expect(await logged(() => admin.query(`insert into secrets values (1, 'hush')`))).toEqual([])
    await admin.query('grant select (id) on secrets to app')
    expect(await logged(() => admin.query('delete from secrets'))).toHaveLength(1)
    await admin.query('drop table secrets')
  })

  test('upgrading an installation of version 2 revokes its grants and keeps the waiting deliveries', async () => {
    await admin.query(`grant select on svc.change to app; grant select, insert, update, delete on svc.webhook,
      svc.webhook_dead to app;
      grant select, insert on svc.webhook_attempt to app; grant usage on sequence svc.webhook_seq to app;
      grant execute on function svc.repair() to app;
      drop table svc.served, svc.ticket; update svc.installation set version = 2;
      insert into svc.webhook (trigger, "schema", "table", operation, created_at) values ('waits', 'public',
      'items', 'INSERT', now())`)
    expect(await found()).toMatchObject({ reason: expect.stringContaining('it has version 2') })
    await installed(database)
    expect(await found()).toMatchObject({ broken: [], feed: 'app_feed' })
    for (const sql of [
      'select * from svc.change',
      'select svc.repair()',
      'delete from svc.webhook',
      `select nextval('svc.webhook_seq')`,
    ])
      await expect(app.query(sql), sql).rejects.toThrow('permission denied')
    expect((await feed.query('delete from svc.webhook returning trigger')).rows).toEqual([{ trigger: 'waits' }])
  })

  test('upgrading an installation of version 4 renames what it has', async () => {
    await admin.query(`alter table svc.selected rename to chosen; create view svc.told as select null::text as trigger;
      alter function svc.repair() rename to mend; update svc.installation set version = 4`)
    await installed(database)
    expect(await found()).toMatchObject({ broken: [], feed: 'app_feed' })
    const { rows } = await admin.query(
      `select relname as name from pg_class where relnamespace = 'svc'::regnamespace and relname in ('chosen', 'told')
       union all select proname from pg_proc where pronamespace = 'svc'::regnamespace and proname = 'mend'`,
    )
    expect(rows).toEqual([])
  })

  test('any other role writes its rows without privileges on schema svc and cannot read it', async () => {
    const writer = uniqueName('writer')
    await admin.query(`create role ${writer}; grant all on items to ${writer}`)
    expect(await logged(() => admin.query(`set role ${writer}; insert into items values (77); reset role`))).toEqual([
      'I items {"id": 77}',
    ])
    await expect(execute(database.adminUrl, `set role ${writer}; select * from svc.change`)).rejects.toThrow(
      'permission denied for schema svc',
    )
    await admin.query(`drop owned by ${writer}; drop role ${writer}`)
  })

  test('code of a column’s type runs only with the privileges needed for the change log', async () => {
    await admin.query(`create table trap_log (by text);
      create type trap as enum ('x');
      create function trap_json(trap) returns json language plpgsql as $$ begin
        begin insert into public.trap_log values (current_user);
        exception when insufficient_privilege then raise notice 'no'; end;
        return to_json(current_user::text);
      end $$;
      create cast (trap as json) with function trap_json(trap);
      create table trapped (id int primary key, t trap)`)
    const entries = await logged(async () => {
      await admin.query(`insert into trapped values (1, 'x')`)
      await admin.query('delete from trapped')
    })
    expect(entries.at(-1)).toBe('D trapped {"id": 1} {"id":1,"t":"svc_capture"}')
    expect((await admin.query('select * from trap_log')).rows).toEqual([])
    await admin.query('drop table trapped, trap_log; drop type trap cascade')
  })

  test('functions of another schema cannot replace PostgreSQL’s own', async () => {
    await admin.query(`create schema trap; create function trap.jsonb_build_object(text,
      json) returns jsonb language sql as $$ select '"trapped"'::jsonb $$;
      create function trap.row_to_json(items) returns json language sql as $$ select '"trapped"'::json $$`)
    expect(
      await logged(() =>
        admin.query(`set search_path = trap, pg_catalog, public; insert into items values (78); reset search_path`),
      ),
    ).toEqual(['I items {"id": 78}'])
    await admin.query('drop schema trap cascade')
  })
})

describe('the self-check of the installation', () => {
  test('finds no installation, or the installation and its captured tables', async () => {
    const other = await testDatabase()
    const client = await connected(other.url)
    expect(await readInstallation(asker(client), async () => asker(feed))).toBeNull()
    await client.end()
    await other.drop()
    expect(await found()).toEqual({
      epoch: expect.stringMatching(/^[0-9a-f-]{36}\.1$/),
      isHere: true,
      feed: 'app_feed',
      captured: expect.objectContaining({ size: 5 }),
      fromWal: new Set(),
      usesWal: false,
      broken: [],
    })
  })

  test('missing triggers are repaired, including those of partitions', async () => {
    await admin.query(
      'drop trigger svc_capture_update on parts_2; alter table items disable trigger svc_capture_delete',
    )
    expect(await found()).toMatchObject({ broken: [] })
    expect(
      await logged(() => admin.query(`insert into items values (500); delete from items where id = 500`)),
    ).toHaveLength(2)
  })

  test('a table that cannot be repaired is reported and does not count as captured', async () => {
    await admin.query(
      'revoke execute on function svc.repair() from app_feed; drop trigger svc_capture_update on parts_2',
    )
    expect(await found()).toMatchObject({ broken: ['public.parts_2'] })
    const { captured } = (await found()) as { captured: ReadonlySet<string> }
    expect([...captured]).not.toContain('public.parts')
    await admin.query('grant execute on function svc.repair() to app_feed')
  })

  test('another version and another role’s installation are rejected with the fix', async () => {
    await admin.query('update svc.installation set version = 7')
    expect(await found()).toEqual({
      reason: 'it has version 7, but this gateway requires version 5.',
      fix: 'Run the version of the gateway that installed it.',
    })
    await admin.query('update svc.installation set version = 0')
    expect(await found()).toMatchObject({ fix: 'Run svc install again.' })
    await admin.query(`update svc.installation set version = ${INSTALLED_VERSION}; revoke usage on schema svc from app`)
    expect(await found()).toMatchObject({ fix: expect.stringContaining('--role') })
    await admin.query('grant usage on schema svc to app')
  })

  test('a copy of a database starts a new epoch of its log', async () => {
    await app.end()
    await feed.end()
    await admin.end()
    const copy = await createDatabase(database.port, database.database)
    admin = await connected(database.adminUrl)
    app = await connected(database.url)
    feed = await connected(feedUrl(database))
    const here = await found()
    const client = await connected(copy.url)
    const copied = await connected(feedUrl(copy))
    const there = await readInstallation(asker(client), async () => asker(copied))
    expect((await copied.query("select count(*)::int from svc.change where operation <> 'B'")).rows).toEqual([
      { count: 0 },
    ])
    expect(there).toMatchObject({ captured: (here as { captured: unknown }).captured })
    expect((there as { epoch: string }).epoch).not.toBe((here as { epoch: string }).epoch)
    await client.end()
    await copied.end()
    await copy.drop()
  })
})

describe('expired entries', () => {
  test('are deleted hour by hour, and the position is recorded', async () => {
    await admin.query('truncate svc.change')
    const { rows } = await admin.query(`select (extract(epoch from now())::bigint / 3600 % ${SLOTS})::int as slot`)
    const slot: number = rows[0].slot
    const next = (slot + 1) % SLOTS
    await admin.query(`insert into svc.change (slot, xid, at, "schema", "table", operation) values
      (${next}, '11', now() - interval '${RETENTION_HOURS + 1} hours', 'public', 'items', 'B'),
      (${slot}, '5', now() - interval '${RETENTION_HOURS + 1} hours', 'public', 'items', 'B'),
      (${slot}, '12', now(), 'public', 'items', 'B')`)
    expect((await feed.query('select svc.forget_changes() as did')).rows).toEqual([{ did: true }])
    expect((await admin.query('select xid from svc.change')).rows).toEqual([{ xid: '12' }])
    expect((await admin.query('select forgotten from svc.installation')).rows).toEqual([{ forgotten: '11' }])
    expect((await feed.query('select svc.forget_changes() as did')).rows).toEqual([{ did: false }])
  })

  test('are deleted without waiting for readers or blocking them', async () => {
    await admin.query('truncate svc.change')
    await admin.query(`insert into svc.change (slot, xid, at, "schema", "table", operation)
      select (extract(epoch from now())::bigint / 3600 + 1) % ${SLOTS}, '13',
      now() - interval '${RETENTION_HOURS + 1} hours', 'public', 'items', 'B'`)
    await admin.query('begin; select count(*) from svc.change')
    expect((await feed.query('select svc.forget_changes() as did')).rows).toEqual([{ did: false }])
    await admin.query('commit')
    expect((await feed.query('select svc.forget_changes() as did')).rows).toEqual([{ did: true }])
  })

  test('of webhook attempts are kept for a week', async () => {
    await admin.query(`insert into svc.webhook_attempt (day, at, webhook, trigger, try, outcome, duration_ms) values
      ((extract(epoch from now())::bigint / 86400 + 1) % 8, now() - interval '7 days 1 hour', 'msg_old', 't', 1,
      'delivered', 1),
      (extract(epoch from now())::bigint / 86400 % 8, now(), 'msg_new', 't', 1, 'delivered', 1)`)
    expect((await feed.query('select svc.forget_attempts() as did')).rows).toEqual([{ did: true }])
    expect((await admin.query('select webhook from svc.webhook_attempt')).rows).toEqual([{ webhook: 'msg_new' }])
  })
})

describe('svc uninstall', () => {
  test.each([
    [
      'a gateway that reads the log',
      { first: 'select count(*) from svc.change', later: 'select version from svc.installation' },
    ],
    [
      'an application that writes to a captured table',
      {
        first: 'lock table items in row exclusive mode',
        later: 'insert into items values (1); insert into items values (2)',
      },
    ],
    [
      'a session that locks in the opposite order',
      { first: 'select version from svc.installation', later: 'select count(*) from svc.change' },
    ],
  ])('waits for %s, and ends neither as a deadlock', async (_, { first, later }) => {
    const remove = [...uninstallScript({ superuser: true }), "select to_regnamespace('svc') is null as result"]
    expect(await besides({ first, later, install: [], script: remove })).toBe(true)
  })
})

test('svc install waits for a gateway that stores decoded changes, and ends neither as a deadlock', async () => {
  const selected = [{ schema: 'public', table: null }]
  const install = installScript({ role: PLAIN_ROLE, selected, superuser: true, capture: 'wal' })
  const first = "update svc.wal set stored = '0/1'"
  const later = `insert into svc.change ("schema", "table", operation) values ('public', 'items', 'B')`
  const script = [...install, "select stored = '0/1' as result from svc.wal"]
  expect(await besides({ first, later, install, script })).toBe(true)
})

interface Besides {
  /** The statement of another transaction before the script begins. */
  readonly first: string
  /** Its next statements, while the script waits for it. */
  readonly later: string
  /** Run before; by default as the tests install. */
  readonly install: readonly string[]
  /** Its last statement returns `result`. */
  readonly script: readonly string[]
}

/** Runs a script while another transaction is open, and returns its result, or the message of its error. */
async function besides({ first, later, install, script }: Besides): Promise<unknown> {
  const own = await testDatabase()
  const [other, runner, watcher] = await Promise.all([1, 2, 3].map(() => connected(own.adminUrl)))
  try {
    if (other === undefined || runner === undefined || watcher === undefined) throw new Error('three connections')
    await other.query('create table items (id int primary key); grant select on items to app')
    await (install.length === 0 ? installed(own) : other.query(['begin', ...install, 'commit'].join(';\n')))
    await other.query('begin')
    await other.query(first)
    const ran = runner.query(['begin', ...script, 'commit'].join(';\n')).then(
      results => [...(Array.isArray(results) ? results : [results])].at(-2)?.rows[0]?.result,
      (error: Error) => error.message,
    )
    const waiting = "select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    await vi.waitFor(async () => expect((await watcher.query(waiting)).rows).toHaveLength(1), {
      ...{ timeout: 10_000, interval: 10 },
    })
    await other.query(later)
    await other.query('commit')
    return await ran
  } finally {
    await Promise.all([other, runner, watcher].map(client => client?.end()))
    await own.drop()
  }
}
