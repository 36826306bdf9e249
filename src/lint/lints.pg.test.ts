/** Every lint finds the problems that it is for and nothing else, and the SQL that it prints fixes them. */
import { beforeEach, describe, expect, test } from 'vitest'
import { databaseFixture } from '../../test/support/fixtures.ts'
import { lintedDatabase } from '../../test/support/lint.ts'
import { sqlSince } from '../../test/support/postgres-version.ts'
import { testSince } from '../../test/support/test-since.ts'
import type { LintTarget } from './lint.ts'
import { LINTS } from './lints.ts'
import { SERVER_LINTS } from './server.ts'

interface Case {
  readonly target?: Partial<LintTarget>
  /** Creates the objects that the lint must find. */
  readonly bad: string
  readonly objects: readonly string[]
  /** Creates similar objects that the lint must not find. */
  readonly good: string
  /** Undoes what the case creates. */
  readonly after?: string
  /** The lint prints no SQL, because the fix depends on the intention. */
  readonly noSql?: true
  /** The first version for which the lint prints SQL, and what older versions lack. */
  readonly since?: readonly [major: number, lacks: string]
}

const TENANT = `(select nullif(current_setting('app.current_tenant_id', true), '')::int)`
/** A table without findings, with one additional policy. */
const table = (name: string, columns = '', policy = '') => `
  create table ${name} (id int generated always as identity primary key, tenant_id int not null ${columns});
  create index on ${name} (tenant_id);
  alter table ${name} enable row level security, force row level security;
  create policy own on ${name} using (tenant_id = ${TENANT}); ${policy === '' ? '' : `create policy ${policy};`}`

const CASES: Readonly<Record<string, Case>> = {
  'tenant-table-unprotected': {
    bad: `create table bare (tenant_id int);
      create table enabled (tenant_id int); alter table enabled enable row level security;
      create table "fo""rced" (tenant_id char(2)); alter table "fo""rced" force row level security;
      create table parts (tenant_id uuid) partition by list (tenant_id);
      create table part partition of parts default;
      create table sales."Ta ble's" (tenant_id text)`,
    objects: ['bare', 'enabled', 'fo"rced', 'parts', "sales.Ta ble's"],
    good: `${table('safe')}
      create table other (id int);
      create table gone (tenant_id int, id int); alter table gone drop column tenant_id;
      create table hidden (tenant_id int); revoke all on hidden from app;
      create schema unpublished; create table unpublished.bare (tenant_id int)`,
    after: 'drop schema if exists unpublished cascade',
  },
  'tenant-foreign-table': {
    bad: `create foreign data wrapper nothing; create server nowhere foreign data wrapper nothing;
      create foreign table "f ar" (tenant_id int) server nowhere`,
    objects: ['f ar'],
    good: `create foreign data wrapper nothing; create server nowhere foreign data wrapper nothing;
      create foreign table far (id int) server nowhere;
      create foreign table hidden (tenant_id int) server nowhere; revoke all on hidden from app`,
    after: 'drop foreign data wrapper if exists nothing cascade',
  },
  'view-not-invoker': {
    target: { exposedViews: ['plain', 'Su m', 'off', 'sales.plain', 'invoker', 'own', 'gone', 'public.unlisted'] },
    bad: `create view plain as select 1 as a; create view "Su m" as select 1 as a;
      create view off ${sqlSince(15, 'with (security_invoker = off)')} as select 1 as a;
      create view sales.plain as select 1 as a`,
    objects: ['Su m', 'off', 'plain', 'sales.plain'],
    good: `create view invoker with (security_invoker) as select 1 as a; create view unlisted as select 1 as a;
      create view own as select 1 as a; alter view own owner to app`,
  },
  'materialized-view-exposed': {
    target: { exposedViews: ['kept', 'hidden'] },
    bad: 'create materialized view kept as select 1 as a; grant select on kept to public',
    objects: ['kept'],
    good: `create materialized view hidden as select 1 as a; revoke all on hidden from app;
      create materialized view unlisted as select 1 as a`,
  },
  'owner-not-bound': {
    bad: `create table mine (id int primary key); alter table mine owner to app, enable row level security;
      create policy p on mine using (id = 1)`,
    objects: ['mine'],
    good: `create table forced (id int); alter table forced owner to app, enable row level security,
      force row level security;
      create table theirs (id int); alter table theirs enable row level security;
      create table plain (id int); alter table plain owner to app`,
  },
  'policies-not-enabled': {
    bad: 'create table lax (id int); create policy p on lax using (id = 1)',
    objects: ['lax'],
    good:
      'create table strict (id int); alter table strict enable row level security; create policy p on strict ' +
      'using (id = 1); create table plain (id int)',
  },
  'tenant-child-unprotected': {
    bad: `${table('customers')} create table products (id int primary key);
      create table "Pay ments" (id int primary key, customer int references customers, product int references products);
      create table sales.refunds (payment int references "Pay ments", id int primary key);
      alter table customers add favourite int references products`,
    objects: ['Pay ments', 'sales.refunds'],
    good: `${table('customers', ', country int')} create table countries (id int primary key);
      alter table customers add foreign key (country) references countries;
      create table payments (customer int references customers);
      alter table payments enable row level security, force row level security;
      create policy own on payments using (exists (select from customers c where c.id = customer));
      create table hidden (customer int references customers); revoke all on hidden from app`,
  },
  'secret-column-readable': {
    bad:
      'create table staff (id int, password text, "API key" text, "apiKey" text, reset_token text, token_hash ' +
      'bytea, "userToken" text, "csrfTokenHash" text)',
    objects: [
      'staff.apiKey',
      'staff.csrfTokenHash',
      'staff.password',
      'staff.reset_token',
      'staff.token_hash',
      'staff.userToken',
    ],
    good: `create table staff (id int, tokens_used int, "maxTokens" int, secretary text, password text);
      revoke all on staff from app; grant select (id, tokens_used, "maxTokens") on staff to app`,
    noSql: true,
  },
  'view-unpublished': {
    since: [15, 'security_invoker'],
    target: { exposedViews: ['listed', 'public.too'] },
    bad: 'create view plain as select 1 as a; create view sales."Su m" as select 1 as a',
    objects: ['plain', 'sales.Su m'],
    good: `create view listed as select 1 as a; create view too as select 1 as a;
      create view invoker with (security_invoker) as select 1 as a;
      create view hidden as select 1 as a; revoke all on hidden from app`,
  },
  'policy-on-system-table': {
    target: { schemas: ['information_schema'] },
    bad: `set allow_system_table_mods = on; grant select on information_schema.sql_features to app;
      create policy p on information_schema.sql_features using (true)`,
    objects: ['sql_features'],
    good: 'create table t (id int); create policy p on t using (true)',
    after: 'drop policy if exists p on information_schema.sql_features; reset allow_system_table_mods',
  },
  'policy-always-true': {
    bad: `${table('a', '', 'open on a using (true)')} ${table('b', '', 'reads on b for select using (true) ')}
      ${table('c', '', '"wri tes" on c for insert with check (true)')}
      ${table('d', '', `moves on d for update using (tenant_id = ${TENANT}) with check (true)`)}`,
    objects: ['moves on d', 'open on a', 'reads on b', 'wri tes on c'],
    good: `${table('a', '', 'narrows on a as restrictive using (true)')}
      ${table('b', '', 'elsewhere on b to pg_monitor using (true)')}
      ${table(
        'c',
        '',
        `open on c using (true);
        create policy tenant on c as restrictive using (tenant_id = ${TENANT})`,
      )}
      create table languages (id int); alter table languages enable row level security;
      create policy everybody on languages using (true)`,
  },
  'policy-check-without-tenant': {
    bad: `${table(
      'a',
      ', kind text',
      `moves on a for update using (tenant_id = ${TENANT}) with check (kind <> 'x' or kind is null)`,
    )}
      ${table(
        'b',
        ', kind text',
        `adds on b for insert with check (current_setting('app.current_role', true) = 'clerk')`,
      )}`,
    objects: ['adds on b', 'moves on a'],
    good: `${table(
      'a',
      ', kind text',
      `moves on a for update using (tenant_id = ${TENANT}) with check (tenant_id = ${TENANT} and kind <> 'x')`,
    )}
      ${table('b', ', parent int', `adds on b for insert with check (exists (select from a where a.id = parent))`)}
      ${table('c', ', kind text', `narrows on c as restrictive with check (kind <> 'x')`)}
      ${table('d', '', `default_check on d for update using (tenant_id = ${TENANT})`)}`,
  },
  'policy-unknown-setting': {
    bad: `${table('a', '', `typo on a using (tenant_id = current_setting('app.curent_tenant_id', true)::int)`)}
      ${table(
        'b',
        '',
        `twice on b using (tenant_id = (select current_setting('app.current_tenant_ids', true))::int)
        with check (tenant_id = 1 and current_setting('app.curent_role', true) = 'it''s')`,
      )}`,
    objects: ['twice on b (app.current_tenant_ids, app.curent_role)', 'typo on a (app.curent_tenant_id)'],
    good: `${table(
      'a',
      '',
      `claims on a using (tenant_id = ((select current_setting('request.jwt.claims', true))::json ->> ` +
        `'org')::int)`,
    )}
      ${table('b', '', `zone on b using (current_setting('TimeZone') = 'UTC' and tenant_id = ${TENANT})`)}
      ${table('c', '', `set_by_database on c using (current_setting('app.region') = 'eu' and tenant_id = ${TENANT})`)}
      do $$ begin execute format('alter database %I set app.region = %L', current_database(), 'eu'); end $$`,
    after: "do $$ begin execute format('alter database %I reset app.region', current_database()); end $$",
  },
  'policy-per-row': {
    bad: `${table(
      'a',
      '',
      `slow on a using (tenant_id = nullif(current_setting('app.current_tenant_id', true), '')::int)`,
    )}
      create schema private; create function private."whose ( "() returns int stable language sql return 1;
      grant usage on schema private to app;
      ${table(
        'sales."b ""\'x"',
        '',
        `slow on sales."b ""'x" using (tenant_id = ${TENANT}) with check (tenant_id = private."whose ( "())`,
      )}`,
    objects: ['slow on a', 'slow on sales.b "\'x'],
    good: `${table(
      'a',
      ', note text',
      `quoted on a using (tenant_id = ${TENANT} and note <> 'current_setting(''app.x'')')`,
    )}
      create function sales.current_setting(text) returns text stable language sql return 'x';
      ${table('b', '', `other on b using (tenant_id = ${TENANT} and sales.current_setting('x') = 'x')`)}
      ${table(
        'c',
        ', b int',
        `nested on c using (exists (select from b where b.id = c.b
        and b.tenant_id = current_setting('app.current_tenant_id', true)::int))`,
      )}`,
    after: 'drop schema if exists private cascade',
  },
  'grant-without-policy': {
    bad: `create table audit (id int); alter table audit enable row level security;
      create policy reads on audit for select using (id > 0); revoke delete on audit from app;
      create table closed (id int); alter table closed enable row level security; revoke all on closed from app;
      grant select (id) on closed to public;
      create policy others on closed to pg_monitor using (true);
      create table limiting (id int); alter table limiting enable row level security;
      create policy narrows on limiting as restrictive using (id > 0)`,
    objects: ['audit (insert, update)', 'closed (select)', 'limiting (delete, insert, select, update)'],
    good: `${table('a')} create table plain (id int);
      create table reading (id int); alter table reading enable row level security; revoke all on reading from app;
      grant select on reading to app; create policy reads on reading for select using (id > 0)`,
  },
  'truncate-granted': {
    bad: `${table('a')} grant all on a to app; ${table('"b\\"" ')} grant truncate on "b\\"" to public`.replaceAll(
      '\\"',
      '""',
    ),
    objects: ['a', 'b"'],
    good: `${table('a')} create table plain (id int); grant truncate on plain to app;
      ${table('mine')} alter table mine owner to app`,
  },
  'grant-to-public': {
    bad: `create table a (id int, "na me" text); grant select, insert on a to public;
      create table sales.b (id int, "na me" text); grant select (id, "na me"), update ("na me") on sales.b to public;
      create table c (id int); grant truncate on c to public`,
    objects: ['a', 'c', 'sales.b'],
    good:
      'create table a (id int); create schema unpublished; create table unpublished.b (id int); grant select on ' +
      'unpublished.b to public',
    after: 'drop schema if exists unpublished cascade',
  },
  'schema-create-granted': {
    bad: 'grant create on schema public to public; grant create on schema sales to app',
    objects: ['public', 'sales'],
    good: 'grant create on schema sales to pg_monitor; grant usage on schema sales to public',
  },
  'change-log-open': {
    bad: `create schema svc; grant usage on schema svc to app;
      create table svc.change (id int); grant select on svc.change to app;
      create table svc.webhook (id int); grant insert on svc.webhook to public`,
    objects: ['svc.change', 'svc.webhook'],
    good: `create schema svc; grant usage on schema svc to app;
      create table svc.change (id int); create table svc.webhook (id int);
      revoke all on svc.change, svc.webhook from app;
      create table svc.installation (id int); grant select on svc.installation to app`,
    after: 'drop schema if exists svc cascade',
  },
  'definer-search-path': {
    bad: `create function sales."f "" (x"(a text, b sales.kind) returns int security definer language sql return 1;
      create procedure p() security definer language sql as 'select 1';
      create schema private;
      create function private.touch() returns trigger security definer language plpgsql as 'begin return new; end';
      create table t (id int); create trigger touch before insert on t for each row execute function private.touch()`,
    objects: ['private.touch()', 'public.p()', 'sales."f "" (x"(text,sales.kind)'],
    good: `create function f() returns int security definer set search_path = public, pg_temp language sql return 1;
      create function empty() returns int security definer set search_path = '' language sql return 1;
      create function invoker() returns int language sql return 1;
      create schema private; create function private.f() returns int security definer language sql return 1`,
    after: 'drop schema if exists private cascade',
  },
  'definer-bypasses-rls': {
    bad:
      'create function all_rows("o""dd" int) returns int security definer set search_path = public, pg_temp ' +
      'language sql return 1',
    objects: ['public.all_rows(integer)'],
    good: `create function bound() returns int security definer language sql return 1;
      alter function bound() owner to pg_monitor;
      create function shut() returns int security definer language sql return 1;
      revoke execute on function shut from public;
      create function invoker() returns int language sql return 1;
      create function fires() returns trigger security definer language plpgsql as 'begin return new; end'`,
  },
  'tenant-index': {
    bad: `create table a (id int, tenant_id int); create index on a (id, tenant_id);
      create table b (tenant_id int); create index on b (tenant_id) where tenant_id > 5;
      create table parts (tenant_id int, id int) partition by range (id)`,
    objects: ['a', 'b', 'parts'],
    good: `create table a (tenant_id int, id int, primary key (tenant_id, id));
      create table parts (tenant_id int) partition by list (tenant_id); create table plain (id int)`,
  },
  'foreign-key-index': {
    bad: `create table parents (id int primary key, other int, unique (other, id));
      create table children (a int references parents, b int, c int, "D d" int, foreign key (b,
      c) references parents (other, id));
      create index on children (c); create index on children (b) include (c); create index on children (b, a, c);
      alter table children add constraint "o""dd" foreign key ("D d") references parents`,
    objects: ['children_a_fkey on children', 'children_b_c_fkey on children', 'o"dd on children'],
    good: `create table parents (id int primary key, other int, unique (other, id));
      create table children (a int references parents, b int, c int, tenant_id int references parents,
      foreign key (b, c) references parents (other, id));
      create index on children (c, b, a); create index on children (a) where a is not null`,
  },
  'foreign-key-across-tenants': {
    since: [15, 'ON DELETE SET NULL (column)'],
    bad: `${table('parents')}
      ${table(
        'children',
        ', a int references parents on delete cascade, b int references parents on update cascade on delete set ' +
          'null deferrable initially deferred',
      )}
      ${table('sales."Chi ld"', ', parent int')}
      alter table sales."Chi ld" add constraint "o""dd" foreign key (parent) references parents not valid;
      ${table('trees', ', up int references trees')}`,
    objects: [
      'children_a_fkey on children',
      'children_b_fkey on children',
      'o"dd on sales.Chi ld',
      'trees_up_fkey on trees',
    ],
    good: `${table('parents')} alter table parents add unique (id, tenant_id);
      create table countries (id int primary key);
      ${table('children', ', a int, country int references countries')}
      alter table children add foreign key (tenant_id, a) references parents (tenant_id, id);
      create table plain (a int references parents)`,
  },
  'unique-across-tenants': {
    bad: `${table(
      'a',
      `, email text, a int, b int, unique (email),
        constraint "o""dd" unique ${sqlSince(15, 'nulls not distinct')} (a, b) include (email) deferrable`,
    )}
      create unique index "lo wer" on a (lower(email)) where email <> '';
      create table sales.natural (sku text primary key, tenant_id int);
      create table parts (tenant_id int, id int) partition by range (id); create unique index parts_id on parts (id)`,
    objects: ['a_email_key on a', 'lo wer on a', 'natural_pkey on sales.natural', 'o"dd on a', 'parts_id on parts'],
    good: `${table(
      'a',
      ', email text, token uuid unique default gen_random_uuid(), unique (tenant_id, email), unique (email, ' +
        'tenant_id)',
    )}
      create table lines (a int references a, line int, tenant_id int, primary key (a, line));
      create table referred (code text primary key, tenant_id int); create table refers (code text references referred);
      create table plain (email text unique)`,
  },
}

const database = databaseFixture(lintedDatabase)

beforeEach(() => database.reset())

async function found(name: string, target: Partial<LintTarget> = {}) {
  return (await database.findings(target)).find(({ check }) => check === name)
}

test('every lint has a case, except those of the server, which are tested separately', () => {
  const names = LINTS.filter(lint => !SERVER_LINTS.includes(lint)).map(({ name }) => name)
  expect(Object.keys(CASES)).toEqual(names)
})

const SUPPORTED = [14, ''] as const

describe.each(Object.entries(CASES))('%s', (name, { target, bad, objects, good, after = '', noSql, since }) => {
  const testHere = testSince(...(since ?? SUPPORTED))

  testHere('is found, and its SQL fixes it', async () => {
    try {
      await database.admin.run(
        `${name === 'definer-search-path' ? "create type sales.kind as enum ('a');" : ''} ${bad}`,
      )
      const finding = await found(name, target)
      expect(finding?.objects).toEqual(objects)
      if (noSql) {
        expect(finding?.sql).toEqual([])
        return
      }
      expect(finding?.sql?.length).toBeGreaterThan(0)
      for (const statement of finding?.sql ?? []) await database.admin.run(statement)
      expect(await found(name, target)).toBeUndefined()
    } finally {
      await database.admin.run(after)
    }
  })

  testHere('what is right is not found', async () => {
    try {
      await database.admin.run(good)
      expect(await found(name, target)).toBeUndefined()
    } finally {
      await database.admin.run(after)
    }
  })
})

test('a statement that weakens a key begins with a comment about it', async () => {
  await database.admin.run(`${table('parents')}
    create table children (id int primary key, tenant_id int, email text unique, parent int references parents);
    create unique index lower_email on children (lower(email))`)
  const sqlOf = async (name: string) => (await found(name))?.sql ?? []
  const weakening = [...(await sqlOf('unique-across-tenants')), ...(await sqlOf('foreign-key-across-tenants'))]
  const constraints = weakening.filter(statement => /drop (constraint|index)|create unique index/.test(statement))
  expect(constraints.length).toBeGreaterThan(3)
  for (const statement of constraints) expect(statement.split('\n')[0]).toContain('/* weakens the key: ')
})

testSince(15, 'ON DELETE SET NULL (column)')(
  'a suggested foreign key keeps what the old one does, or says what it loses',
  async () => {
    await database.admin.run(`
    create table pairs (a int, b int, tenant_id int not null, primary key (a, b));
    create table users_of_pairs (
      id int primary key, tenant_id int not null, a int, b int, c int not null, d int not null,
      constraint "full" foreign key (a, b) references pairs match full,
      constraint whole foreign key (c, d) references pairs match full,
      constraint part foreign key (a, b) references pairs on delete set null (b)
    )`)
    const sql = ((await found('foreign-key-across-tenants'))?.sql ?? []).filter(text => text.includes('users_of_pairs'))
    expect(sql).toEqual([
      expect.stringMatching(/^\/\* weakens the key: MATCH FULL is left out.*constraint "full"/),
      expect.stringMatching(/^alter table .* drop constraint part, .* on delete set null \(b\);$/),
      expect.stringMatching(/^alter table .* drop constraint whole,/),
    ])
  },
)
