/**
 * The rows, made by the database itself from `generate_series` and hashes of row numbers: the same on every
 * machine, no file to ship, seconds to load. `pick(n, seed, size)` is the one source of variety: 0 … size−1,
 * fixed by n and seed.
 */
export const rows: readonly string[] = [
  `create schema sample`,
  `create function sample.pick(n bigint, seed bigint, size bigint) returns integer immutable parallel safe language sql
    return abs(hashint8extended(n, seed) % size)::integer`,

  // How much each shop has; ids count on from shop to shop.
  `create table sample.shop as
    select *, 1000 * (no - 1) as category_base, 50 * (no - 1) as tag_base,
      coalesce(sum(customers) over before, 0) as customer_base,
      coalesce(sum(products) over before, 0) as product_base,
      coalesce(sum(orders) over before, 0) as order_base
    from (values
      (1, '11111111-1111-4111-8111-111111111111'::uuid, 'Northlight Bikes', 'northlight', 'enterprise'::plan, 'EUR',
        60, 3000, 1400, 13000,
        '{Helmet,Saddle,Pedal,Tyre,Road Bike,City Bike,Bell,Lock,Rack,Pump,Lamp,Glove}'::text[],
        '{Bikes,Parts,Clothing,Workshop}'::text[]),
      (2, '22222222-2222-4222-8222-222222222222', 'Harbour Coffee', 'harbour', 'team', 'GBP', 35, 2000, 700, 8000,
        '{Espresso,Filter Roast,Grinder,Kettle,Cup,Dripper,Decaf,Scale,Cold Brew,Syrup,Cocoa,Tea}',
        '{Coffee,Machines,Crockery,Pantry}'),
      (3, '33333333-3333-4333-8333-333333333333', 'Atelier Lumière', 'lumiere', 'free', 'CHF', 15, 1000, 400, 4000,
        '{Desk,Chair,Shelf,Lamp,Stool,Table,Bench,Cabinet,Mirror,Frame,Rug,Screen}',
        '{Living,Office,Outdoor,Light}')
    ) shop (no, id, name, slug, plan, currency, users, customers, products, orders, goods, shelves)
    window before as (order by no rows between unbounded preceding and 1 preceding)`,

  `insert into tenants (id, name, slug, plan, settings, created_at)
    select id, name, slug, plan,
      jsonb_build_object('currency', currency, 'locale', (array['de-DE', 'en-GB', 'fr-CH'])[no], 'features',
      to_jsonb((array['reviews', 'shipping', 'invoices'])[:4 - no])),
      timestamptz '2024-01-15 09:00:00+00' + no * interval '10 days'
    from sample.shop`,

  `insert into users (id, tenant_id, manager_id, email, name, role, active, created_at)
    select md5(no || ':' || n)::uuid, id,
      case when n = 1 then null when n <= 6 then md5(no || ':1')::uuid else md5(no || ':' || 2 + n % 5)::uuid end,
      'user' || n || '@' || slug || '.example',
      (array['Ada', 'Zoë', 'Søren', 'Łukasz', 'Aïcha', 'Γιώργος', 'Наталья', '明', 'مريم', 'Priya',
        'O''Brian',
      'Jean-Luc'])[1 + sample.pick(n, no, 12)]
        || ' ' || (array['Okafor', 'Müller', 'Nguyễn', 'García', 'Smith', 'Kowalski', 'Rossi', '田中', 'Haddad',
        'Lindqvist'])[1 + sample.pick(n, 10 + no, 10)],
      case when n = 1 then 'admin' when n <= 6 then 'manager' else 'clerk' end::user_role,
      n % 17 <> 0,
      timestamptz '2024-02-01 08:00:00+00' + n * interval '3 days 5 hours'
    from sample.shop, generate_series(1, users) n`,

  `insert into customers (id, tenant_id, account_manager_id, name, email, phone, segment, country, address, labels,
    credit_limit, created_at)
    select customer_base + n, id, md5(no || ':' || 2 + sample.pick(n, 20, users - 1))::uuid,
      (array['Blue', 'Grand', 'Little', 'Alpine', 'River', 'Golden', 'Nordic', 'Café', 'Old Town',
      'Sunny'])[1 + sample.pick(n, 21, 10)]
        || ' ' || (array['Trading', 'Studio', 'Market', 'Works', 'House', 'Partners', 'Supplies',
        'Garden'])[1 + sample.pick(n, 22, 8)] || ' ' || n,
      'contact' || n || '@customer-' || no || '.example',
      case when n % 5 = 0 then null else '+' || 30 + sample.pick(n, 23, 60) || ' ' || 1000000 + sample.pick(n, 24,
      9000000) end,
      (array['retail', 'retail', 'retail', 'wholesale', 'public_sector'])[1 + sample.pick(n, 25, 5)]::segment,
      (array['DE', 'FR', 'GB', 'CH', 'IT', 'ES', 'PL', 'SE'])[1 + sample.pick(n, 26, 8)],
      jsonb_build_object('street', (array['Main Street', 'Rue Haute', 'Hauptstraße', 'Via Roma'])[1 + sample.pick(n,
      27, 4)] || ' ' || 1 + n % 120,
        'zip', lpad((sample.pick(n, 28, 99999))::text, 5, '0'), 'city', (array['Berlin', 'Lyon', 'Leeds', 'Zürich',
        'Torino', 'Sevilla'])[1 + sample.pick(n, 29, 6)]),
      (array['vip', 'late-payer', 'newsletter', 'fragile'])[1 + sample.pick(n, 30, 4):1 + sample.pick(n, 31, 5)],
      500 * sample.pick(n, 32, 40),
      timestamptz '2024-03-01 00:00:00+00' + sample.pick(n, 33, 60 * 60 * 24 * 500) * interval '1 second'
    from sample.shop, generate_series(1, customers) n`,

  `insert into categories (id, tenant_id, parent_id, name, position)
    select category_base + n, id, null, shelves[n], n from sample.shop, generate_series(1, 4) n
    union all
    select category_base + 4 + (p - 1) * 5 + n, id, category_base + p, (array['New', 'Classic', 'Refurbished',
    'Bundles', 'Clearance'])[n], n
      from sample.shop, generate_series(1, 4) p, generate_series(1, 5) n`,

  `insert into products (id, tenant_id, category_id, sku, name, description, price, stock, attributes, sizes,
    active, created_at)
    select product_base + n, id, category_base + 5 + sample.pick(n, 40, 20), upper(left(slug, 3)) || '-'
    || lpad(n::text, 5, '0'),
      (array['Light', 'Sturdy', 'Quiet', 'Compact', 'Classic', 'Everyday', 'Studio', 'Travel', 'Premium',
      'Plain'])[1 + sample.pick(n, 41, 10)] || ' '
        || (array['Oak', 'Steel', 'Copper', 'Glass', 'Linen', 'Carbon', 'Ash', 'Ceramic'])[1 + sample.pick(n, 42,
        8)] || ' ' || goods[1 + sample.pick(n, 43, 12)],
      'A ' || (array['reliable', 'beautiful', 'practical', 'durable', 'repairable'])[1 + sample.pick(n, 44,
      5)] || ' choice for '
        || (array['small kitchens', 'long days', 'rainy cities', 'quiet mornings', 'busy workshops',
        'large families'])[1 + sample.pick(n, 45, 6)]
        || '. ' || (array['Made in small batches.', 'Spare parts for ten years.', 'Packed without plastic.',
        'Tested by hand.'])[1 + sample.pick(n, 46, 4)],
      (500 + sample.pick(n, 47, 60000)) / 100.0, sample.pick(n, 48, 400),
      jsonb_build_object('colour', (array['red', 'black', 'white', 'green', 'blue'])[1 + sample.pick(n, 49, 5)],
      'weight_g', 50 + sample.pick(n, 50, 9000),
        'origin', jsonb_build_object('country', (array['IT', 'PT', 'DE', 'VN', 'KE'])[1 + sample.pick(n, 51, 5)])),
      (array[36, 38, 40, 42, 44, 46])[1 + sample.pick(n, 52, 3):3 + sample.pick(n, 53, 4)],
      n % 23 <> 0,
      timestamptz '2024-02-15 00:00:00+00' + sample.pick(n, 54, 60 * 60 * 24 * 500) * interval '1 second'
    from sample.shop, generate_series(1, products) n`,

  `insert into tags (id, tenant_id, name)
    select tag_base + n, id, (array['sale', 'new', 'eco', 'gift', 'handmade', 'limited', 'vegan', 'heavy',
    'fragile', 'bestseller', 'outdoor', 'kids'])[n]
    from sample.shop, generate_series(1, 12) n`,
  `insert into product_tags (product_id, tag_id)
    select distinct product_base + n, tag_base + 1 + sample.pick(n, 60 + k, 12)
    from sample.shop, generate_series(1, products) n, generate_series(1, 3) k
    where k <= 1 + sample.pick(n, 64, 3)`,

  // Lines first, in a table aside: the total of an order is the sum of its lines.
  `create table sample.line as
    select order_base + n as order_id, k as line, id as tenant_id, product_base + 1 + sample.pick(n * 8 + k, 70,
    products) as product_id,
      1 + sample.pick(n * 8 + k, 71, 5) as quantity, case when sample.pick(n * 8 + k, 72, 5) = 0 then 0.1
      else 0 end as discount
    from sample.shop, generate_series(1, orders) n, generate_series(1, 4) k
    where k <= 1 + sample.pick(n, 73, 4)`,
  // Ages run from January 2025 to the middle of 2026; old orders are done, some were cancelled.
  `insert into orders (id, tenant_id, customer_id, created_by, approved_by, number, status, currency, total,
    placed_at, shipping, notes)
    select order_base + n, id, customer_base + 1 + sample.pick(n, 80, customers), md5(no || ':'
    || 1 + sample.pick(n, 81, users))::uuid,
      case when status in ('draft', 'pending') then null else md5(no || ':' || 1 + sample.pick(n, 82, 6))::uuid end,
      'SO-' || lpad(n::text, 6, '0'), status, currency, lines.total,
      timestamptz '2025-01-01 06:00:00+00' + n * (interval '540 days' / orders)
        + sample.pick(n, 83, 3600) * interval '1 second',
      jsonb_build_object('method', (array['standard', 'express', 'pickup'])[1 + sample.pick(n, 84, 3)], 'gift',
      n % 9 = 0),
      case when n % 6 = 0 then (array['Call before delivery.', 'Leave at the back door.', 'Invoice to head office.',
      '"Handle with care", 100% fragile'])[1 + sample.pick(n, 85, 4)] end
    from sample.shop
      cross join generate_series(1, orders) n
      cross join lateral (select (case
        when sample.pick(n, 86, 25) = 0 then 'cancelled' when n < orders * 0.9 then 'delivered'
        when n < orders * 0.94 then 'shipped'
        when n < orders * 0.97 then 'paid' when n < orders * 0.99 then 'pending'
        else 'draft' end)::order_status as status) s
      join (select order_id, sum(round(quantity * price * (1 - discount), 2)) as total
        from sample.line join products on products.id = product_id
        group by order_id) lines on lines.order_id = order_base + n`,
  `insert into order_items (order_id, line, tenant_id, product_id, quantity, unit_price, discount)
    select order_id, line, line.tenant_id, product_id, quantity, price, discount
    from sample.line join products on products.id = product_id
    order by order_id, line`,

  `insert into invoices (id, tenant_id, order_id, number, issued_on, due_on, amount)
    select row_number() over (order by id), tenant_id, id, 'INV-' || substr(number, 4),
    (placed_at at time zone 'UTC')::date + 1, (placed_at at time zone 'UTC')::date + 31, total
    from orders where status in ('paid', 'shipped', 'delivered')`,
  // Every seventh invoice is paid in two halves, every eleventh not at all yet.
  `insert into payments (id, tenant_id, invoice_id, method, amount, paid_at, reference)
    select row_number() over (order by id, part), tenant_id, id, (array['card', 'transfer', 'direct_debit',
    'cash'])[1 + sample.pick(id, 90, 4)]::payment_method,
      case when id % 7 <> 0 then amount when part = 1 then round(amount / 2, 2) else amount - round(amount / 2, 2) end,
      issued_on + part * interval '9 days' + sample.pick(id, 91, 86400) * interval '1 second',
      case when id % 3 = 0 then null else 'R' || lpad(to_hex(sample.pick(id, 92, 16777216)), 6, '0') end
    from invoices, generate_series(1, 2) part
    where id % 11 <> 0 and (part = 1 or id % 7 = 0) and amount > 0.01`,
  `insert into shipments (id, tenant_id, order_id, status, carrier, tracking, shipped_at, expected)
    select row_number() over (order by id), tenant_id, id,
      case when status = 'delivered' then 'delivered' when id % 40 = 0 then 'lost'
      else 'in_transit' end::shipment_status,
      (array['DHL', 'La Poste', 'Royal Mail', 'Swiss Post'])[1 + sample.pick(id, 95, 4)], 'T' || lpad(id::text, 10,
      '0'),
      placed_at + interval '2 days', tstzrange(placed_at + interval '4 days', placed_at + interval '7 days')
    from orders where status in ('shipped', 'delivered')`,

  `insert into reviews (id, tenant_id, product_id, customer_id, rating, title, body, created_at)
    select row_number() over (order by order_id, line), tenant_id, product_id, customer_id, rating,
      (array['Never again', 'Not great', 'It is fine', 'Good value', 'Wonderful'])[rating],
      (array['Broke after a week, sadly.', 'Smaller than the picture.', 'Does what it says.',
      'Arrived early and well packed.', 'Would buy again, and did.'])[rating]
        || ' ' || (array['The colour is lovely.', 'The box was dented.', 'My mother likes it too.',
        'Service answered quickly.'])[1 + sample.pick(order_id, 96, 4)],
      placed_at + interval '20 days'
    from (
      select distinct on (product_id, customer_id) order_id, line, i.tenant_id, product_id, customer_id, placed_at,
        (array[1, 2, 3, 3, 4, 4, 4, 5, 5, 5])[1 + sample.pick(order_id * 8 + line, 97, 10)] as rating
      from order_items i join orders o on o.id = i.order_id
      where o.status = 'delivered' and sample.pick(order_id * 8 + line, 98, 6) = 0
      order by product_id, customer_id, order_id, line
    ) bought`,

  `drop schema sample cascade`,
  ...['customers', 'categories', 'products', 'tags', 'orders', 'invoices', 'payments', 'shipments', 'reviews'].map(
    table => `select setval(pg_get_serial_sequence('${table}', 'id'), (select max(id) from ${table}))`,
  ),
]
