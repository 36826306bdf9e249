/**
 * docs/reference/writing.md#rules-of-related-rows: a body with related rows has the effects of the single
 * requests that would write each row, or none if one of those fails. Bodies are random.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { executeOn } from '../support/execute.ts'
import { clientFixture, databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import type { Reply } from '../support/gateway.ts'
import { sender } from '../support/send.ts'

const database = databaseFixture(`
  create table customers (id int primary key, name text not null);
  create table orders (id int primary key, customer_id int references customers, note text,
    total int check (total >= 0));
  create table items (order_id int not null references orders on delete cascade, line int,
    quantity int check (quantity > 0), primary key (order_id, line));
  create table notes (id int primary key, order_id int not null, line int not null, text text not null,
    foreign key (order_id, line) references items on delete cascade);
  create table parcels (id int primary key, order_id int references orders, weight int);
  alter table items enable row level security, force row level security;
  create policy small on items using (true) with check (quantity is null or quantity < 50);
  grant select, insert, update, delete on all tables in schema public to app;
`)
const admin = clientFixture(() => database.adminUrl)
const gateway = gatewayFixture(database)
const [post, patch, remove] = [
  sender(() => gateway, 'POST'),
  sender(() => gateway, 'PATCH'),
  sender(() => gateway, 'DELETE'),
]

const TABLES = ['customers', 'orders', 'items', 'notes', 'parcels']
async function state(): Promise<unknown[]> {
  const tables: unknown[] = []
  for (const table of TABLES) {
    tables.push((await admin.query({ text: `select * from ${table} order by 1, 2`, rowMode: 'array' })).rows)
  }
  return tables
}
const reset = () =>
  executeOn(
    admin,
    `truncate customers, orders, items, notes, parcels;
     insert into customers values (1, 'Acme'); insert into orders values (1, 1, 'first', 5), (2, null, 'second', 6);
     insert into items values (1, 1, 10), (1, 2, 20), (2, 1, 30); insert into notes values (1, 1, 1, 'a');
     insert into parcels values (1, 1, 10), (2, 1, 20), (3, 2, 30)`,
  )

type Row = Readonly<Record<string, unknown>>
type Request = () => Promise<Reply>

const rarely = <T>(usual: fc.Arbitrary<T>, other: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 12, arbitrary: usual }, { weight: 1, arbitrary: other })
const quantity = rarely(fc.integer({ min: 1, max: 49 }), fc.constantFrom(0, 50))
const note = fc.record({
  id: fc.integer({ min: 2, max: 60 }),
  text: rarely<string | null>(fc.constantFrom('x', 'y'), fc.constant(null)),
})
const newItem = fc.record(
  { line: fc.integer({ min: 3, max: 9 }), quantity, notes: fc.array(note, { maxLength: 2 }) },
  { requiredKeys: ['line'] },
)
const customer = fc.record({
  id: rarely(fc.integer({ min: 2, max: 40 }), fc.constant(1)),
  name: fc.constantFrom('Bolt', 'Cord'),
})
const parcel = fc.record({ id: fc.integer({ min: 4, max: 60 }), weight: fc.integer({ min: 1, max: 9 }) })
const order = fc.record(
  {
    id: fc.integer({ min: 3, max: 60 }),
    note: fc.constantFrom('n', null),
    total: rarely(fc.integer({ min: 0, max: 9 }), fc.constant(-1)),
    customer,
    items: fc.array(newItem, { maxLength: 4 }),
    parcels: fc.array(parcel, { maxLength: 2 }),
  },
  { requiredKeys: ['id'] },
)
const unique = <T>(rows: readonly T[], key: (row: T) => unknown): T[] => [
  ...new Map(rows.map(row => [key(row), row])).values(),
]

/** The requests that create an order, and what belongs to it. */
function creations({
  customer,
  items = [],
  parcels = [],
  ...own
}: Row & { customer?: Row; items?: Row[]; parcels?: Row[] }): Request[] {
  const id = own.id
  return [
    ...(customer === undefined ? [] : [() => post('/api/customers', customer)]),
    () => post('/api/orders', customer === undefined ? own : { ...own, customer_id: customer.id }),
    ...itemCreations(id, items),
    ...parcels.map(one => () => post('/api/parcels', { ...one, order_id: id })),
  ]
}

function itemCreations(order: unknown, items: readonly Row[]): Request[] {
  return items.flatMap(({ notes = [], ...item }) => [
    () => post('/api/items', { ...item, order_id: order }),
    ...(notes as Row[]).map(one => () => post('/api/notes', { ...one, order_id: order, line: item.line })),
  ])
}

/** Both ways to write, from the same rows. */
async function compare(related: Request, single: readonly Request[]): Promise<boolean> {
  await reset()
  const before = await state()
  let isPossible = true
  for (const request of single) isPossible &&= (await request()).status < 300
  const expected = isPossible ? await state() : before
  await reset()
  const reply = await related()
  expect(reply.status < 300, reply.text).toBe(isPossible)
  expect(await state()).toEqual(expected)
  return isPossible
}

test('a creation has the effects of single requests', { timeout: 120_000 }, async () => {
  const outcomes = new Set<boolean>()
  await fc.assert(
    fc.asyncProperty(fc.array(order, { minLength: 1, maxLength: 3 }), async orders => {
      const rows = orders as Row[]
      outcomes.add(
        await compare(() => post('/api/orders', rows.length === 1 ? rows[0] : rows), rows.flatMap(creations)),
      )
    }),
    { numRuns: 60 },
  )
  expect(outcomes.size).toBe(2)
})

const line = rarely(fc.constantFrom(1, 2), fc.constant(9))
const change = fc.record(
  {
    note: fc.constantFrom('changed', null),
    customer: fc.oneof(
      fc.record({ create: customer }),
      fc.record({ update: fc.record({ name: fc.constantFrom('Zinc') }) }),
    ),
    create: fc.array(newItem, { maxLength: 3 }),
    update: fc.array(fc.record({ line, quantity }), { maxLength: 2 }),
    delete: fc.array(fc.record({ line }), { maxLength: 1 }),
    parcels: fc.array(
      fc.record({ id: rarely(fc.constantFrom(1, 2, 4, 5), fc.constant(3)), weight: fc.integer({ min: 1, max: 9 }) }),
      {
        maxLength: 3,
      },
    ),
  },
  { requiredKeys: ['create', 'update', 'delete'] },
)

test('a change has the effects of single requests', { timeout: 120_000 }, async () => {
  const outcomes = new Set<boolean>()
  await fc.assert(
    fc.asyncProperty(change, async drawn => {
      const update = unique(drawn.update, row => row.line)
      const parcels = drawn.parcels && unique(drawn.parcels, row => row.id)
      const { create, delete: removed, customer, note } = drawn as typeof drawn & { create: Row[] }
      const body = {
        ...(note === undefined ? {} : { note }),
        ...(customer === undefined ? {} : { customer }),
        items: { create, update, delete: removed },
        ...(parcels === undefined ? {} : { parcels: { set: parcels } }),
      }
      const single: Request[] = [
        ...(customer !== undefined && 'create' in customer ? [() => post('/api/customers', customer.create)] : []),
        ...(note === undefined ? [] : [() => patch('/api/orders/1', { note })]),
        ...(customer === undefined
          ? []
          : 'create' in customer
            ? [() => patch('/api/orders/1', { customer_id: customer.create.id })]
            : [() => patch('/api/customers/1', customer.update)]),
        ...removed.map(row => () => remove(`/api/items/1,${row.line}`)),
        ...update.map(row => () => patch(`/api/items/1,${row.line}`, { quantity: row.quantity })),
        ...itemCreations(1, create),
        ...(parcels === undefined ? [] : replacing(parcels)),
      ]
      outcomes.add(await compare(() => patch('/api/orders/1', body), single))
    }),
    { numRuns: 80 },
  )
  expect(outcomes.size).toBe(2)
})

/** The requests that make these the parcels of order 1, which has those with the ids 1 and 2. */
function replacing(parcels: readonly { readonly id: number; readonly weight: number }[]): Request[] {
  const has = (id: number) => parcels.some(one => one.id === id)
  return [
    ...[1, 2].filter(id => !has(id)).map(id => () => patch(`/api/parcels/${id}`, { order_id: null })),
    ...parcels.map(
      ({ id, ...row }) =>
        () =>
          id <= 2 ? patch(`/api/parcels/${id}`, row) : post('/api/parcels', { id, ...row, order_id: 1 }),
    ),
  ]
}
