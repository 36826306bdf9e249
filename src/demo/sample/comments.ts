/**
 * Comments of columns: a description if the name is not sufficient, and an example for the OpenAPI document.
 * The examples of a table form one row, and all of them together one order of the first shop.
 */

const SHOP = '11111111-1111-4111-8111-111111111111'

const ROWS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  tenants: {
    id: SHOP,
    name: 'Northlight Bikes',
    slug: 'northlight',
    plan: 'enterprise',
    settings: { locale: 'de-DE', currency: 'EUR', features: ['reviews', 'shipping', 'invoices'] },
    created_at: '2024-01-25T09:00:00+00:00',
  },
  users: {
    id: '0449c860-d328-5273-192d-aa9cda6db9b0',
    tenant_id: SHOP,
    manager_id: '5f649e24-afcd-658c-cf64-513a5ce71950',
    email: 'user16@northlight.example',
    name: 'Наталья Kowalski',
    role: 'clerk',
    active: true,
    created_at: '2024-03-23T16:00:00+00:00',
  },
  customers: {
    id: 2,
    tenant_id: SHOP,
    account_manager_id: '4ef6cf20-f891-6d72-2987-b6cd84691e03',
    name: 'Old Town Partners 2',
    email: 'contact2@customer-1.example',
    phone: '+57 7864696',
    segment: 'retail',
    country: 'IT',
    address: { zip: '27269', city: 'Zürich', street: 'Main Street 3' },
    labels: ['newsletter', 'fragile'],
    credit_limit: 8500,
    created_at: '2024-12-31T03:03:40+00:00',
  },
  categories: { id: 9, tenant_id: SHOP, parent_id: 1, name: 'Clearance', position: 5 },
  products: {
    id: 670,
    tenant_id: SHOP,
    category_id: 9,
    sku: 'NOR-00670',
    name: 'Classic Copper Tyre',
    description: 'A durable choice for large families. Tested by hand.',
    price: 391.66,
    stock: 226,
    attributes: { colour: 'green', origin: { country: 'PT' }, weight_g: 627 },
    sizes: [38, 40, 42],
    active: true,
    created_at: '2025-04-05T18:16:04+00:00',
    search_vector:
      "'choic':6B 'classic':1A 'copper':2A 'durabl':5B 'famili':9B 'hand':12B 'larg':8B 'test':10B 'tyre':3A",
  },
  tags: { id: 4, tenant_id: SHOP, name: 'gift' },
  product_tags: { product_id: 670, tag_id: 4 },
  orders: {
    id: 60,
    tenant_id: SHOP,
    customer_id: 2,
    created_by: '0449c860-d328-5273-192d-aa9cda6db9b0',
    approved_by: 'def474a3-13bf-fa00-2eae-8941b2e12620',
    number: 'SO-000060',
    status: 'delivered',
    currency: 'EUR',
    total: 1910.61,
    placed_at: '2025-01-03T18:35:28.38462+00:00',
    shipping: { gift: false, method: 'pickup' },
    notes: 'Invoice to head office.',
  },
  order_items: {
    order_id: 60,
    line: 1,
    tenant_id: SHOP,
    product_id: 670,
    quantity: 3,
    unit_price: 391.66,
    discount: 0.1,
    amount: 1057.48,
  },
  invoices: {
    id: 59,
    tenant_id: SHOP,
    order_id: 60,
    number: 'INV-000060',
    issued_on: '2025-01-04',
    due_on: '2025-02-03',
    amount: 1910.61,
  },
  payments: {
    id: 62,
    tenant_id: SHOP,
    invoice_id: 59,
    method: 'direct_debit',
    amount: 1910.61,
    paid_at: '2025-01-13T02:57:17+00:00',
    reference: 'Rc7237d',
  },
  shipments: {
    id: 59,
    tenant_id: SHOP,
    order_id: 60,
    status: 'delivered',
    carrier: 'La Poste',
    tracking: 'T0000000060',
    shipped_at: '2025-01-05T18:35:28.38462+00:00',
    expected: '["2025-01-07 18:35:28.38462+00","2025-01-10 18:35:28.38462+00")',
  },
  reviews: {
    id: 28,
    tenant_id: SHOP,
    product_id: 670,
    customer_id: 2,
    rating: 4,
    title: 'Good value',
    body: 'Arrived early and well packed. The colour is lovely.',
    created_at: '2025-01-23T18:35:28.38462+00:00',
    search_vector: "'arriv':3 'colour':9 'earli':4 'good':1 'love':11 'pack':7 'valu':2 'well':6",
  },
  monthly_sales: { tenant_id: SHOP, month: '2025-01-01', currency: 'EUR', orders: 709, total: 1579121.02 },
}

const WORDS: Readonly<Record<string, string>> = {
  'tenants.settings': 'Preferences: currency, locale, features.',
  'users.manager_id': 'Whom this person reports to; null for the head of the shop.',
  'customers.address': 'Object with street, zip, city.',
  'customers.labels': 'Free words for the sales team.',
  'customers.credit_limit': 'What may be owed at any time, in the currency of the shop.',
  'categories.parent_id': 'The shelf around this one; null at the top.',
  'products.attributes': 'Whatever describes this kind of product: colour, weight_g, origin.',
  'products.search_vector': 'Words of name and description for full-text search; kept by the database.',
  'orders.created_by': 'Who took the order.',
  'orders.approved_by': 'Who approved it; null until then.',
  'orders.total': 'Sum of the items, discount included.',
  'order_items.discount': 'As a part of one: 0.1 is ten percent off.',
  'shipments.expected': 'The span of time in which the parcel should arrive.',
}

export const comments: readonly string[] = Object.entries(ROWS).flatMap(([table, row]) =>
  Object.entries(row).map(([column, value]) => {
    const example = typeof value === 'string' ? value : JSON.stringify(value)
    const lines = [WORDS[`${table}.${column}`], `@example ${example}`].filter(line => line !== undefined)
    return `comment on column ${table}.${column} is '${lines.join('\n').replaceAll("'", "''")}'`
  }),
)
