/**
 * The explanation of a query (docs/guides/agents.md#tools): what it does, part by part, and what a reader may
 * overlook.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyStatement } from '../../../test/support/trees.ts'
import { formatAnyName, formatDotted, formatName } from '../format/format-name.ts'
import { formatTable } from '../format/format-query.ts'
import { parse } from '../syntax/parse.ts'
import type { Add, Statement } from '../tree/ast.ts'
import { get, text } from '../tree/build.ts'
import { LanguageError } from '../tree/error.ts'
import { NESTING_MAX } from '../tree/nesting.ts'
import { visit } from '../tree/walk.ts'
import { explain, type StatementExplanation } from './explain.ts'

function explained(query: string): StatementExplanation {
  return explain(parse(query))
}

function notes(query: string): readonly string[] {
  return explained(query).notes
}

/** All texts of an explanation. */
function texts(explanation: StatementExplanation): string {
  const { action, table, columns, joins, filters, ordering, limit, offset } = explanation
  const places = joins.flatMap(({ table: joined, alias, on }) => [joined, alias, on])
  const parts = [
    action,
    table,
    columns,
    places,
    filters,
    ordering.map(order => order.by),
    limit,
    offset,
    explanation.notes,
  ]
  return parts.flat().join('\n')
}

/** The statement without the values of an add, which an explanation only counts. */
function withoutValues(statement: Statement): Statement {
  if (statement.kind === 'explain') return { ...statement, statement: withoutValues(statement.statement) }
  const isListed = statement.kind === 'add' && statement.rows.kind === 'values'
  return isListed ? ({ ...statement, rows: { kind: 'defaults', span: statement.span } } satisfies Add) : statement
}

describe('any tree', () => {
  test('any tree is explained, and every table and column in it is mentioned', { timeout: 60_000 }, () => {
    let mentioned = 0
    fc.assert(
      fc.property(anyStatement, statement => {
        const told = texts(explain(statement))
        const expectMention = (...forms: readonly string[]): void => {
          mentioned += 1
          expect(
            forms.some(form => told.includes(form)),
            `${forms[0]} in ${told}`,
          ).toBe(true)
        }
        visit(withoutValues(statement), {
          table: table => expectMention(formatTable(table)),
          column: ({ path }) => expectMention(formatDotted(path)),
          name: name => expectMention(formatName(name), formatAnyName(name)),
          star: star => star !== null && expectMention(star.of === null ? '*' : `${formatName(star.of)}.*`),
          parameter: parameter =>
            expectMention(parameter.kind === 'position' ? `$${parameter.n}` : `:${parameter.name}`),
        })
      }),
      { numRuns: 1_000 },
    )
    expect(mentioned).toBeGreaterThan(5_000)
  })

  test('the explanation is plain data', () => {
    fc.assert(
      fc.property(anyStatement, statement => {
        const explanation = explain(statement)
        expect(JSON.parse(JSON.stringify(explanation))).toEqual(explanation)
        expect(Object.keys(explanation).sort()).toEqual([
          'action',
          'columns',
          'filters',
          'joins',
          'limit',
          'notes',
          'offset',
          'ordering',
          'table',
        ])
      }),
    )
  })

  test('a tree without a text form is rejected, and so is one that is too deep', () => {
    const built = get({ table: { schema: null, name: 't' }, where: { ...text('x'), type: 'integer' } })
    expect(() => explain(built)).toThrow(LanguageError)
    const deep = Array.from({ length: NESTING_MAX + 1 }).reduce<Statement>(
      inner => ({ kind: 'explain', statement: inner, span: inner.span }),
      built,
    )
    expect(() => explain(deep)).toThrow('nested more than')
  })
})

test('a read is explained part by part', () => {
  expect(
    explained(`get users u[active = true] left join sales.posts as p on p.user_id = u.id fields u.id, count(*) as n, *
      where (role = "admin" or role = 'owner') and age >= 18
      order by n desc, u.id asc nulls first limit 10 offset :from`),
  ).toEqual({
    action: 'read',
    table: 'users',
    columns: ['u.id', 'count(*) as n', '*'],
    joins: [{ type: 'left', table: 'sales.posts', alias: 'p', on: 'p.user_id = u.id' }],
    filters: ['active = true', "role = 'admin' or role = 'owner'", 'age >= 18'],
    ordering: [
      { by: 'n', direction: 'desc', nulls: 'first' },
      { by: 'u.id', direction: 'asc', nulls: 'first' },
    ],
    limit: 10,
    offset: ':from',
    notes: [
      'This cannot run: * cannot be combined with an aggregate; name the columns to group by.',
      'The left join, which a bare join is too, keeps rows without a match in p, with null for its columns.',
      'Groups by u.id: fields next to an aggregate are an implicit group by.',
      'Needs values for :from.',
    ],
  })
})

test('absent clauses are not mentioned', () => {
  expect(explained('get `Order Details`')).toEqual({
    action: 'read',
    table: '`Order Details`',
    columns: ['*'],
    joins: [],
    filters: [],
    ordering: [],
    limit: null,
    offset: null,
    notes: [],
  })
})

test("the position of nulls is PostgreSQL's default", () => {
  expect(explained('get t order by a, b desc, c desc nulls last').ordering.map(({ nulls }) => nulls)).toEqual([
    'last',
    'first',
    'last',
  ])
})

test('a limit is a number, or the text of a parameter', () => {
  const limits = ['10', '007', '$2', ':n', '99999999999999999999'].map(limit =>
    explained(`get t order by a limit ${limit}`),
  )
  expect(limits.map(({ limit }) => limit)).toEqual([10, 7, '$2', ':n', '99999999999999999999'])
})

test.each([
  ['get t', 'read', 't', ['*']],
  ['cnt t where a = 1', 'count', 't', ['count(*)']],
  ['export t fields a', 'export', 't', ['a']],
  ['add t fields a, `B c` values 1, 2', 'insert', 't', ['a', '`B c`']],
  ['add t values 1, 2', 'insert', 't', ['*']],
  ['add t defaults', 'insert', 't', []],
  ['add t fields a values 1 conflict (a) nothing', 'insert', 't', ['a']],
  ['add t fields a values 1 conflict (a) update a = excluded.a', 'upsert', 't', ['a']],
  ['set t values a = 1, b = a + 1 where id = 1', 'update', 't', ['a', 'b']],
  ['del s.t where id = 1', 'delete', 's.t', []],
  ['del t where id = 1 returning id, name as n', 'delete', 't', ['id', 'name as n']],
  [
    'merge t using u on t.id = u.id when matched then update set a = 1 when not matched then insert (id, ' +
      'a) values (u.id, 2)',
    'merge',
    't',
    ['a', 'id'],
  ],
  ['make t id:int8:pk, name:text:nullable', 'create table', 't', ['id:int8:pk', 'name:text:nullable']],
  ['index i on t a, b where a > 0', 'create index', 't', ['a', 'b']],
  ['call s.run(1, $1)', 'call', null, []],
  ['begin', 'begin', null, []],
  ['commit', 'commit', null, []],
  ['rollback', 'rollback', null, []],
  ['explain del t where a = 1', 'explain delete', 't', []],
  ['get (get t fields a) x', 'read', null, ['*']],
] as const)('an explanation has the action, tables and columns: %s', (query, action, table, columns) => {
  const explanation = explained(query)
  expect(explanation).toMatchObject({ action, table, columns })
})

describe('joins', () => {
  test('each join has its table, alias and condition', () => {
    expect(
      explained(`get users join posts inner join tags as t on t.post_id = posts.id and t.on = true cross join days
        left join lateral (get logs limit 1) l`).joins,
    ).toEqual([
      { type: 'left', table: 'posts', alias: null, on: null },
      { type: 'inner', table: 'tags', alias: 't', on: 't.post_id = posts.id and t.on = true' },
      { type: 'cross', table: 'days', alias: null, on: null },
      { type: 'left', table: null, alias: 'l', on: 'true' },
    ])
  })

  test('the source of a merge is listed as a join', () => {
    const { joins, filters } = explained('merge t using u as x[b = 1] on t.id = x.id when matched then delete')
    expect(joins).toEqual([{ type: 'using', table: 'u', alias: 'x', on: 't.id = x.id' }])
    expect(filters).toEqual(['b = 1'])
  })

  test('joins of writes are listed, and conditions in brackets are filters', () => {
    const { joins, filters } = explained('del t inner join u[b = 1] on u.id = t.id where t.a = 2')
    expect(joins).toEqual([{ type: 'inner', table: 'u', alias: null, on: 'u.id = t.id' }])
    expect(filters).toEqual(['b = 1', 't.a = 2'])
  })
})

describe('notes', () => {
  test.each([
    [
      'get users join posts',
      [
        'The left join, which a bare join is too, keeps rows without a match in posts, with null for its columns.',
        'posts is joined by the foreign key; if none is known, on posts.user_id = users.id.',
      ],
    ],
    [
      'get a right join b on a.x = b.x',
      ['The right join keeps rows of b without a match, with null for the columns before it.'],
    ],
    [
      'get a full join b on a.x = b.x',
      ['The full join with b keeps the rows of both sides without a match, with null for the other side.'],
    ],
    [
      'get a left join b as x on a.id = x.id where lower(x.c) = 1 and x is null',
      [
        'The left join, which a bare join is too, keeps rows without a match in x, with null for its columns.',
        'The filters use columns of x, which are null in rows without a match.',
      ],
    ],
    ['get a cross join b', ['The cross join pairs every row with every row of b.']],
    ['get a inner join b[c = 1] on a.x = b.x', []],
    [
      'get a left join b[c = 1] on a.x = b.x',
      [
        'The left join, which a bare join is too, keeps rows without a match in b, with null for its columns.',
        'The condition of b in brackets is part of where, so it also decides about rows without a match.',
      ],
    ],
    [
      'get a inner join lateral (get b where b.x = a.x limit 1 offset 0) c on true',
      ['c stands for (get b where b.x = a.x limit 1 offset 0).', 'c is computed for each row to its left (lateral).'],
    ],
    ['get (get t limit 5) as x', ['x stands for (get t limit 5).']],
    ['cnt t', ['Returns one row with the number of rows in the column "count".']],
    ['export t', ['Exports every row: there is no where.']],
    ['export t where a = 1', []],
    ['export t[a = 1]', []],
    [
      'get t fields a, b group by a, b having count(*) > 1 or a = 2',
      [
        'Rows with the same a, b are combined into one.',
        'Of the groups, only those with count(*) > 1 or a = 2 remain (having).',
      ],
    ],
    [
      'get t fields role, lower(role), role, sum(n)',
      ['Groups by role, lower(role): fields next to an aggregate are an implicit group by.'],
    ],
    ['get t fields max(a)', ['All rows are combined into one, because the fields are aggregates.']],
    [
      'get users nest many posts { fields id limit 3 } nest company as c on c.id = users.company_id',
      [
        'The column posts holds the related rows as an array, empty if there are none, by the foreign key: ' +
          'nest many posts { fields id limit 3 }.',
        'The column c holds the related row as an object, or null: nest company as c on c.id = users.company_id.',
      ],
    ],
    [
      'get t fields a, rank() over w as r window w as (order by a)',
      [
        'Defines the window w as (order by a).',
        'rank() over w as r is computed over several rows (a window function); each stays in the result.',
      ],
    ],
    ['get distinct t fields a', ['Rows that are equal in every column are returned once (distinct).']],
    [
      'get distinct on (a) t order by a',
      ['Of the rows with the same a, only the first is returned (distinct on); order by determines which.'],
    ],
    [
      'get a fields x union all get b fields y order by 1 limit 3',
      [
        'Then union all (get b fields y).',
        'The columns and filters shown are those of the first query; ordering, limit and offset apply to the ' +
          'whole compound.',
      ],
    ],
    ['get t limit 5', ['There is a limit without order by: the rows returned can differ each time.']],
    ['get t offset 5', ['There is an offset without order by: the rows returned can differ each time.']],
    [
      'get t for update skip locked',
      ['Locks the rows for update until the transaction ends, and skips rows that other transactions have locked.'],
    ],
    [
      'get t for share',
      ['Locks the rows for share until the transaction ends, and waits for rows that other transactions have locked.'],
    ],
    [
      'with old (id) as (del t where a = 1 returning id) get old',
      ['old (id) stands for (del t where a = 1 returning id).', 'old changes data, whether it is read or not.'],
    ],
    ['get t where a = :b and c = $2 and d in $1 and e = :b', ['Needs values for $1, $2, :b.']],
    [
      'get t join (get u) x',
      [
        'This cannot run: the join of the query x needs "on": it has no foreign key to follow.',
        'x stands for (get u).',
        'The left join, which a bare join is too, keeps rows without a match in x, with null for its columns.',
      ],
    ],
    [
      'add t fields a values (1), (2)',
      ['Adds 2 rows.', 'Returns every column of the rows (returning *), because there is no returning clause.'],
    ],
    [
      'add t values 1, 2 returning id',
      ['Adds one row, with the columns of t in their order.', 'Returns id of each row.'],
    ],
    [
      'add t fields a from (get u fields b) conflict nothing returning a',
      [
        'Adds the rows of (get u fields b).',
        'A row that breaks any unique key is skipped and not returned.',
        'Returns a of each row.',
      ],
    ],
    [
      'add t fields a values 1 conflict (a) update n = t.n + 1, m = 2 where t.n < 9 returning *',
      [
        'Adds one row.',
        'A row whose a exists already is not added: the existing one is updated by n = t.n + 1, m = 2, where t.n < 9.',
        'Returns * of each row.',
      ],
    ],
    ['set t values a = a + 1 where all', ['Every row of t is updated (where all).', 'Sets a = a + 1.']],
    ['set t as x values a = 1 where b = 2 returning a', ['Sets a = 1.', 'Returns a of each row.']],
    ['del t inner join u on u.id = t.id where all', ['Every row of t that the joins find is deleted (where all).']],
    [
      'merge t using u on t.id = u.id when matched and u.x then delete when not matched then nothing',
      [
        'Each row takes the first branch that matches: when matched and u.x then delete; when not matched ' +
          'then nothing.',
      ],
    ],
    [
      'make t a:int4, b:int4:nullable, c:int4 primary key (a, c)',
      ['Null is not allowed in a, c.', 'Has the primary key (a, c).'],
    ],
    [
      'index i on t a unique where b',
      [
        'The index is called i.',
        'No two rows may have the same values in these columns (unique).',
        'Only rows that pass the filters are in the index.',
      ],
    ],
    ["call app.run(1, 'x')", ["Runs the procedure: call app.run(1, 'x')."]],
    [
      'explain del t where all',
      ['Nothing is read or written: PostgreSQL returns the plan.', 'Every row of t is deleted (where all).'],
    ],
    ['begin', []],
  ] as const)('a note describes what a reader may overlook: %s', (query, expected) => {
    expect(notes(query)).toEqual(expected)
  })
})

test('texts are in one line and in canonical form, however long', () => {
  const names = Array.from({ length: 60 }, (_, index) => `column_${index}`)
  const { filters } = explained(`get t where coalesce(${names.join(',')}) = "x"`)
  expect(filters).toEqual([`coalesce(${names.join(', ')}) = 'x'`])
})

test('a query with thousands of parts is explained in linear time', () => {
  const many = Array.from({ length: 1_200 }, (_, index) => `a${index} as (get b where c = ${index})`)
  const started = performance.now()
  const explanation = explained(`with ${many.join(', ')} get a0`)
  expect(performance.now() - started).toBeLessThan(2_000)
  expect(explanation.notes).toHaveLength(1_200)
})
