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
])('%s → 400: %s', async (path, message) => {
  const reply = await gateway.get(`/api/${path}`)
  expect(reply.status).toBe(400)
  expect(reply.json.error).toMatchObject({ code: 'PARSE_ERROR', message: expect.stringContaining(message) })
})
