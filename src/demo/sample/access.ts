/**
 * Access to the sample data: indexes for tenant isolation, policies, and the privileges of the gateway's
 * role.
 */

const TENANT_TABLES = [
  ...['users', 'customers', 'categories', 'products', 'tags', 'orders', 'order_items'],
  ...['invoices', 'payments', 'shipments', 'reviews'],
] as const

// The scalar subquery is evaluated once per statement, not once per row. An empty setting becomes NULL, so
// the comparison selects no rows.
const TENANT = `(select nullif(current_setting('app.current_tenant_id', true), '')::uuid)`

export const indexes: readonly string[] = [
  `create index on users (tenant_id, name)`,
  `create index on users (manager_id)`,
  `create index on customers (tenant_id, created_at desc, id)`,
  `create index on customers (tenant_id, country)`,
  `create index on customers (account_manager_id)`,
  `create index on customers using gin (labels)`,
  `create index on categories (parent_id)`,
  `create index on products (tenant_id, price, id)`,
  `create index on products (category_id)`,
  `create index on products using gin (search_vector)`,
  `create index on products using gin (attributes jsonb_path_ops)`,
  `create index on product_tags (tag_id)`,
  `create index on orders (tenant_id, placed_at desc, id)`,
  `create index on orders (tenant_id, status, placed_at desc, id)`,
  `create index on orders (customer_id)`,
  `create index on orders (created_by)`,
  `create index on orders (approved_by)`,
  `create index on order_items (tenant_id)`,
  `create index on order_items (product_id)`,
  `create index on invoices (tenant_id, issued_on)`,
  `create index on payments (tenant_id, paid_at)`,
  `create index on payments (invoice_id)`,
  `create index on shipments (tenant_id, status)`,
  `create index on shipments (order_id)`,
  `create index on reviews (tenant_id, created_at desc)`,
  `create index on reviews (customer_id)`,
  `create index on reviews using gin (search_vector)`,
]

export const policies: readonly string[] = [
  ...['tenants', 'product_tags', ...TENANT_TABLES].flatMap(table => [
    `alter table ${table} enable row level security`,
    `alter table ${table} force row level security`,
  ]),
  `create policy own_tenant on tenants using (id = ${TENANT})`,
  ...TENANT_TABLES.map(table => `create policy own_tenant on ${table} using (tenant_id = ${TENANT})`),
  // The junction has no tenant column: a row is visible if both rows that it connects are.
  `create policy both_ends_visible on product_tags using (
    exists (select from products where products.id = product_id) and exists (select from tags where tags.id = tag_id)
  )`,
]

/** Views that run with the caller's rights, so the policies of their tables apply. */
export const views: readonly string[] = [
  `create view monthly_sales with (security_invoker = true) as
    select tenant_id, date_trunc('month', placed_at, 'UTC')::date as month, currency, count(*) as orders,
    sum(total) as total
    from orders where status <> 'cancelled'
    group by tenant_id, month, currency`,
  `comment on view monthly_sales is 'Orders and their value per month, cancelled ones left out.'`,
]

export function grants(role: string): readonly string[] {
  return [
    `grant usage on schema public to ${role}`,
    `grant select, insert, update, delete on all tables in schema public to ${role}`,
    `revoke insert, update, delete on tenants, monthly_sales from ${role}`,
    `grant usage on all sequences in schema public to ${role}`,
  ]
}
