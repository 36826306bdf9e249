/** docs/reference/reading.md#related-rows: related rows embedded in one statement, at any depth. */
import { beforeAll, describe, expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { execute } from '../support/postgres.ts'
import { shopDatabase } from './shop.ts'

const database = databaseFixture(shopDatabase)
const gateway = gatewayFixture(database)

async function rows(path: string, asked = gateway): Promise<unknown> {
  const reply = await asked.get(path)
  expect(reply.status, reply.text).toBe(200)
  return reply.json.data
}

describe('a forward relation', () => {
  test('is an object, or null if the key is NULL', async () => {
    expect(await rows('/api/orders?select=id&expand=customers,approver:users!approved_by&id=lt.3')).toEqual([
      {
        id: 1,
        customers: expect.objectContaining({ id: 1, name: 'Acme' }),
        approver: { id: 2, tenant_id: 't1', name: 'Bob', boss_id: 1 },
      },
      { id: 2, customers: expect.objectContaining({ id: 1, name: 'Acme' }), approver: null },
    ])
  })
  test('is named like the column without _id', async () => {
    expect(await rows('/api/orders?select=id&expand=customer&id=3')).toEqual([
      { id: 3, customer: expect.objectContaining({ name: 'Bolt' }) },
    ])
  })
  test('is named like the column itself if it has no _id, next to the column under another name', async () => {
    expect(await rows('/api/orders?select=id,approved_by&expand=approver:approved_by&id=1')).toEqual([
      { id: 1, approved_by: 2, approver: expect.objectContaining({ name: 'Bob' }) },
    ])
    expect(await rows('/api/orders?select=id&expand=approved_by&id=2')).toEqual([{ id: 2, approved_by: null }])
    const both = await gateway.get('/api/orders?expand=approved_by')
    expect([both.status, both.json.error.message]).toEqual([400, expect.stringContaining('alias:approved_by')])
  })
  test('can lead to the same table', async () => {
    expect(await rows('/api/users?select=name&expand=boss')).toEqual([
      { name: 'Ann', boss: null },
      { name: 'Bob', boss: { id: 1, tenant_id: 't1', name: 'Ann', boss_id: null } },
      { name: 'Cyd', boss: { id: 1, tenant_id: 't1', name: 'Ann', boss_id: null } },
    ])
  })
})

describe('a relation to a table of another schema', () => {
  beforeAll(() =>
    execute(
      database.adminUrl,
      `create schema sales; grant usage on schema sales to app;
       create table sales.bills (id int primary key, order_id bigint references orders, sum int);
       create table sales.reminders (id int primary key, bill_id int references sales.bills);
       insert into sales.bills values (1, 1, 5), (2, 1, 6); insert into sales.reminders values (1, 2);
       grant select on all tables in schema sales to app`,
    ),
  )
  const several = gatewayFixture(database, { toml: 'schemas = ["public", "sales"]' })

  const BILLS = [
    { id: 1, order_id: 1, sum: 5 },
    { id: 2, order_id: 1, sum: 6 },
  ]
  test.each([
    ['nested:bills', 'bills'],
    ['nested:sales.bills', 'sales.bills'],
    ['nested:"sales.bills"', 'sales.bills'],
    ['nested:sales.bills!order_id', 'sales.bills'],
    ['due:nested:sales.bills', 'due'],
  ])('is named like the table or the resource: %s', async (expand, key) => {
    expect(await rows(`/api/orders/1?select=id&expand=${expand}`, several)).toEqual({ id: 1, [key]: BILLS })
  })
  test('can be combined with further relations', async () => {
    const path = '/api/orders/1?select=id&expand=customer,nested:sales.bills.nested:sales.reminders.sales.bills'
    expect(await rows(path, several)).toEqual({
      id: 1,
      customer: expect.objectContaining({ name: 'Acme' }),
      'sales.bills': [
        { ...BILLS[0], 'sales.reminders': [] },
        { ...BILLS[1], 'sales.reminders': [{ id: 1, bill_id: 2, 'sales.bills': BILLS[1] }] },
      ],
    })
  })
  test.each([
    ['sales.bills', 'write nested:sales.bills'],
    ['nested:sales.bill', 'has no relation "sales"'],
    ['nested:sales.nested:bills', 'has no relation "sales"'],
    ['nested:sales', 'has no relation "sales"'],
  ])('%s is 400', async (expand, message) => {
    const reply = await several.get(`/api/orders?expand=${expand}`)
    expect([reply.status, reply.json.error.message]).toEqual([400, expect.stringContaining(message)])
  })
})

describe('a nested relation', () => {
  test('is an array, empty without rows, in key order', async () => {
    expect(await rows('/api/orders?select=id&expand=nested:order_items&id=in.(1,4)')).toEqual([
      {
        id: 1,
        order_items: [
          { order_id: 1, line: 1, tenant_id: 't1', product_id: 1, quantity: 2 },
          { order_id: 1, line: 2, tenant_id: 't1', product_id: 2, quantity: 1 },
        ],
      },
      { id: 4, order_items: [] },
    ])
  })
  test('can lead to the same table', async () => {
    expect(await rows('/api/users?select=name&expand=nested:users&id=1')).toEqual([
      { name: 'Ann', users: [expect.objectContaining({ name: 'Bob' }), expect.objectContaining({ name: 'Cyd' })] },
    ])
  })
  test('can use a junction table in both directions', async () => {
    expect(await rows('/api/products?select=id&expand=nested:labels&id=in.(2,3)')).toEqual([
      {
        id: 2,
        labels: [
          { id: 1, tenant_id: 't1', name: 'sport' },
          { id: 2, tenant_id: 't1', name: 'home' },
        ],
      },
      { id: 3, labels: [] },
    ])
    expect(await rows('/api/labels?select=id&expand=nested:products&id=1')).toEqual([
      { id: 1, products: [expect.objectContaining({ id: 1 }), expect.objectContaining({ id: 2 })] },
    ])
  })
})

describe('a path of relations', () => {
  test('can continue forward from the rows of an array', async () => {
    expect(await rows('/api/orders?select=id&expand=nested:order_items.products&id=3')).toEqual([
      {
        id: 3,
        order_items: [expect.objectContaining({ line: 1, products: expect.objectContaining({ name: 'Cup' }) })],
      },
    ])
  })
  test('can be nested twice', async () => {
    expect(await rows('/api/users?select=id&expand=nested:orders!created_by.nested:order_items&id=2')).toEqual([
      { id: 2, orders: [expect.objectContaining({ id: 2, order_items: [expect.objectContaining({ quantity: 5 })] })] },
    ])
  })
  test('can lead back to the first table', async () => {
    expect(await rows('/api/orders?select=id&expand=customers.recent:nested:orders.customer&id=3')).toEqual([
      {
        id: 3,
        customers: expect.objectContaining({
          recent: [
            expect.objectContaining({ id: 3, customer: expect.objectContaining({ id: 2 }) }),
            expect.objectContaining({ id: 4, customer: expect.objectContaining({ id: 2 }) }),
          ],
        }),
      },
    ])
  })
  test('beyond max_expand_depth is rejected', async () => {
    expect((await gateway.get('/api/users?expand=boss.boss.boss.boss')).status).toBe(200)
    const reply = await gateway.get('/api/users?expand=boss.boss.boss.boss.boss')
    expect(reply.status).toBe(400)
    expect(reply.json.error.message).toContain('max_expand_depth')
  })
})

describe('columns in parentheses', () => {
  test('choose what an object or the rows of an array contain', async () => {
    expect(
      await rows('/api/orders?select=id&expand=customer(id,label:name),nested:order_items(line,quantity)&id=1'),
    ).toEqual([
      {
        id: 1,
        customer: { id: 1, label: 'Acme' },
        order_items: [
          { line: 1, quantity: 2 },
          { line: 2, quantity: 1 },
        ],
      },
    ])
  })
  test('can contain relations, paths into JSON, and *', async () => {
    const expand = 'customer(theme:meta->>theme),nested:order_items(line,product(name,nested:labels(name)))'
    expect(await rows(`/api/orders?select=id&expand=${expand}&id=2`)).toEqual([
      {
        id: 2,
        customer: { theme: 'dark' },
        order_items: [{ line: 1, product: { name: 'Red bicycle', labels: [{ name: 'sport' }] } }],
      },
    ])
    expect(await rows('/api/users/2?select=id&expand=boss(*,boss(name))')).toEqual({
      id: 2,
      boss: { id: 1, tenant_id: 't1', name: 'Ann', boss_id: null, boss: null },
    })
  })
  test('can be relations only', async () => {
    expect(await rows('/api/orders?select=id&expand=nested:order_items(product(name))&id=3')).toEqual([
      { id: 3, order_items: [{ product: { name: 'Cup' } }] },
    ])
  })
  test('read a name as a relation if the table has no such column', async () => {
    expect(await rows('/api/orders?select=id&expand=nested:order_items(line,p:product)&id=3')).toEqual([
      { id: 3, order_items: [{ line: 1, p: expect.objectContaining({ name: 'Cup' }) }] },
    ])
  })
  test('may be combined with a path and with other names of the relation', async () => {
    expect(
      await rows('/api/orders?select=id&expand=nested:order_items(line).product(id),all:nested:order_items&id=3'),
    ).toEqual([{ id: 3, order_items: [{ line: 1, product: { id: 3 } }], all: [expect.objectContaining({ line: 1 })] }])
  })
  test('work on a page with an offset and with a stream', async () => {
    expect(await rows('/api/orders?select=id&expand=customer(name)&sort=id&limit=1&offset=2')).toEqual([
      { id: 3, customer: { name: 'Bolt' } },
    ])
    const streamed = await gateway.get('/api/orders?select=id&expand=customer(name)&id=3&stream=true')
    expect(JSON.parse(streamed.text)).toEqual({ id: 3, customer: { name: 'Bolt' } })
  })
})

describe('the rows of a relation', () => {
  test('are filtered, sorted and limited by parameters with its name', async () => {
    const path = '/api/customers?select=id&expand=nested:orders(id,total)&id=1'
    expect(await rows(`${path}&orders.total=gte.60&orders.sort=-total`)).toEqual([
      {
        id: 1,
        orders: [
          { id: 2, total: expect.anything() },
          { id: 1, total: 100 },
        ],
      },
    ])
    expect(await rows(`${path}&orders.sort=-id&orders.limit=1&orders.offset=1`)).toEqual([
      { id: 1, orders: [{ id: 2, total: expect.anything() }] },
    ])
    expect(await rows(`${path}&orders.or=(status.eq.draft,total.lt.1)&orders.id.gt=1`)).toEqual([
      { id: 1, orders: [{ id: expect.anything(), total: 55 }] },
    ])
  })
  test('are found by alias, and at any depth', async () => {
    const path = '/api/customers?select=id&expand=recent:nested:orders(id,nested:order_items(line,product))&id=1'
    expect(await rows(`${path}&recent.id=lt.3&recent.sort=id&recent.order_items.product.name=Blue%20lamp`)).toEqual([
      {
        id: 1,
        recent: [
          {
            id: 1,
            order_items: [
              { line: 1, product: null },
              { line: 2, product: expect.objectContaining({ name: 'Blue lamp' }) },
            ],
          },
          { id: 2, order_items: [{ line: 1, product: null }] },
        ],
      },
    ])
  })
  test('of a forward relation that does not match is null', async () => {
    expect(await rows('/api/orders?select=id&expand=customer(name)&customer.name=ilike.a*&id=in.(1,3)')).toEqual([
      { id: 1, customer: { name: 'Acme' } },
      { id: 3, customer: null },
    ])
  })
  test('can be filtered for a single row and for the children of a row', async () => {
    expect(await rows('/api/orders/1?select=id&expand=nested:order_items(line)&order_items.line=2')).toEqual({
      id: 1,
      order_items: [{ line: 2 }],
    })
    expect(
      await rows('/api/customers/1/orders?select=id&expand=nested:order_items(line)&order_items.limit=1&id=1'),
    ).toEqual([{ id: 1, order_items: [{ line: 1 }] }])
  })
  test('do not take a filter on a column of the same name', async () => {
    expect(await rows('/api/orders?select=id&expand=approved_by&approved_by.gt=2')).toEqual([
      { id: expect.anything(), approved_by: { id: 3, tenant_id: 't1', name: 'Cyd', boss_id: 1 } },
    ])
  })
  test('through a junction table can be filtered and sorted', async () => {
    expect(await rows('/api/products?select=id&expand=nested:labels(name)&id=2&labels.sort=name')).toEqual([
      { id: 2, labels: [{ name: 'home' }, { name: 'sport' }] },
    ])
  })
})

describe('limits', () => {
  const limited = gatewayFixture(database, { toml: 'max_result_rows = 2\nmax_filters = 2' })
  test('max_result_rows also limits the limit of a relation', async () => {
    const path = '/api/customers?select=id&expand=nested:orders(id)&id=1&orders.limit=1000'
    expect(await rows(path, limited)).toEqual([{ id: 1, orders: [{ id: 1 }, { id: 2 }] }])
  })
  test('max_filters counts the filters of relations', async () => {
    const reply = await limited.get('/api/orders?expand=customer&id=1&status=paid&customer.id=1')
    expect([reply.status, reply.json.error.message]).toEqual([400, expect.stringContaining('max_filters')])
  })
})

test('applies row-level security to embedded rows', async () => {
  // Product 9 has label 9, and both belong to t2; t1 sees neither.
  expect(await rows('/api/products?select=id&expand=nested:labels&id=9')).toEqual([])
  expect(JSON.stringify(await rows('/api/labels?expand=nested:products'))).not.toContain('t2')
})

test('works with a cursor whose keys are not selected', async () => {
  const first = await gateway.get('/api/orders?limit=1&sort=-placed_at&select=status&expand=customer')
  expect(first.json.data).toEqual([{ status: 'draft', customer: expect.objectContaining({ name: 'Acme' }) }])
  const second = await gateway.get(
    `/api/orders?limit=1&sort=-placed_at&select=status&expand=customer&cursor=${first.json.next_cursor}`,
  )
  expect(second.json.data).toEqual([{ status: 'draft', customer: expect.objectContaining({ name: 'Bolt' }) }])
})

test.each([
  [
    'orders?expand=users',
    'relation "users" of "orders" is ambiguous; write one of: users!approved_by, users!created_by',
  ],
  ['users?expand=nested:orders', 'write one of: nested:orders!approved_by, nested:orders!created_by'],
  [
    'orders?expand=users!nope',
    'relation "users" of "orders" is not identified by the hint "nope"; ' +
      'write one of: users!approved_by, users!created_by',
  ],
  ['orders?expand=order_items', 'write nested:order_items'],
  ['orders?expand=nested:customers', 'write customers without nested:'],
  ['orders?expand=custmers', 'did you mean "customers"?'],
  ['orders?expand=customers,customers!customer_id', 'expand has "customers" twice'],
  ['orders?expand=status:customers', '"status" is both a column and an expanded relation'],
  ['orders?expand=__proto__', 'has no relation "__proto__"'],
  ['orders?expand=customer(nam)', 'did you mean "name"?'],
  ['orders?expand=customer(name', 'has a parenthesis that is not closed at position 14'],
  ['orders?expand=nested:order_items(line,prodct(id))', 'did you mean "product"?'],
  ['orders?expand=customer(id,orders)', 'write nested:orders'],
  ['orders?expand=customer&customer.limit=1', '"customer" is one row'],
  ['orders?expand=nested:order_items&order_items.limit=x', 'order_items.limit "x" is not a whole number'],
  ['orders?expand=nested:order_items&order_items.lin=1', 'did you mean "line"?'],
  ['orders?expand=nested:order_items&order_items.line=x', 'x'],
  ['orders?expand=nested:order_items&order_item.line=1', 'did you mean "order_items"?'],
  ['orders?order_items.line=1', 'which is not expanded; add expand=nested:order_items'],
  ['orders?expand=lines:nested:order_items&order_items.line=1', 'not the name of an expanded relation'],
  ['orders?expand=nested:order_items&order_items.sort=-line:desc', 'order_items.sort'],
  ['orders?expand=nested:order_items&order_items.limit=1&order_items.limit=2', 'given twice'],
])('%s → 400: %s', async (path, message) => {
  const reply = await gateway.get(`/api/${path}`)
  expect(reply.status).toBe(400)
  expect(reply.json.error).toMatchObject({ code: 'PARSE_ERROR', message: expect.stringContaining(message) })
})
