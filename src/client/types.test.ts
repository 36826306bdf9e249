/** The types of the client's results: statements that must not compile are marked. */
import { expect, test } from 'vitest'
import { aliased, as, countAll, eq, fn, isNull } from '../language/index.ts'
import { createClient, not, or } from './index.ts'

interface Schema {
  Tables: {
    orders: {
      Row: { id: number; status: 'paid' | 'open'; total: number; note: string | null; meta: Json; customer_id: number }
      Insert: { status: 'paid' | 'open'; total?: number | `${number}` }
      Update: { status?: 'paid' | 'open'; total?: number | { $inc: number } }
      Relations: {
        customer: { table: 'customers'; many: false }
        'users!made_by': { table: 'users'; many: false }
        items: { table: 'items'; many: true }
        parcels: { table: 'parcels'; many: true }
      }
    }
    customers: { Row: { id: number; name: string }; Insert: never; Update: never; Relations: object }
    users: { Row: { id: number; email: string }; Insert: never; Update: never; Relations: object }
    parcels: {
      Row: { id: number; order_id: number; weight: number }
      Insert: { order_id: number; weight: number }
      Update: { weight?: number | { $inc: number } }
      Relations: { order: { table: 'orders'; many: false } }
    }
    items: {
      Row: { id: number; amount: number }
      Insert: never
      Update: never
      Relations: { customer: { table: 'customers'; many: false } }
    }
  }
  Functions: {
    tripled: { Args: { value: number }; Returns: number | null }
  }
  Enums: { status: 'paid' | 'open' }
}
type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json }

const client = createClient<Schema>({ url: 'http://127.0.0.1:1' })
const orders = client.from('orders')

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
/** Compiles only if a read has exactly this row. Nothing is sent. */
function has<Row>() {
  return <Out>(
    _: { first(): Promise<Out | null> },
    __: Same<Flat<Out>, Flat<Row>> extends true ? 'it has' : never,
  ): void => {}
}
type Flat<T> = { [K in keyof T]: T[K] }

test('results have the selected columns, aliases and relations', () => {
  has<{ id: number; status: 'paid' | 'open' }>()(orders.select('id', 'status'), 'it has')
  has<{ buyer: number; theme: unknown }>()(orders.select('buyer:customer_id', 'meta->>theme'), 'it has')
  has<{ id: number; customer: { id: number; name: string } | null }>()(orders.select('id').expand('customer'), 'it has')
  has<{ id: number; items: { amount: number }[] }>()(
    orders.select('id').expand('nested:items', items =>
      items
        .select('amount')
        .where({ id: { gt: 1 } })
        .limit(3),
    ),
    'it has',
  )
  has<{ id: number; maker: { email: string } | null }>()(
    orders.select('id').expand('maker:users!made_by', users => users.select('email')),
    'it has',
  )
  has<{ id: number; users: { id: number; email: string } | null }>()(
    orders.select('id').expand('users!made_by'),
    'it has',
  )
  has<{ id: number; lines: { id: number; amount: number; customer: { name: string } | null }[] }>()(
    orders.select('id').expand('lines:nested:items', items => items.expand('customer', one => one.select('name'))),
    'it has',
  )
  // @ts-expect-error another row
  has<{ id: string }>()(orders.select('id'), 'it has')
})

test('writes, calls and batches have the types of the schema', () => {
  expect(writes).toBeTypeOf('function')
})

test('only names and values of the schema compile', () => {
  expect(() => {
    orders.where({ status: 'paid', total: { gte: 100, lt: '200' }, note: null, 'meta->>theme': 'dark' })
    orders.where(or({ status: 'open' }, not({ total: 3n }))).orderBy('-total', 'id:desc.nullslast')
    // @ts-expect-error no such table
    client.from('order')
    // @ts-expect-error no such column
    orders.select('totals')
    // @ts-expect-error no such column
    orders.where({ totals: 1 })
    // @ts-expect-error no such label
    orders.where({ status: 'sent' })
    // @ts-expect-error not a number
    orders.where({ total: { gt: 'many' } })
    // @ts-expect-error a column that cannot be null
    orders.where({ total: null })
    // @ts-expect-error no such operator
    orders.where({ total: { above: 1 } })
    // @ts-expect-error a list of rows needs nested:
    orders.expand('items')
    // @ts-expect-error no such column
    orders.orderBy('-totals')
    // @ts-expect-error no such column of the relation
    orders.expand('customer', customer => customer.select('email'))
  }).not.toThrow()
})

/** Only compiled. */
async function writes(): Promise<void> {
  const made: Schema['Tables']['orders']['Row'] = await orders.insert({ status: 'paid', total: '1.10' })
  const many: readonly Schema['Tables']['orders']['Row'][] = await orders.insert([{ status: 'paid' }])
  await orders.update(made.id, { total: { $inc: 1 } })
  // @ts-expect-error a column is missing
  await orders.insert({ total: 1 })
  await orders.insert({ status: 'paid', parcels: [{ weight: 1 }] }, { expand: ['nested:parcels'] })
  await client.from('parcels').insert({ weight: 1, order: { status: 'paid', parcels: [{ weight: 2 }] } })
  await orders.update(1, { parcels: { create: [{ weight: 1 }], update: [{ id: 1, weight: { $inc: 1 } }] } })
  await orders.update(1, { total: 2, parcels: { set: [{ id: 1 }, { weight: 1 }] } }, { expand: ['nested:parcels(id)'] })
  await client.from('parcels').update(1, { order: { update: { status: 'open' } } })
  // @ts-expect-error no such column of a related row
  await orders.insert({ status: 'paid', parcels: [{ wieght: 1 }] })
  // @ts-expect-error no such change
  await orders.update(1, { parcels: { replace: [] } })
  // @ts-expect-error a table that cannot be written
  await orders.insert({ status: 'paid', customer: { name: 'x' } })
  // @ts-expect-error no such label
  await orders.insert([{ status: 'sent' }])
  // @ts-expect-error a table that cannot be written
  await client.from('customers').insert({ name: 'x' })
  const tripled: number | null = await client.rpc('tripled', { value: 1 })
  // @ts-expect-error another argument
  await client.rpc('tripled', { valu: 1 })
  const [order, text] = await client.batch(batch => [
    batch.from('orders').insert({ status: 'paid' }),
    batch.query<{ n: number }>('get orders fields count(*) as n'),
  ])
  const id: number = order.id + (text[0]?.n ?? 0)
  const { get } = await client.builder()
  // @ts-expect-error no such column
  get('orders').fields('ids')
  void [many, tripled, id]
  await queryRows()
}

/** Only compiled: the rows of queries of the builder. */
async function queryRows(): Promise<void> {
  const { get, count } = await client.builder()
  type Order = Schema['Tables']['orders']['Row']
  const rows =
    <Expected>() =>
    <Found>(_: Promise<readonly Found[]>, __: Same<Found, Expected>): void => {}
  rows<Order>()(client.query(get('orders').where(eq('status', 'paid')).limit(1)), true)
  rows<{ id: number; note: string | null }>()(client.query(get('orders').fields('id').fields('orders.note')), true)
  rows<{ buyer: number; n: number; named: boolean; odd: unknown }>()(
    client.query(
      get('orders').fields(
        as('customer_id', 'buyer'),
        as(countAll(), 'n'),
        as(isNull('note'), 'named'),
        as(fn('f'), 'odd'),
      ),
    ),
    true,
  )
  rows<{ count: number }>()(client.query(count('orders')), true)
  rows<{ id: number; 'c.id': number | null; name: string | null }>()(
    client.query(get(aliased('orders', 'o')).join(aliased('customers', 'c')).fields('o.id', 'c.id', 'name')),
    true,
  )
  rows<{ id: number; name: string }>()(client.query(get('customers').innerJoin('orders').fields('customers.*')), true)
  rows<{ total: number | null; name: string }>()(
    client.query(get('orders').rightJoin('customers').fields('total', 'name')),
    true,
  )
  rows<{ id: number; customers: { name: string } | null; lines: readonly { id: number; amount: number }[] }>()(
    client.query(
      get('orders')
        .fields('id')
        .nest('customers', customer => customer.fields('name'))
        .nestMany(aliased('items', 'lines')),
    ),
    true,
  )
  client.live(get('orders').fields('id'), { table: 'orders', onRows: ([row]) => row?.id.toFixed() })
  // Unknown: an expression has no name, a list of fields has no length, and a text is not parsed.
  rows<unknown>()(client.query('get orders'), true)
  rows<unknown>()(client.query(get('orders').fields(...(['id'] as ('id' | 'note')[]))), true)
  rows<{ n: string }>()(client.query<{ n: string }>(get('orders').fields('id')), true)
  // @ts-expect-error another type
  rows<{ id: string }>()(client.query(get('orders').fields('id')), true)
}
