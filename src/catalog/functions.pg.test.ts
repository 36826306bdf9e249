/**
 * docs/reference/functions.md: which functions can be called and what the catalog knows of each, against a
 * real PostgreSQL.
 */
import { describe, expect, test } from 'vitest'
import { openSession } from '../../test/support/catalog.ts'
import { databaseFixture, fixture } from '../../test/support/fixtures.ts'
import { describeFunctions } from './describe-functions.ts'
import { introspect } from './introspect.ts'
import type { Catalog, DatabaseFunction } from './model.ts'

const database = databaseFixture()
const admin = fixture(() => openSession(database.adminUrl))
const gateway = fixture(() => openSession(database.url))

/** Creates the schema with `ddl` and reads it as a role without privileges on it. */
async function read(schema: string, ddl: string): Promise<Catalog> {
  await admin.run(`create schema "${schema}"; set search_path to "${schema}", public; ${ddl}; reset search_path`)
  return introspect(gateway.query, { schemas: [schema], exposedViews: [] })
}

function only(catalog: Catalog, resource: string): DatabaseFunction {
  const [found, ...more] = catalog.functions.get(resource) ?? []
  if (found === undefined || more.length > 0) throw new Error(`${resource} is not one function`)
  return found
}

describe('callable functions', () => {
  test('exclude procedures, aggregates, window functions, triggers and functions of extensions', async () => {
    const catalog = await read(
      'kinds',
      `create function plain() returns int language sql as 'select 1';
       create procedure proc() language sql as 'select 1';
       create aggregate total(int) (sfunc = int4pl, stype = int);
       create function win(int) returns int language internal window as 'window_first_value';
       create function trig() returns trigger language plpgsql as 'begin return null; end';
       create function event() returns event_trigger language plpgsql as 'begin end';
       create extension pgcrypto`,
    )
    expect([...catalog.functions.keys()]).toEqual(['plain'])
  })

  test('exclude those with internal types, and include those whose types JSON cannot express', async () => {
    const catalog = await read(
      'pseudo',
      `create function takes_internal(internal) returns bool language internal as 'booleq';
       create function takes_cstring(cstring) returns bool language internal as 'boolin';
       create function gives_cstring(bool) returns cstring language internal as 'boolout';
       create function takes_any(variadic "any") returns text language internal as 'text_concat';
       create function takes_element(anyelement) returns anyelement language sql as 'select $1';
       create function gives_record() returns record language sql as 'select 1, 2'`,
    )
    expect([...catalog.functions.keys()]).toEqual(['gives_record', 'takes_any', 'takes_element'])
    expect(only(catalog, 'gives_record').result).toEqual({ kind: 'record' })
    expect(only(catalog, 'takes_any').inputs[0]).toMatchObject({
      type: { kind: 'pseudo', name: 'any' },
      mode: 'variadic',
    })
    expect(only(catalog, 'takes_element').result).toMatchObject({
      kind: 'scalar',
      column: { type: { kind: 'pseudo', name: 'anyelement' }, typeText: 'anyelement' },
    })
  })

  test('have names like tables: unqualified in the first schema, which wins a conflict', async () => {
    await admin.run(`
      create schema one; create schema two; create schema three;
      create function one.f() returns int language sql as 'select 1';
      create function two.f() returns int language sql as 'select 2';
      create function one."two.g"() returns int language sql as 'select 1';
      create function two.g() returns int language sql as 'select 2';
      create function three.f() returns int language sql as 'select 3'`)
    const catalog = await introspect(gateway.query, { schemas: ['one', 'two'], exposedViews: [] })
    expect([...catalog.functions].map(([resource, [of]]) => [resource, of?.resource, of?.schema, of?.name])).toEqual([
      ['f', 'f', 'one', 'f'],
      ['two.g', 'two.g', 'one', 'two.g'],
      ['two.f', 'two.f', 'two', 'f'],
    ])
  })

  test('group overloads in the order of their identity arguments', async () => {
    const catalog = await read(
      'overloads',
      `create function f(x text) returns int language sql as 'select 1';
       create function f(x int, y int) returns int language sql as 'select 1';
       create function f() returns int language sql as 'select 1';
       create function f(x int) returns int language sql as 'select 1'`,
    )
    expect(catalog.functions.get('f')?.map(of => of.identityArgs)).toEqual([
      '',
      'x integer',
      'x integer, y integer',
      'x text',
    ])
  })

  test('can have any names of functions and arguments', async () => {
    const catalog = await read(
      'names',
      `create function "__proto__"("__proto__" int, "constructor" int) returns int language sql as 'select 1';
       create function "Größe!"("select" int, "a b" int, "ünï" text) returns int language sql as 'select 1'`,
    )
    expect(only(catalog, '__proto__').inputs.map(input => input.name)).toEqual(['__proto__', 'constructor'])
    expect(only(catalog, 'Größe!').inputs.map(input => input.name)).toEqual(['select', 'a b', 'ünï'])
  })
})

describe('properties of a function', () => {
  test('volatility, strictness, sets, comment', async () => {
    const catalog = await read(
      'flags',
      `create function a() returns int immutable strict language sql as 'select 1';
       create function b() returns setof int stable language sql as 'select 1';
       create function c() returns int language sql as 'select 1';
       comment on function c is 'what it does'`,
    )
    expect(only(catalog, 'a')).toMatchObject({
      volatility: 'immutable',
      strict: true,
      returnsSet: false,
      comment: null,
    })
    expect(only(catalog, 'b')).toMatchObject({ volatility: 'stable', strict: false, returnsSet: true })
    expect(only(catalog, 'c')).toMatchObject({ volatility: 'volatile', comment: 'what it does' })
  })

  test('include whether the role can execute it: EXECUTE, and USAGE of the schema', async () => {
    const ddl = `create function a() returns int language sql as 'select 1';
      create function b() returns int language sql as 'select 1';
      revoke execute on function b from public`
    const mayRun = (catalog: Catalog) => ['a', 'b'].map(name => only(catalog, name).executable)
    expect(mayRun(await read('closed', ddl))).toEqual([false, false])
    expect(mayRun(await read('open', `${ddl}; grant usage on schema open to public`))).toEqual([true, false])
  })

  test('include inputs with position, name, type, default and mode; outputs do not count as positions', async () => {
    const catalog = await read(
      'inputs',
      `create domain zip as text;
       create function f(int, out o bigint, name text default 'it''s', inout twice numeric default 1 + 1,
       at zip[] default null)
         language sql as 'select 1, 2';
       create function v(tag text, variadic numbers bigint[]) returns int language sql as 'select 1'`,
    )
    const f = only(catalog, 'f')
    expect(f.inputs).toMatchObject([
      { position: 1, name: null, typeText: 'integer', mode: 'in', required: true, default: null },
      { position: 2, name: 'name', typeText: 'text', mode: 'in', required: false, default: "'it''s'::text" },
      { position: 3, name: 'twice', typeText: 'numeric', mode: 'inout', required: false, default: '(1 + 1)' },
      { position: 4, name: 'at', typeText: 'inputs.zip[]', mode: 'in', required: false, default: 'NULL::inputs.zip[]' },
    ])
    expect(f.inputs[3]?.type).toMatchObject({ kind: 'array', of: { kind: 'domain', of: { name: 'text' } } })
    expect(f.outputs).toEqual([{ name: 'o', typeText: 'bigint' }])
    expect(f.variadic).toBe(false)
    const v = only(catalog, 'v')
    expect(v.variadic).toBe(true)
    expect(v.inputs[1]).toMatchObject({ name: 'numbers', typeText: 'bigint[]', mode: 'variadic', required: true })
  })

  test('include results: void, values, rows of tables, of types and of outputs', async () => {
    const catalog = await read(
      'results',
      `create table t (id int primary key, gone int, price numeric(10,2) not null); alter table t drop column gone;
       create type pair as (a int, b text); create domain some_pair as pair; create domain other_pair as some_pair;
       create table inner_t (id int); alter table inner_t set schema public;
       create function nothing() returns void language sql as '';
       create function value() returns int language sql as 'select 1';
       create function one_out(out total numeric) language sql as 'select 1';
       create function one_column() returns table (id bigint) language sql as 'select 1';
       create function outs(out a int, out text, inout c bigint) language sql as 'select 1, null, c';
       create function columns() returns table (a int, b text) language sql as 'select 1, null';
       create function rows() returns setof t language sql as 'select * from t';
       create function row_of_another() returns public.inner_t language sql as 'select * from public.inner_t';
       create function one_pair() returns pair language sql as 'select 1, null';
       create function domain_pair() returns other_pair language sql as 'select null::other_pair';
       create function of_array() returns pair[] language sql as 'select null::pair[]'`,
    )
    const summary = (name: string) => {
      const { result, returnsSet, resultText } = only(catalog, name)
      const set = returnsSet ? 'set of ' : ''
      switch (result.kind) {
        case 'scalar':
          return [resultText, `${set}${result.column.name} ${result.column.typeText}`]
        case 'composite': {
          const columns = result.columns.map(one => `${one.name} ${one.typeText}`).join(', ')
          return [resultText, `${set}${result.named ? 'named ' : ''}(${columns}) of ${result.table}`]
        }
        default:
          return [resultText, result.kind]
      }
    }
    expect(summary('nothing')).toEqual(['void', 'void'])
    expect(summary('value')).toEqual(['integer', 'value integer'])
    expect(summary('one_out')).toEqual(['numeric', 'total numeric'])
    expect(summary('one_column')).toEqual(['TABLE(id bigint)', 'set of id bigint'])
    expect(summary('outs')).toEqual(['record', '(a integer, column2 text, c bigint) of null'])
    expect(summary('columns')).toEqual(['TABLE(a integer, b text)', 'set of (a integer, b text) of null'])
    expect(summary('rows')).toEqual(['SETOF results.t', 'set of named (id integer, price numeric(10,2)) of t'])
    expect(summary('row_of_another')).toEqual(['inner_t', 'named (id integer) of null'])
    expect(summary('one_pair')).toEqual(['results.pair', 'named (a integer, b text) of null'])
    expect(summary('domain_pair')).toEqual(['results.other_pair', 'named (a integer, b text) of null'])
    expect(summary('of_array')).toEqual(['results.pair[]', 'of_array results.pair[]'])
  })

  test('a column of a result row can be NULL even if its table forbids it', async () => {
    const catalog = await read(
      'nulls',
      `create table t (id int primary key, made int generated always as identity, at date not null default now());
       create function f() returns t language sql as 'select null::t'`,
    )
    const { result } = only(catalog, 'f')
    expect(result.kind === 'composite' && result.columns.every(one => one.nullable && one.default === null)).toBe(true)
  })

  test('a function with a hundred arguments', async () => {
    const args = Array.from({ length: 100 }, (_, n) => `a${n} int default ${n}`).join(', ')
    const catalog = await read('hundred', `create function f(${args}) returns int language sql as 'select 1'`)
    expect(only(catalog, 'f').inputs[99]).toMatchObject({ position: 100, name: 'a99', default: '99' })
  })
})

test('the contracts describe every function', async () => {
  const catalog = await read(
    'contracts',
    `create function add(a int, b int default 2, out sum int) stable language sql as 'select a + b';
     comment on function add is 'a plus b';
     create function add(variadic numbers numeric[]) returns numeric language sql as 'select 1'`,
  )
  expect(describeFunctions(catalog)).toEqual({
    functions: [
      {
        ...{ schema: 'contracts', name: 'add', function: 'add', identity_args: 'VARIADIC numbers numeric[]' },
        ...{ result_type: 'numeric', returns_set: false, volatility: 'volatile', variadic: true, comment: null },
        args: [{ position: 1, name: 'numbers', type: 'numeric[]', mode: 'variadic', required: true, default: null }],
      },
      {
        ...{ schema: 'contracts', name: 'add', function: 'add' },
        identity_args: 'a integer, b integer, OUT sum integer',
        ...{ result_type: 'integer', returns_set: false, volatility: 'stable', variadic: false, comment: 'a plus b' },
        args: [
          { position: 1, name: 'a', type: 'integer', mode: 'in', required: true, default: null },
          { position: 2, name: 'b', type: 'integer', mode: 'in', required: false, default: '2' },
          { position: null, name: 'sum', type: 'integer', mode: 'out', required: false, default: null },
        ],
      },
    ],
    count: 2,
  })
  const some = describeFunctions(catalog, { canCall: of => of.variadic, nameOf: of => `${of.schema}.${of.name}` })
  expect(some.functions.map(one => one.function)).toEqual(['contracts.add'])
  expect(some.count).toBe(1)
})
