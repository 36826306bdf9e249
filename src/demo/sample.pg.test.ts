import { expect, test } from 'vitest'
import { databaseFixture } from '../../test/support/fixtures.ts'
import { execute } from '../../test/support/postgres.ts'
import { sampleDatabase } from '../../test/support/sample.ts'

const database = databaseFixture(sampleDatabase)

const ROWS = {
  ...{ tenants: 3, users: 110, customers: 6_000, categories: 72, products: 2_500, tags: 36, product_tags: 4_767 },
  ...{ orders: 25_000, order_items: 62_213, invoices: 23_251, payments: 24_158, shipments: 22_533, reviews: 9_039 },
}

test('thirteen related tables hold more than 100 000 rows, the same at every load', async () => {
  const counts = Object.keys(ROWS).map(table => `(select count(*)::int from ${table}) as ${table}`)
  const tables = `select count(*)::int as n from pg_tables where schemaname = 'public'`
  expect(await execute(database.adminUrl, tables)).toEqual([{ n: 13 }])
  expect(await execute(database.adminUrl, `select ${counts.join()}`)).toEqual([ROWS])
  const content = `set timezone = 'UTC'; select md5(string_agg(o::text, '' order by id)) as md5 from orders o`
  expect(await execute(database.adminUrl, content)).toEqual([{ md5: '249de9518131864fd3cff308d276c617' }])
})

test('every foreign key holds, although the load does not check them', async () => {
  const keys = await execute(
    database.adminUrl,
    `select conrelid::regclass::text as table, quote_ident(conname) as name, pg_get_constraintdef(oid) as definition
     from pg_constraint where contype = 'f'`,
  )
  expect(keys).toHaveLength(27)
  for (const { table, name, definition } of keys) {
    await execute(
      database.adminUrl,
      `alter table ${table} drop constraint ${name}; alter table ${table} add constraint ${name} ${definition}`,
    )
  }
})

test('no foreign key refers to a row of another tenant', async () => {
  const keys = await execute(
    database.adminUrl,
    `select k.conrelid::regclass::text as table, a.attname as column, k.confrelid::regclass::text as target
     from pg_constraint k join pg_attribute a on a.attrelid = k.conrelid and a.attnum = k.conkey[1]
     where k.contype = 'f' and k.confrelid <> 'tenants'::regclass and k.conrelid <> 'product_tags'::regclass`,
  )
  expect(keys.length).toBeGreaterThan(10)
  for (const { table, column, target } of keys) {
    const strangers =
      `select count(*)::int as n from ${table} a join ${target} b on b.id = a.${column} where a.tenant_id <> ` +
      'b.tenant_id'
    expect(await execute(database.adminUrl, strangers), `${table}.${column}`).toEqual([{ n: 0 }])
  }
  const tags =
    'select count(*)::int as n from product_tags join products p on p.id = product_id join tags t on t.id = ' +
    'tag_id where p.tenant_id <> t.tenant_id'
  expect(await execute(database.adminUrl, tags)).toEqual([{ n: 0 }])
})

test('the total of each order is the sum of its lines, and no invoice is paid beyond its amount', async () => {
  expect(
    await execute(
      database.adminUrl,
      `select (select count(*)::int from orders o where total is distinct from (select sum(amount) from order_items
        where order_id = o.id)) as orders,
              (select count(*)::int from invoices i where amount < (select sum(amount) from payments
              where invoice_id = i.id)) as invoices`,
    ),
  ).toEqual([{ orders: 0, invoices: 0 }])
})

test('the role sees the rows of its tenant, and no rows without a tenant', async () => {
  const [first, second] = database.tenants
  const count = 'select count(*)::int as orders, (select count(*)::int from product_tags) as tags from orders'
  const as = (tenant: string): string => `set app.current_tenant_id = '${tenant}'; ${count}`
  expect(await execute(database.url, as(first?.id ?? ''))).toEqual([{ orders: 13000, tags: 2647 }])
  expect(await execute(database.url, as(second?.id ?? ''))).toEqual([{ orders: 8000, tags: 1341 }])
  expect(await execute(database.url, count)).toEqual([{ orders: 0, tags: 0 }])
  expect(await execute(database.url, as(''))).toEqual([{ orders: 0, tags: 0 }])
})

test('the role cannot write rows of another tenant', async () => {
  const [first, second] = database.tenants
  const insert =
    `set app.current_tenant_id = '${first?.id}'; insert into tags (tenant_id, name) values ('${second?.id}', ` +
    `'mine')`
  await expect(execute(database.url, insert)).rejects.toThrow('violates row-level security policy')
})

test('functions return only rows of the tenant', async () => {
  const [first] = database.tenants
  const as = (sql: string): Promise<Record<string, unknown>[]> =>
    execute(
      database.url,
      `set app.current_tenant_id = '${first?.id}'; set app.current_user_id = '${first?.userId}'; ${sql}`,
    )
  expect(await as(`select slugify('Old Town, 2nd floor')`)).toEqual([{ slugify: 'old-town-2nd-floor' }])
  expect(await as('select count(*)::int as n from top_products(top => 3)')).toEqual([{ n: 3 }])
  expect(await as(`select bool_and(name || description ~* 'copper') as all from search_products('copper')`)).toEqual([
    { all: true },
  ])
  expect(
    await as(
      'select (a).status, (a).approved_by from (select approve_order(min(id)) as a from orders where status = ' +
        `'pending') x`,
    ),
  ).toEqual([{ status: 'paid', approved_by: first?.userId }])
  await expect(as('select approve_order(1)')).rejects.toThrow('order 1 is not pending')
  await expect(as('select approve_order(20000)')).rejects.toThrow('order 20000 is not pending')
})

test('a page of the newest orders and the lines of an order come from their indexes', async () => {
  const [first] = database.tenants
  const plan = async (sql: string): Promise<string> =>
    JSON.stringify(
      await execute(database.url, `set app.current_tenant_id = '${first?.id}'; explain (costs off) ${sql}`),
    )
  expect(await plan('select * from orders order by placed_at desc, id limit 25')).toContain(
    'orders_tenant_id_placed_at_id_idx',
  )
  expect(await plan('select * from order_items where order_id = 5')).toContain('order_items_pkey')
})
