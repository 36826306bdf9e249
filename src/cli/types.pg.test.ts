/** `svc types`: what it writes compiles, and is true of the answers of a gateway. */
import { execFile } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { databaseFixture, folderFixture, gatewayFixture } from '../../test/support/fixtures.ts'
import { execute } from '../../test/support/postgres.ts'
import { POSTGRES_MAJOR } from '../../test/support/postgres-version.ts'
import { sampleDatabase } from '../../test/support/sample.ts'
import { ROOT } from '../../test/tidy/tree.ts'
import { run } from './program.ts'
import type { SignalSource } from './signals.ts'
import { types } from './types.ts'

const COMPILE_MS = 120_000

const database = databaseFixture(`
  create type mood as enum ('ok', 'it''s "bad"');
  create type point3 as (x int, y numeric);
  create domain percent as int default 5 check (value between 0 and 100);
  create domain moods as mood[];
  create table owners (
    id int primary key, name text not null, parent int references owners, main_id int references owners);
  comment on table owners is 'People */ with
    two lines';
  create table everything (
    id bigint generated always as identity primary key,
    owner_id int not null references owners,
    a_int2 int2 not null, a_int4 int4 not null default 3, an_int8 int8 not null, a_float4 float4 not null,
    a_float8 float8 not null, a_numeric numeric(12, 2) not null, a_bool bool not null, a_text text not null,
    a_varchar varchar(9), a_char char(3), a_name name, a_bytea bytea, a_uuid uuid not null, a_json json not null,
    a_jsonb jsonb, a_date date not null, a_time time, a_timetz timetz, a_timestamp timestamp,
    a_timestamptz timestamptz not null default now(), an_interval interval, an_inet inet, a_cidr cidr,
    a_macaddr macaddr, a_bit bit(3), a_varbit varbit, a_money money, an_oid oid, a_point point, a_box box,
    a_range int4range, a_multirange int4multirange, a_vector tsvector, an_xml xml, a_mood mood not null,
    some_moods mood[], a_percent percent not null, a_domain moods, a_composite point3, some_ints int[] not null,
    some_texts text[], some_json jsonb[], some_dates date[],
    doubled int generated always as (a_int2 * 2) stored, "a name" text, "class" int
  );
  comment on column everything.a_jsonb is E'Its settings.\\n@type Settings';
  comment on column everything.some_json is '@type Settings[]';
  comment on column everything.a_json is '@type Settings }; evil: {';
  create view seen with (security_invoker) as select id, a_mood, a_numeric from everything;
  create function tripled(value int) returns int stable language sql as 'select value * 3';
  create function doubled(amount bigint, name text default 'x') returns table (id bigint, total numeric)
    stable language sql as 'select amount, 2.5';
  create function pick(of int) returns owners stable language sql as 'select * from owners where id = of';
  create function all_owners() returns setof owners stable language sql as 'select * from owners';
  create function nothing(a_mood mood) returns void language sql as '';
  insert into owners values (1, 'Ann', null, null), (2, 'Bo', 1, 1);
  insert into everything (owner_id, a_int2, an_int8, a_float4, a_float8, a_numeric, a_bool, a_text, a_varchar,
    a_char, a_name, a_bytea, a_uuid, a_json, a_jsonb, a_date, a_time, a_timetz, a_timestamp, an_interval, an_inet,
    a_cidr, a_macaddr, a_bit, a_varbit, a_money, an_oid, a_point, a_box, a_range, a_multirange, a_vector, an_xml,
    a_mood, some_moods, a_percent, a_domain, a_composite, some_ints, some_texts, some_json, some_dates)
  values (1, 1, 9007199254740993, 1.5, 2.5, 12.50, true, 'a', 'b', 'c', 'd', '\\x01', gen_random_uuid(), '[1]',
    '{"theme": "dark"}', '2026-01-02', '01:02', '01:02+01', '2026-01-02 03:04', '1 day', '10.0.0.1', '10.0.0.0/8',
    '08:00:2b:01:02:03', b'101', b'1', 1.5, 7, '(1,2)', '((0,0),(1,1))', '[1,2)', '{[1,2)}', 'a', '<a/>', 'ok',
    '{ok}', 7, '{ok}', '(1,2.5)', '{1,2}', '{a}', array['{"theme": "dark"}'::jsonb], '{2026-01-02}'),
    (2, 1, 1, 1, 1, 1, false, '', null, null, null, null, gen_random_uuid(), 'null', null, '2026-01-02', null, null,
    null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, 'ok', null, 7, null,
    null, '{}', null, null, null);
  grant all on all tables in schema public to app;`)
const gateway = gatewayFixture(database)
const folder = folderFixture(join(ROOT, '.cache'))
const sample = databaseFixture(sampleDatabase)

function worldOf(url: string, environment: Readonly<Record<string, string>> = {}) {
  const lines = { out: [] as string[], error: [] as string[] }
  const signals = Object.assign(new EventEmitter(), { exit() {} }) as unknown as SignalSource & EventEmitter
  return {
    ...lines,
    world: {
      ...{ environment: { DATABASE_URL: url, ...environment }, workingDirectory: folder, signals },
      input: async () => new Uint8Array(),
      stdio: () => ({ input: new PassThrough(), output: new PassThrough() }),
      out: (line: string) => void lines.out.push(line),
      error: (line: string) => void lines.error.push(line),
      ...{ hasColors: false, terminal: null },
    },
  }
}

async function svc(argv: readonly string[], url = database.url, environment: Readonly<Record<string, string>> = {}) {
  const { world, out, error } = worldOf(url, environment)
  const code = await run(argv, world)
  return { code, text: out.join('\n'), error: error.join('\n') }
}

/** The compiler's messages; empty if the files compile. */
async function compile(files: Readonly<Record<string, string>>): Promise<string> {
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
  const compilerOptions = {
    ...{ strict: true, exactOptionalPropertyTypes: true, noEmit: true, module: 'nodenext', target: 'es2022' },
    ...{ types: [], allowImportingTsExtensions: true, skipLibCheck: false },
  }
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: Object.keys(files) }))
  return promisify(execFile)(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', folder]).then(
    () => '',
    (error: { readonly stdout: string }) => error.stdout,
  )
}

const SETTINGS = 'export interface Settings { theme: string }\n'

let module: string

beforeAll(async () => {
  const { code, text, error } = await svc(['types', '--json-types', './settings.ts'])
  expect([code, error]).toEqual([0, ''])
  module = `${text}\n`
})

describe('the types', () => {
  // The view is published without configuration since PostgreSQL 15.
  test.skipIf(POSTGRES_MAJOR < 15)('are those of live answers of all types', { timeout: COMPILE_MS }, async () => {
    const rows = (await gateway.get('/api/everything?expand=owner')).text
    const owners = (await gateway.get('/api/owners?expand=nested:everything')).text
    const seen = (await gateway.get('/api/seen')).text
    const call = async (name: string, body: unknown) =>
      (
        await gateway.get(`/api/rpc/${name}`, {
          ...{ method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) },
        })
      ).text
    const program = `
      import type { Row, Schema } from './schema.ts'
      type Page<T> = { data: T[]; count: number; limit: number; offset: number; next_cursor: string | null }
      type Called<F extends keyof Schema['Functions']> =
        { data: Schema['Functions'][F]['Returns']; function: string; result_format: string; count?: number }
      export const rows: Page<Row<'everything'> & { owner: Row<'owners'> | null }> = ${rows}
      export const owners: Page<Row<'owners'> & { everything: Row<'everything'>[] }> = ${owners}
      export const seen: Page<Row<'seen'>> = ${seen}
      export const tripled: Called<'tripled'> = ${await call('tripled', { value: 2 })}
      export const doubled: Called<'doubled'> = ${await call('doubled', { amount: 2 })}
      export const picked: Called<'pick'> = ${await call('pick', { of: 1 })}
      export const missing: Called<'pick'> = ${await call('pick', { of: 99 })}
      export const all: Called<'all_owners'> = ${await call('all_owners', {})}
      export const none: Called<'nothing'> = ${await call('nothing', { a_mood: 'ok' })}
      type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
      export const exact: [
        Same<Row<'everything'>['an_int8'], number>, Same<Row<'everything'>['a_numeric'], number>,
        Same<Row<'everything'>['a_percent'], number>, Same<Row<'everything'>['a_money'], string | null>,
        Same<Row<'everything'>['a_mood'], 'ok' | 'it\\'s "bad"'>, Same<Row<'everything'>['some_ints'], number[]>,
        Same<Row<'everything'>['an_oid'], string | null>, Same<Row<'everything'>['a_jsonb'], { theme: string } | null>,
      ] = [true, true, true, true, true, true, true, true] as never
      const settings: { theme: string } | null = ({} as Row<'everything'>).a_jsonb
      const relations: Schema['Tables']['everything']['Relations'] = { owner: { table: 'owners', many: false } }
      export const self: Schema['Tables']['owners']['Relations'] = {
        main: { table: 'owners', many: false }, 'owners!parent': { table: 'owners', many: false },
        'owners!owners_main_id_fkey': { table: 'owners', many: true },
        'owners!owners_parent_fkey': { table: 'owners', many: true },
        everything: { table: 'everything', many: true },
      }
      void settings, relations`
    expect(await compile({ 'schema.ts': module, 'settings.ts': SETTINGS, 'rows.ts': program })).toBe('')
  })

  test('of bodies accept what the gateway accepts, and no more', { timeout: COMPILE_MS }, async () => {
    const body = {
      ...{ owner_id: 1, a_int2: 1, an_int8: '9007199254740995', a_float4: 1, a_float8: 1, a_numeric: '1.10' },
      ...{
        a_bool: true,
        a_text: 'x',
        a_uuid: '8c5c1bb0-6a0e-4ac5-9c5e-0d7c0a3f3f0a',
        a_json: [],
        a_date: '2026-01-02',
      },
      ...{ a_mood: 'ok', a_percent: 1, some_ints: [1] },
    }
    const headers = { 'Content-Type': 'application/json' }
    const made = await gateway.get('/api/everything', { method: 'POST', headers, body: JSON.stringify(body) })
    expect(made.status).toBe(201)
    const change = { a_int2: { $inc: 2 }, a_text: 'y' }
    const path = `/api/everything/${made.json.data.id}`
    const changed = await gateway.get(path, { method: 'PATCH', headers, body: JSON.stringify(change) })
    expect(changed.json.data).toMatchObject({ a_int2: 3, a_text: 'y', doubled: 6 })
    const program = `
      import type { Schema } from './schema.ts'
      type Insert = Schema['Tables']['everything']['Insert']
      type Update = Schema['Tables']['everything']['Update']
      export const made: Insert = ${JSON.stringify(body)}
      export const changed: Update = ${JSON.stringify(change)}
      // @ts-expect-error an identity that is always generated
      export const a: Insert = { ...made, id: 1 }
      // @ts-expect-error a generated column
      export const b: Update = { doubled: 1 }
      // @ts-expect-error columns without a default are missing
      export const c: Insert = { owner_id: 1 }
      // @ts-expect-error not a label
      export const d: Update = { a_mood: 'sad' }
      // @ts-expect-error a text cannot be incremented
      export const e: Update = { a_text: { $inc: 1 } }
      // @ts-expect-error not a number
      export const f: Update = { an_int8: 'many' }
      export const g: Schema['Functions']['doubled']['Args'] = { amount: '9007199254740995' }
      // @ts-expect-error a missing argument
      export const h: Schema['Functions']['doubled']['Args'] = { name: 'x' }`
    expect(await compile({ 'schema.ts': module, 'settings.ts': SETTINGS, 'bodies.ts': program })).toBe('')
  })

  test('of comments are names only, and without --json-types they are Json', async () => {
    expect(module).toContain("import type { Settings } from './settings.ts'\n")
    expect(module).toContain('some_json: Settings[] | null')
    expect(module).toContain('a_json: Json\n')
    const plain = (await svc(['types'])).text
    expect(plain).toContain('a_jsonb: Json\n')
    expect(plain).not.toContain('import')
  })

  // The view is published without configuration since PostgreSQL 15.
  test.skipIf(POSTGRES_MAJOR < 15)('are the same of the database and of a gateway', async () => {
    const SVC_TOKEN = await gateway.token({ tenantId: 't1' })
    const { text } = await svc(['types', '--url', gateway.url, '--json-types', './settings.ts'], '', { SVC_TOKEN })
    expect(`${text}\n`).toBe(module)
  })

  test('of the sample have less than 60 lines for each table', async () => {
    const { text } = await svc(['types'], sample.url)
    const tables = text.match(/^ {6}Relations: /gm)?.length ?? 0
    expect(tables).toBeGreaterThan(10)
    expect(text.split('\n').length / tables).toBeLessThan(60)
    const blocks = text.split(/^ {4}\}$/m).slice(0, tables)
    expect(blocks.filter(block => block.split('\n').length >= 60)).toEqual([])
  })

  test('of a document are those of its database, as far as it describes it', async () => {
    const document = (await svc(['schema', 'pull'], sample.url)).text
    await writeFile(join(folder, 'sample.schema'), document)
    const [ofDocument, ofDatabase] = await Promise.all([svc(['types', 'sample.schema']), svc(['types'], sample.url)])
    const tableOf = (text: string, name: string) => new RegExp(`^ {4}${name}: \\{$.*?^ {4}\\}$`, 'ms').exec(text)?.[0]
    for (const name of ['orders', 'customers', 'order_items', 'products']) {
      expect(tableOf(ofDocument.text, name)).toBe(tableOf(ofDatabase.text, name))
    }
  })
})

describe('--check', () => {
  test('fails for a file that is missing or stale, and writes nothing', async () => {
    const argv = ['types', '--check', '--out', 'checked.ts']
    const stale = {
      code: 1,
      text: '',
      error: 'checked.ts is not up to date: run svc types with the same options, without --check',
    }
    expect(await svc(argv)).toEqual(stale)
    expect((await svc(['types', '--out', 'checked.ts'])).code).toBe(0)
    expect(await svc(argv)).toEqual({ code: 0, text: '', error: '' })
    const path = join(folder, 'checked.ts')
    const old = `${await readFile(path, 'utf8')}// edited\n`
    await writeFile(path, old)
    expect(await svc(argv)).toEqual(stale)
    expect(await readFile(path, 'utf8')).toBe(old)
  })
})

describe('--watch', () => {
  test('writes the file when the schema changes, and survives errors', async () => {
    const { world, error } = worldOf(database.url)
    const path = join(folder, 'watched.ts')
    const command = {
      ...{ file: undefined, config: undefined, url: undefined, token: undefined, jsonTypes: undefined },
      ...{ out: 'watched.ts', mode: 'watch' as const, watchIntervalMs: 20 },
    } as const
    const running = types(command, world)
    const contains = (text: string) =>
      vi.waitFor(async () => expect(await readFile(path, 'utf8')).toContain(text), { timeout: 60_000 })
    await contains('    owners: {')
    await execute(database.adminUrl, 'create table later (id int primary key)')
    await contains('    later: {')
    await execute(database.adminUrl, 'drop table later')
    await vi.waitFor(async () => expect(await readFile(path, 'utf8')).not.toContain('    later: {'), {
      timeout: 60_000,
    })
    world.signals.emit('SIGTERM')
    expect(await running).toBe(0)
    expect(new Set(error)).toEqual(new Set(['watched.ts written']))
  })
})

describe('mistakes', () => {
  test.each([
    [['types', '--check'], "options '--check' and '--watch' require '--out'"],
    [['types', '--watch', '--check', '--out', 'x'], "options '--check' and '--watch' exclude each other"],
    [['types', 'a.schema', '--url', 'http://x'], "a document and option '--url' exclude each other"],
    [['types', '--token', 'x'], "option '--token' requires '--url'"],
    [['types', '--url', 'nowhere'], '--url nowhere is not a URL; write it as https://api.example.com'],
  ])('the command %j is refused with the reason', async (argv, message) => {
    const { code, error } = await svc(argv)
    expect([code, error]).toEqual([2, expect.stringContaining(message)])
  })

  test('a refused token, and an address without a gateway', async () => {
    const refused = await svc(['types', '--url', gateway.url], '', { SVC_TOKEN: 'x' })
    expect(refused).toMatchObject({ code: 1, error: expect.stringMatching(/refused the token: set SVC_TOKEN/) })
    const elsewhere = await svc(['types', '--url', `${gateway.url}/nowhere`], '')
    expect(elsewhere).toMatchObject({ code: 1, error: expect.stringMatching(/answered 404: /) })
  })
})
