/**
 * docs/reference/rest-api.md#the-schema: the document's form, and that it contains only what the caller can
 * see.
 */
import { beforeAll, expect, describe as group, test } from 'vitest'
import { openSession } from '../../test/support/catalog.ts'
import { databaseFixture } from '../../test/support/fixtures.ts'
import { type CanUpdate, describe } from './describe.ts'
import { introspect } from './introspect.ts'
import type { Catalog } from './model.ts'

const database = databaseFixture()
let catalog: Catalog

beforeAll(async () => {
  const admin = await openSession(database.adminUrl)
  await admin.run(`
    create schema auth; create table auth.accounts (id int primary key);
    create type status as enum ('new', 'paid');
    create domain checked_status as status;
    create table customers (id int primary key, name text not null, secret text unique, account_id int
    references auth.accounts);
    comment on table customers is 'Who buys';
    comment on column customers.name is 'As on the invoice';
    create table orders (
      id bigint generated always as identity primary key, customer_id int not null references customers,
      status status default 'new',
      checked checked_status, total numeric(10,2), twice numeric generated always as (total * 2) stored,
      unique (customer_id, total));
    create table tags (id int primary key);
    create table order_tags (order_id bigint references orders, tag_id int references tags, primary key (order_id,
    tag_id));
    create table "__proto__" (id int primary key, "constructor" int references "__proto__")`)
  catalog = await introspect(admin.query, { schemas: ['public'], exposedViews: [] })
  await admin.close()
})

group('describe', () => {
  test('describes a table completely', () => {
    expect(describe(catalog).tables.orders).toEqual({
      schema: 'public',
      name: 'orders',
      kind: 'table',
      comment: null,
      primary_key: ['id'],
      columns: [
        column({ name: 'id', type: 'bigint', nullable: false, identity: 'always' }),
        column({ name: 'customer_id', type: 'integer', nullable: false }),
        column({ name: 'status', type: 'status', default: "'new'::status", enum: ['new', 'paid'] }),
        column({ name: 'checked', type: 'checked_status', enum: ['new', 'paid'] }),
        column({ name: 'total', type: 'numeric(10,2)' }),
        column({ name: 'twice', type: 'numeric', generated: 'stored' }),
      ],
      foreign_keys: [
        {
          name: 'orders_customer_id_fkey',
          columns: ['customer_id'],
          references: { table: 'customers', columns: ['id'] },
        },
      ],
      referenced_by: [
        { name: 'order_tags_order_id_fkey', table: 'order_tags', columns: ['order_id'], references: ['id'] },
      ],
      unique: [['customer_id', 'total']],
      relations: [
        {
          name: 'customers',
          table: 'customers',
          cardinality: 'one',
          columns: ['customer_id'],
          via: 'orders_customer_id_fkey',
        },
        {
          name: 'order_tags',
          table: 'order_tags',
          cardinality: 'many',
          columns: ['id'],
          via: 'order_tags_order_id_fkey',
        },
        { name: 'tags', table: 'tags', cardinality: 'many', columns: ['id'], via: 'order_tags' },
      ],
    })
  })

  test('contains comments, and no foreign key to a table outside the schemas', () => {
    const { comment, columns, foreign_keys } = describe(catalog).tables.customers ?? {}
    expect(comment).toBe('Who buys')
    expect(columns?.find(({ name }) => name === 'name')?.comment).toBe('As on the invoice')
    expect(foreign_keys).toEqual([])
  })

  test('a table called __proto__ is an own key, in the JSON text too', () => {
    const document = describe(catalog)
    expect(Object.keys(document.tables)).toEqual(['__proto__', 'customers', 'order_tags', 'orders', 'tags'])
    const text = JSON.stringify(document)
    expect(text).toMatch(/^\{"tables":\{"__proto__":\{"schema":"public","name":"__proto__",/)
    expect(text).toContain(
      '{"name":"__proto__","table":"__proto__","cardinality":"one","columns":["constructor"],' +
        '"via":"__proto___constructor_fkey"}',
    )
  })

  test('a hidden table appears nowhere: not as a table, a key, a reference, a relation or a junction', () => {
    const withoutJunction = describe(catalog, table => table.name !== 'order_tags')
    expect(Object.keys(withoutJunction.tables)).toEqual(['__proto__', 'customers', 'orders', 'tags'])
    expect(JSON.stringify(withoutJunction)).not.toContain('order_tags')
    expect(withoutJunction.tables.tags?.relations).toEqual([])
    expect(JSON.stringify(describe(catalog, table => table.name !== 'customers'))).not.toContain('"customers"')
  })

  test('a hidden column and everything that uses it are omitted', () => {
    const withoutSecret = describe(catalog, (_table, column) => column?.name !== 'secret')
    expect(withoutSecret.tables.customers?.columns.map(({ name }) => name)).toEqual(['id', 'name', 'account_id'])
    expect(withoutSecret.tables.customers?.unique).toEqual([])
    expect(JSON.stringify(withoutSecret)).not.toContain('"secret"')

    const withoutKey = describe(catalog, (table, column) => table.name !== 'orders' || column?.name !== 'customer_id')
    expect(withoutKey.tables.orders).toMatchObject({ foreign_keys: [], unique: [] })
    expect(withoutKey.tables.customers).toMatchObject({ referenced_by: [], relations: [] })
    expect(JSON.stringify(withoutKey)).not.toContain('"customer_id"')

    const withoutId = describe(catalog, (table, column) => table.name !== 'orders' || column?.name !== 'id')
    expect(withoutId.tables.orders?.primary_key).toEqual([])
    expect(withoutId.tables.tags?.relations.map(({ name }) => name)).toEqual(['order_tags'])
  })

  test('a column that the caller cannot change is read-only, unless it is generated or an identity', () => {
    const readOnly = (canUpdate?: CanUpdate) =>
      Object.entries(describe(catalog, undefined, canUpdate).tables).flatMap(([table, { columns }]) =>
        columns.filter(({ read_only }) => read_only === true).map(({ name }) => `${table}.${name}`),
      )
    expect(readOnly()).toEqual([])
    expect(readOnly((table, { name }) => table.name === 'customers' || name === 'status')).toEqual([
      ...['__proto__.id', '__proto__.constructor', 'order_tags.order_id', 'order_tags.tag_id'],
      ...['orders.customer_id', 'orders.checked', 'orders.total', 'tags.id'],
    ])
  })

  test('without a visible table the document is empty', () => {
    expect(JSON.stringify(describe(catalog, () => false))).toBe('{"tables":{}}')
  })
})

function column(facts: Record<string, unknown>): Record<string, unknown> {
  return { nullable: true, default: null, generated: null, identity: null, comment: null, ...facts }
}
