/**
 * The statement of a response returns exactly the read's rows as JSON, with their keys, and computes nothing
 * for other rows.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { clientFixture, databaseFixture } from '../../../test/support/fixtures.ts'
import type { Expression, Get } from '../tree/ast.ts'
import { NOWHERE } from '../tree/ast.ts'
import {
  arithmetic,
  call,
  cast,
  column,
  compare,
  exists,
  field,
  get,
  integer,
  jsonStep,
  nest,
  order,
  position,
  star,
  text,
} from '../tree/build.ts'
import { LanguageError } from '../tree/error.ts'
import { printRows } from './print-rows.ts'

const database = databaseFixture()
const client = clientFixture(() => database.adminUrl)

beforeAll(() =>
  client.query(`
    create table customers (id int primary key, name text, r text);
    create table orders (id int primary key, customer_id int, total numeric, note text, meta jsonb, page int, c1 int);
    create table lines (id int primary key, order_id int, n int);
    create index on lines (order_id);
    create sequence evaluated;
    create function seen(id int) returns int language plpgsql volatile
      as $$ begin perform nextval('evaluated'); return id; end $$;
    insert into customers select i, 'c' || i, 'r' || i from generate_series(1, 5) as i;
    insert into orders select i, 1 + i % 5, i % 7, 'n' || i, jsonb_build_object('k', 100 - i), -i, i * 10
      from generate_series(1, 60) as i;
    insert into lines select i, 1 + i % 60, i from generate_series(1, 600) as i;
    analyze;
  `),
)

const orders = { schema: null, name: 'orders' }
const o = (name: string): Expression => column('o', name)
const customer = nest({
  many: false,
  table: { schema: null, name: 'customers' },
  alias: 'page',
  name: 'customer',
  on: compare('=', column('page', 'id'), o('customer_id')),
  fields: [field(column('page', 'name'))],
})
const lines = nest({
  many: true,
  table: { schema: null, name: 'lines' },
  alias: 't2',
  name: 'lines',
  on: compare('=', column('t2', 'order_id'), o('id')),
  fields: [field(column('t2', 'n'))],
  orderBy: [order(column('t2', 'n'))],
  limit: integer('2'),
})

function read(parts: Partial<Get> = {}): Get {
  return {
    ...get({
      table: orders,
      alias: 'o',
      fields: [field(o('id')), field(o('total'), 'sum')],
      orderBy: [order(o('id'), { descending: true })],
      limit: integer('2'),
    }),
    ...parts,
  }
}

function keysOf(query: Get): readonly Expression[] {
  return query.orderBy.map(item => item.expression)
}

/** The result as text, column by column. */
async function rows(
  query: Get,
  keys: readonly Expression[] = keysOf(query),
  values: readonly unknown[] = [],
): Promise<unknown[][]> {
  const result = await client.query<unknown[]>({
    text: printRows(query, { keys }).text,
    values: [...values],
    rowMode: 'array',
    types: { getTypeParser: () => (value: string) => value },
  })
  return result.rows
}

describe('the plain form', () => {
  test('keys that are columns of the result are read from it', async () => {
    const query = read({ nests: [customer] })
    expect(printRows(query, { keys: keysOf(query) }).text).toBe(
      'SELECT row_to_json(r.*), r.id FROM (SELECT o.id, o.total AS sum, (SELECT row_to_json(n.*) FROM ' +
        '(SELECT page.name FROM customers AS page WHERE page.id = o.customer_id) AS n) AS customer FROM ' +
        'orders AS o ORDER BY o.id DESC LIMIT 2) AS r',
    )
    expect(await rows(query)).toEqual([
      ['{"id":60,"sum":4,"customer":{"name":"c1"}}', '60'],
      ['{"id":59,"sum":3,"customer":{"name":"c5"}}', '59'],
    ])
  })

  test("a key is found under the column's alias, with or without its table", async () => {
    expect(printRows(read(), { keys: [o('total')] }).text).toContain('SELECT row_to_json(r.*), r.sum FROM')
    expect(printRows(read(), { keys: [column('total')] }).text).toContain('SELECT row_to_json(r.*), r.sum FROM')
    expect(printRows(read({ orderBy: [order(column('sum'))] }), { keys: [column('sum')] }).text).toContain(
      'SELECT row_to_json(r.*), r.sum FROM',
    )
  })

  test('all columns are returned if no fields are named', async () => {
    const query = get({
      table: { schema: null, name: 'customers' },
      orderBy: [order(column('customers', 'r'))],
      limit: integer('1'),
    })
    expect(printRows(query, { keys: keysOf(query) }).text).toBe(
      'SELECT row_to_json(r.*), r.r FROM (SELECT * FROM customers ORDER BY customers.r LIMIT 1) AS r',
    )
    expect(await rows(query)).toEqual([['{"id":1,"name":"c1","r":"r1"}', 'r1']])
  })

  test('a read without keys and a read with common tables are printed', async () => {
    const query: Get = {
      ...get({ table: { schema: null, name: 'x' } }),
      with: {
        kind: 'with',
        recursive: false,
        tables: [
          {
            kind: 'cte',
            name: { kind: 'name', text: 'x', span: NOWHERE },
            columns: [],
            statement: read(),
            span: NOWHERE,
          },
        ],
        span: NOWHERE,
      },
    }
    expect(printRows(query, { keys: [] }).text).toMatch(
      /^WITH x AS \(SELECT .*\) SELECT row_to_json\(r\.\*\) FROM \(SELECT \* FROM x\) AS r$/,
    )
    expect(await rows(query, [])).toEqual([['{"id":60,"sum":4}'], ['{"id":59,"sum":3}']])
  })

  test('a count is one row', async () => {
    expect(await rows({ ...get({ table: orders }), purpose: 'count' }, [])).toEqual([['{"count":60}']])
  })
})

describe('the split form', () => {
  test('keys can be expressions that are not columns of the result', async () => {
    const key = jsonStep('->>', o('meta'), cast(position(1), 'text'))
    const query = read({ orderBy: [order(key), order(o('id'))] })
    expect(printRows(query, { keys: keysOf(query) })).toEqual({
      text:
        'SELECT row_to_json(r.*), page.c3, page.c1 FROM (SELECT o.id AS c1, o.total AS c2, o.meta ->> ' +
        '$1::text AS c3 FROM orders AS o ORDER BY o.meta ->> $1::text, o.id LIMIT 2) AS page CROSS JOIN ' +
        'LATERAL (SELECT page.c1 AS id, page.c2 AS sum) AS r',
      parameters: [{ kind: 'position', n: 1 }],
    })
    expect(await rows(query, keysOf(query), ['k'])).toEqual([
      ['{"id":60,"sum":4}', '40', '60'],
      ['{"id":59,"sum":3}', '41', '59'],
    ])
  })

  test('with an offset, nested rows are computed only for the rows of the page', async () => {
    const query = read({ nests: [customer, lines], offset: position(1) })
    expect(printRows(query, { keys: [] }).text).toBe(
      'SELECT row_to_json(r.*) FROM (SELECT o.id AS c1, o.total AS c2, o.customer_id AS c3 FROM orders AS o ' +
        'ORDER BY o.id DESC LIMIT 2 OFFSET $1) AS page2 CROSS JOIN LATERAL (SELECT page2.c1 AS id, page2.c2 ' +
        'AS sum, (SELECT row_to_json(n.*) FROM (SELECT page.name FROM customers AS page WHERE page.id = ' +
        "page2.c3) AS n) AS customer, (SELECT COALESCE(json_agg(row_to_json(n.*)), '[]') FROM (SELECT t2.n " +
        'FROM lines AS t2 WHERE t2.order_id = page2.c1 ORDER BY t2.n LIMIT 2) AS n) AS lines) AS r',
    )
    expect(await rows(query, keysOf(query), [10])).toEqual([
      ['{"id":50,"sum":1,"customer":{"name":"c1"},"lines":[{"n":49}, {"n":109}]}', '50'],
      ['{"id":49,"sum":0,"customer":{"name":"c5"},"lines":[{"n":48}, {"n":108}]}', '49'],
    ])
  })

  test('a nest whose name could refer to the outer table stays in the inner query', async () => {
    const loose = { ...customer, on: compare('=', column('page', 'id'), column('customer_id')) }
    const query = read({ nests: [loose], orderBy: [order(o('total')), order(o('note'))], offset: integer('1') })
    expect(printRows(query, { keys: keysOf(query) }).text).toContain(
      'FROM orders AS o ORDER BY o.total, o.note LIMIT 2 OFFSET 1) AS page2 ',
    )
    expect(printRows(query, { keys: keysOf(query) }).text).toContain(
      'WHERE page.id = customer_id) AS n) AS n1 FROM orders',
    )
    expect(await rows(query)).toEqual([
      ['{"id":21,"sum":0,"customer":{"name":"c2"}}', '0', 'n21'],
      ['{"id":28,"sum":0,"customer":{"name":"c4"}}', '0', 'n28'],
    ])
  })

  test('both forms return the same rows', async () => {
    const junction = nest({
      ...lines,
      on: exists(
        get({
          table: { schema: null, name: 'lines' },
          alias: 'j',
          where: compare('=', column('j', 'order_id'), o('id')),
        }),
      ),
      where: compare('=', column('t2', 'id'), o('page')),
      name: 'none',
    })
    const deep = nest({
      ...customer,
      nests: [
        nest({
          many: true,
          table: orders,
          alias: 't3',
          name: 'siblings',
          on: compare('=', column('t3', 'customer_id'), column('page', 'id')),
          fields: [field(column('t3', 'id')), field(o('id'), 'from')],
          orderBy: [order(column('t3', 'id'))],
          limit: integer('1'),
        }),
      ],
    })
    const query = read({ nests: [junction, deep, lines], limit: null })
    const plain = await rows(query)
    const split = await rows({ ...query, offset: integer('0') })
    expect(plain).toHaveLength(60)
    expect(split).toEqual(plain)
    expect(printRows({ ...query, offset: integer('0') }, { keys: [] }).text).not.toBe(
      printRows(query, { keys: [] }).text,
    )
    expect(plain[0]).toEqual([
      '{"id":60,"sum":4,"none":[],"customer":{"name":"c1","siblings":[{"id":5,"from":60}]},"lines":[{"n":59}, ' +
        '{"n":119}]}',
      '60',
    ])
  })

  test('aliases in order by and having keep their meaning', async () => {
    const query: Get = {
      ...get({
        table: orders,
        fields: [field(column('customer_id'), 'who'), field(call('count', [], { star: true }), 'n')],
        orderBy: [order(column('n')), order(call('max', [column('id')]), { descending: true })],
      }),
      having: compare('>', column('n'), integer('1')),
    }
    const { text: sql } = printRows(query, { keys: keysOf(query) })
    expect(sql).toBe(
      'SELECT row_to_json(r.*), page.c2, page.c3 FROM (SELECT customer_id AS c1, COUNT(*) AS c2, MAX(id) AS ' +
        'c3 FROM orders GROUP BY customer_id HAVING COUNT(*) > 1 ORDER BY COUNT(*), MAX(id) DESC) AS page ' +
        'CROSS JOIN LATERAL (SELECT page.c1 AS who, page.c2 AS n) AS r',
    )
    expect((await rows(query))[0]).toEqual(['{"who":1,"n":12}', '12', '60'])
  })

  test('order by a position and fields with equal names work', async () => {
    const query = read({
      fields: [field(o('id'), 'x'), field(o('total'), 'x')],
      orderBy: [order(integer('1')), order(o('note'))],
    })
    expect(await rows(query, [o('id'), o('note')])).toEqual([
      ['{"x":1,"x":1}', '1', 'n1'],
      ['{"x":2,"x":2}', '2', 'n2'],
    ])
  })

  test.each<[string, Get, string]>([
    ['distinct', read({ distinct: { kind: 'distinct', on: [], span: NOWHERE } }), 'with distinct'],
    ['*', read({ fields: [star()] }), 'name the fields instead of *'],
    [
      'a compound',
      read({
        compounds: [
          { kind: 'compound', operator: 'union', all: true, query: read({ orderBy: [], limit: null }), span: NOWHERE },
        ],
      }),
      'a compound has only',
    ],
    [
      'a field without a name',
      read({ fields: [field(arithmetic('+', o('id'), integer('1')))] }),
      'give every computed field a name',
    ],
  ])('sort keys beside %s are rejected', (_, query, message) => {
    expect(() => printRows(query, { keys: [o('note')] })).toThrow(message)
    expect(() => printRows(query, { keys: [o('note')] })).toThrow(LanguageError)
  })
})

describe('nothing is computed for rows that are not returned', () => {
  const counting = nest({
    ...lines,
    name: 'counted',
    fields: [field(call('seen', [o('id')]), 'seen')],
    limit: integer('1'),
  })
  const evaluated = async (query: Get): Promise<number> => {
    await client.query("select setval('evaluated', 1, false)")
    await rows(query)
    const {
      rows: [row],
    } = await client.query<{ n: string }>('select case when is_called then last_value else 0 end as n from evaluated')
    return Number(row?.n)
  }

  test.each<[string, Get]>([
    ['beyond the limit, in the order of an index', read({ nests: [counting] })],
    [
      'beyond the limit, after a sort',
      read({
        nests: [counting],
        orderBy: [order(o('id')), order(o('total'))],
        fields: [field(o('id')), field(o('total'))],
      }),
    ],
    [
      'that an offset skips, after a sort',
      read({ nests: [counting], orderBy: [order(o('total')), order(o('id'))], offset: integer('20') }),
    ],
    ['that an offset skips, in the order of an index', read({ nests: [counting], offset: integer('20') })],
  ])('a skipped row does not evaluate: %s', async (_, query) => {
    expect(await evaluated(query)).toBe(2)
  })

  test('the split form adds no plan node to the page’s plan, only a projection', async () => {
    const plan = async (sql: string): Promise<string[]> => {
      const { rows: lines } = await client.query<{ 'QUERY PLAN': string }>(`explain (costs off) ${sql}`)
      return lines.map(line =>
        line['QUERY PLAN']
          .trim()
          .replace(/^-> +/, '')
          .replace(/\b(r|page|orders|o|orders o)$/, 'x'),
      )
    }
    const plain = await plan(printRows(read(), { keys: [o('id')] }).text)
    const split = await plan(printRows(read(), { keys: [o('id'), o('note')] }).text)
    expect(plain[0]).toBe('Subquery Scan on x')
    expect(split).toEqual(plain)
  })
})

test('literals become parameters on request', () => {
  const { text: sql, parameters } = printRows(read({ where: compare('=', o('note'), text('a')) }), {
    keys: [],
    parameters: 'all',
  })
  expect(sql).toContain('WHERE o.note = $1 ORDER BY o.id DESC LIMIT $2')
  expect(parameters).toEqual([
    { kind: 'literal', value: 'a', type: 'text' },
    { kind: 'literal', value: '2', type: 'integer' },
  ])
})
