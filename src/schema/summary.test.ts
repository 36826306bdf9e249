/**
 * docs/guides/schema-document.md: the summary contains every accepted part, and likely problems are
 * warnings.
 */
import { describe, expect, test } from 'vitest'
import { parseSchema } from './parse.ts'
import { summarize } from './summary.ts'
import { SUGGESTIONS_MAX } from './warnings.ts'

/** Code and message of each warning. */
function warnings(text: string): readonly string[] {
  return summarize(parseSchema(text)).warnings.map(({ code, message }) => `${code}: ${message}`)
}

/** The parts without which row-level security itself would be a warning. */
const GUARDED = 'enable_rls force_rls'.replace(' ', '\n')

describe('the summary', () => {
  test('contains every part of the document', () => {
    const summary = summarize(
      parseSchema(`
        extension pgcrypto
        enum status { draft, 'in transit' }
        domain age int not_null default 1 check (value > 0)
        table customers { id i64 primary_key, email text unique not_null }
        table orders {
          id i64 identity always primary_key, line i32,
          customer_id i64 not_null references customers (id) on_delete cascade
          status status default 'draft', age age, price numeric(10, 2) check (price > 0),
          twice numeric generated (price * 2) virtual
          unique (line, status) nulls_not_distinct
          foreign_key (customer_id) references customers (id) on_update set_null initially_deferred
          check (line < 10 or price > 1)
          exclude using gist (line with =) where (price > 5) deferrable
          partition_by range (line, lower(status))
          enable_rls
          force_rls
        }
        unique index by_price on orders using btree (lower(status), price desc) nulls_not_distinct include (line)
          where price > 3
        policy own on orders for update to app, admin restrictive using $$ customer_id = 1 $$ with_check $$ true $$
        policy all_of_it on orders using $$ true $$
        view open security_invoker $$ select 1 $$
        materialized view kept $$ select 2 $$
        function f(a i32, out b text, variadic c text[]) returns setof text
          language sql immutable security_definer strict $$ select 3 $$
        function g() returns table (x i32, y text) language plpgsql $$ begin end $$
        comment on orders 'All orders'
        comment on orders.price 'Of one'
        comment on type status 'How far it is'
        comment on type age 'In years'
        comment on kept 'Kept'
        comment on open.one 'A one'
        comment on function f(i32, text[]) 'Does f'
      `),
    )
    const key = { nulls_distinct: true, without_overlaps: false, timing: 'immediate' }
    const column = { nullable: true, default: null, identity: null, generated: null, enum: null, comment: null }
    const reference = { on_delete_columns: [], match_full: false, period: false, timing: 'immediate' }
    expect(summary).toEqual({
      ok: true,
      tables: [
        {
          ...{
            name: 'customers',
            comment: null,
            primary_key: ['id'],
            foreign_keys: [],
            checks: [],
            exclusions: [],
            partition_by: null,
          },
          columns: [
            { ...column, name: 'id', type: 'int8', nullable: false },
            { ...column, name: 'email', type: 'text', nullable: false },
          ],
          keys: [
            { ...key, columns: ['id'], primary: true },
            { ...key, columns: ['email'], primary: false },
          ],
          rls: { enabled: false, forced: false },
        },
        {
          name: 'orders',
          comment: 'All orders',
          columns: [
            { ...column, name: 'id', type: 'int8', nullable: false, identity: 'always' },
            { ...column, name: 'line', type: 'int4' },
            { ...column, name: 'customer_id', type: 'int8', nullable: false },
            { ...column, name: 'status', type: 'status', default: "'draft'", enum: ['draft', 'in transit'] },
            { ...column, name: 'age', type: 'age', nullable: false },
            { ...column, name: 'price', type: 'numeric(10, 2)', comment: 'Of one' },
            { ...column, name: 'twice', type: 'numeric', generated: { expression: 'price * 2', storage: 'virtual' } },
          ],
          primary_key: ['id'],
          keys: [
            { ...key, columns: ['id'], primary: true },
            { ...key, columns: ['line', 'status'], primary: false, nulls_distinct: false },
          ],
          foreign_keys: [
            {
              ...{ ...reference, columns: ['customer_id'], references: { table: 'customers', columns: ['id'] } },
              ...{ on_delete: 'cascade', on_update: 'no action' },
            },
            {
              ...{ ...reference, columns: ['customer_id'], references: { table: 'customers', columns: ['id'] } },
              ...{ on_delete: 'no action', on_update: 'set null', timing: 'deferred' },
            },
          ],
          checks: ['price > 0', 'line < 10 or price > 1'],
          exclusions: [{ method: 'gist', elements: ['line with ='], where: 'price > 5', timing: 'deferrable' }],
          partition_by: { strategy: 'range', elements: ['line', 'lower(status)'] },
          rls: { enabled: true, forced: true },
        },
      ],
      enums: [{ name: 'status', labels: ['draft', 'in transit'], comment: 'How far it is' }],
      domains: [
        { name: 'age', type: 'int4', nullable: false, default: '1', checks: ['value > 0'], comment: 'In years' },
      ],
      indexes: [
        {
          ...{ name: 'by_price', table: 'orders', unique: true, nulls_distinct: false, method: 'btree' },
          ...{ elements: ['lower(status)', 'price desc'], include: ['line'], where: 'price > 3' },
        },
      ],
      policies: [
        {
          ...{ name: 'own', table: 'orders', operation: 'update', roles: ['app', 'admin'], restrictive: true },
          ...{ using: 'customer_id = 1', with_check: 'true' },
        },
        {
          ...{ name: 'all_of_it', table: 'orders', operation: 'all', roles: ['public'], restrictive: false },
          ...{ using: 'true', with_check: null },
        },
      ],
      views: [
        {
          ...{ name: 'open', materialized: false, security_invoker: true, query: 'select 1', comment: null },
          column_comments: [{ column: 'one', comment: 'A one' }],
        },
        {
          ...{ name: 'kept', materialized: true, security_invoker: false, query: 'select 2', comment: 'Kept' },
          column_comments: [],
        },
      ],
      functions: [
        {
          name: 'f',
          arguments: [
            { name: 'a', type: 'int4', mode: 'in', default: null },
            { name: 'b', type: 'text', mode: 'out', default: null },
            { name: 'c', type: 'text[]', mode: 'variadic', default: null },
          ],
          ...{ returns: 'setof text', language: 'sql', volatility: 'immutable', security_definer: true, strict: true },
          ...{ body: ' select 3 ', comment: 'Does f' },
        },
        {
          ...{
            name: 'g',
            arguments: [],
            returns: 'table(x int4, y text)',
            language: 'plpgsql',
            volatility: 'volatile',
          },
          ...{ security_definer: false, strict: false, body: ' begin end ', comment: null },
        },
      ],
      extensions: ['pgcrypto'],
      warnings: [],
    })
  })

  test('is unchanged by JSON, and names are never properties', () => {
    const summary = summarize(
      parseSchema(
        'table __proto__ { constructor int primary_key } comment on __proto__.constructor `x`'.replaceAll('`', "'"),
      ),
    )
    expect(JSON.parse(JSON.stringify(summary))).toEqual(summary)
    expect(summary.tables[0]?.columns[0]?.comment).toBe('x')
  })
})

describe('warnings', () => {
  test('missing tables and columns', () => {
    expect(
      warnings(`table a { id int references b (id), x int references c (y), primary_key (id, z)
          foreign_key (x, w) references c (id, v) on_delete set_null (u) }
        table c { id int primary_key }
        view seen $$ select 1 $$
        table d { id int references seen (id) }
        index i on a (id, lower(q), "Q" desc) include (r)
        index j on nowhere (id)
        policy p on nobody using $$ true $$
        comment on a.q 'x'
        comment on nothing 'x'
        comment on type t 'x'
        comment on function f() 'x'`),
    ).toEqual([
      'missing_column: table a has no column z',
      'missing_column: table a has no column w',
      'missing_column: table a has no column u',
      'missing_table: table a: (id) refers to b (id), but table b does not exist',
      'missing_column: table a: (x) refers to c (y), but c has no column y',
      'missing_column: table a: (x, w) refers to c (id, v), but c has no column v',
      'missing_table: table d: (id) refers to seen (id), but seen is a view',
      'missing_column: index i on a: column Q does not exist',
      'missing_column: index i on a: column r does not exist',
      'missing_table: index j on nowhere: table nowhere does not exist',
      'missing_table: policy p: table nobody does not exist',
      'missing_column: comment on column a.q: column q does not exist',
      'missing_table: comment on nothing: table nothing does not exist',
      'missing_table: comment on t: there is no such type',
      'missing_table: comment on f: there is no such function',
    ])
  })

  test('references to schemas outside the document are not checked; an unqualified name can be one of `public`', () => {
    expect(
      warnings(`table a { id int primary_key references auth.users (id), b int references public.c (x) }
        table c { id int primary_key }
        table s.a { id int references s.b (id), c int references c (id) }`),
    ).toEqual(['missing_table: table s.a: (id) refers to s.b (id), but table s.b does not exist'])
    expect(
      warnings('table public.c { id int primary_key } table s.a { id int references c (id), x int references d (id) }'),
    ).toEqual(['missing_table: table s.a: (x) refers to d (id), but table d does not exist'])
  })

  test('a foreign key to columns that are not unique', () => {
    const target = 'a int, b int, c int unique, d int, e int, f int, primary_key (a, b), unique (d, a)'
    const indexes = 'unique index e on t (e desc) unique index f on t (f) where f > 0\nunique index g on t (lower(f))'
    const reference = (columns: string) =>
      warnings(
        `table t { ${target} } ${indexes} ` +
          `table u { x int, y int, foreign_key (${columns.includes(',') ? 'x, y' : 'x'}) references t (${columns}) }`,
      )
    for (const columns of ['a, b', 'b, a', 'c', 'a, d', 'e']) expect(reference(columns), columns).toEqual([])
    for (const columns of ['a', 'd', 'f', 'b, c']) {
      expect(reference(columns)).toEqual([
        `no_unique_key: table u: (${columns.includes(',') ? 'x, y' : 'x'}) ` +
          `refers to t (${columns}), which is neither a primary key nor unique`,
      ])
    }
  })

  test('a foreign key whose types cannot be compared', () => {
    expect(
      warnings(`table t { id uuid primary_key, n int unique, s varchar(3) unique } domain key uuid
        table u { a int references t (id), b i64 references t (n), c text references t (s),
          d key references t (id), e uuid[] references t (id) }`),
    ).toEqual([
      'wrong_type: table u: (a) refers to t (id), but a is int4 and the other uuid',
      'wrong_type: table u: (e) refers to t (id), but e is uuid[] and the other uuid',
    ])
  })

  test('unknown types', () => {
    const text =
      'table t { a sting, b other.thing, c t[], d e } enum e { x } function f(a nope) returns setof t language sql $$$$'
    expect(warnings(text)).toEqual([
      "unknown_type: column t.a: the type sting is neither PostgreSQL's own nor defined in the document; did you " +
        'mean string?',
      "unknown_type: function f: the type nope is neither PostgreSQL's own nor defined in the document",
    ])
    expect(warnings(`${text} extension pgcrypto`)).toHaveLength(2)
    expect(warnings(`${text} extension citext`)).toEqual([])
  })

  test('of many warnings only the first have suggestions', () => {
    const many = Array.from({ length: SUGGESTIONS_MAX + 1 }, (_, n) => `c${n} mod`).join(', ')
    const told = warnings(`enum mood { calm } table t { ${many} }`)
    expect(told).toHaveLength(SUGGESTIONS_MAX + 1)
    expect(told.at(-2)).toMatch(/did you mean mood\?$/)
    expect(told.at(-1)).not.toContain('did you mean')
  })

  test('duplicate names', () => {
    expect(
      warnings(`extension x extension x
        enum e { a, b, a } enum e { c } domain e int
        table t { a int, a text } table t { a int } view t $$ select 1 $$ table s.t { a int } enum t { a }
        index i on t (a) index i on t (a) index t on t (a) index i on s.t (a)
        function f(a int, out b text) returns text language sql $$$$ function f(c i32) returns int language sql $$$$
        function f(a text) returns text language sql $$$$
        policy p on t using $$ true $$ policy p on t using $$ true $$ policy p on s.t using $$ true $$
        comment on t 'x' comment on t 'y' comment on t.a 'z' comment on t.a 'z'`).filter(text =>
        text.startsWith('duplicate'),
      ),
    ).toEqual([
      'duplicate_name: t is defined twice',
      'duplicate_name: t is defined twice',
      'duplicate_name: index i is defined twice',
      'duplicate_name: index t has the name of a table or view',
      'duplicate_name: type e is defined twice',
      'duplicate_name: type e is defined twice',
      'duplicate_name: type t has the name of a table or view',
      'duplicate_name: function f is defined twice with the same arguments',
      'duplicate_name: table t has two policies p',
      'duplicate_name: extension x is listed twice',
      'duplicate_name: t has two comments',
      'duplicate_name: column t.a has two comments',
      'duplicate_name: enum e has the label a twice',
      'duplicate_name: table t has two columns a',
    ])
  })

  test('two primary keys', () => {
    expect(warnings('table t { a int primary_key, b int primary_key }')).toHaveLength(1)
    expect(warnings('table t { a int primary_key, b int, primary_key (a, b) }')).toEqual([
      'primary_key_twice: table t has two primary keys; write one primary_key (a, b)',
    ])
  })

  test('tenants that are not isolated, and policies without effect', () => {
    const table = (body: string, rest = '') => warnings(`table t { tenant_id uuid\n ${body} } ${rest}`)
    const policy = 'policy p on t using $$ tenant_id = me() $$'
    expect(table(GUARDED, policy)).toEqual([])
    expect(table('')).toEqual([
      'tenant_unprotected: table t has tenant_id, but no row-level security: write enable_rls, force_rls and a policy',
    ])
    expect(table('force_rls', policy).map(text => text.split(':')[0])).toEqual([
      'tenant_unprotected',
      'rls_not_enabled',
      'rls_not_enabled',
    ])
    expect(table('enable_rls', policy)).toEqual([
      'rls_not_forced: table t does not force row-level security, so its owner sees every row: write force_rls',
    ])
    expect(table(GUARDED)).toEqual([
      'no_policy: table t enables row-level security and has no policy: no row is visible',
    ])
    expect(table(GUARDED, 'policy p on t restrictive using $$ true $$')).toEqual([
      'no_policy: table t enables row-level security and has no permissive policy: no row is visible',
    ])
    const other = parseSchema('table t { shop int }')
    expect(summarize(other).warnings).toEqual([])
    expect(summarize(other, { tenantColumn: 'shop' }).warnings).toMatchObject([{ code: 'tenant_unprotected' }])
  })

  test('conditions that an operation does not support', () => {
    const policy = (rest: string) =>
      warnings(`table t { a int\n${GUARDED} } policy p on t ${rest} policy q on t using $$ true $$`)
    expect(policy('for insert using $$ true $$')).toEqual([
      'policy_clause: policy p on t: insert takes with_check, but not using',
    ])
    expect(policy('for select with_check $$ true $$')).toEqual([
      'policy_clause: policy p on t: select takes using, but not with_check',
    ])
    expect(policy('for delete with_check $$ true $$')).toEqual([
      'policy_clause: policy p on t: delete takes using, but not with_check',
    ])
    expect(policy('for update')).toEqual(['policy_clause: policy p on t: it has neither using nor with_check'])
    expect(policy('for update using $$ true $$ with_check $$ true $$')).toEqual([])
  })

  test('views that bypass row-level security', () => {
    const view = (definition: string) =>
      warnings(
        `table guarded { a int\n${GUARDED} } policy p on guarded using $$ true $$ table free { a int } ${definition}`,
      )
    expect(view('view v $$ select * from free $$ view w security_invoker $$ select * from guarded $$')).toEqual([])
    expect(
      view('view v $$ select * from public.guarded g $$ materialized view m $$ select 1 from "guarded" $$'),
    ).toEqual([
      'view_bypasses_rls: view v is not security_invoker and shows rows of guarded ' +
        'regardless of its row-level security',
      'view_bypasses_rls: view m holds rows of guarded regardless of its row-level security',
    ])
  })

  test('a warning has its position in the text', () => {
    const text = 'table a { id int references b (id) }'
    const [warning] = summarize(parseSchema(text)).warnings
    expect(text.slice(warning?.span.start, warning?.span.end)).toBe('b')
  })
})

test('a summary takes linear time', () => {
  const rows = 20_000
  const columns = Array.from({ length: rows }, (_, n) => `c${n} int references t (c${n})`).join('\n')
  const indexes = Array.from(
    { length: rows },
    (_, n) => `index i${n} on t (c${n})\nview v${n} $$ select c from t $$ comment on t.c${n} 'x'`,
  ).join('\n')
  const document = parseSchema(`table t { ${columns}\n enable_rls }\n${indexes}`)
  const before = performance.now()
  expect(summarize(document).warnings.length).toBeGreaterThan(rows)
  // Linear time is under a second; quadratic time with this number of columns would be minutes.
  expect(performance.now() - before).toBeLessThan(15_000)
})
