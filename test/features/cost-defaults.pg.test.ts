/**
 * The default limits of the cost guard on a database from another project, with the policies of
 * docs/guides/row-level-security.md: ordinary requests on tables of 16 000 rows are answered, and requests
 * that multiply rows are rejected. The decision record on the defaults has the figures.
 */
import { describe, expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import type { AskOptions } from '../support/gateway.ts'
import { REAL_DATA_MISSING, realDatabase } from '../support/real-data.ts'

if (REAL_DATA_MISSING !== null) console.info(`skipped: ${REAL_DATA_MISSING}`)

const TENANT = '00000000-0000-4000-8000-000000000001'

const POLICIES = `
alter table customer add tenant_id uuid;
update customer set tenant_id = ('00000000-0000-4000-8000-00000000000' || store_id)::uuid;
create index on customer (tenant_id, customer_id);
alter table customer enable row level security, force row level security;
create policy own_tenant on customer using (tenant_id = (select nullif(current_setting('app.current_tenant_id',
  true), '')::uuid));
alter table rental enable row level security, force row level security;
create policy of_a_visible_customer on rental using (exists (select from customer where customer.customer_id =
  rental.customer_id));
alter table payment enable row level security, force row level security;
`

const OF_A_CUSTOMER =
  'create policy visible on payment using ' +
  '(exists (select from customer where customer.customer_id = payment.customer_id))'
const OF_A_RENTAL =
  'create policy visible on payment using (exists (select from rental where rental.rental_id = payment.rental_id))'

// skipped: where the files are not beside the project, see above
describe.skipIf(REAL_DATA_MISSING !== null).each([
  ['of the customer', OF_A_CUSTOMER],
  ['of the rental, whose policy asks for the customer', OF_A_RENTAL],
])('payments with a policy %s', (_, policy) => {
  const database = databaseFixture(() => realDatabase('pagila'), `${POLICIES}${policy}; analyze`)
  const gateway = gatewayFixture(database)

  const ask = (path: string, options: AskOptions = {}) => gateway.get(path, { as: { tenantId: TENANT }, ...options })
  const query = (text: string) =>
    ask('/api/_query', { method: 'POST', headers: { 'Content-Type': 'text/plain' }, body: text })

  test.each([
    '/api/payment?sort=-amount&limit=1',
    '/api/payment?limit=10000',
    '/api/payment/aggregate?fn=sum&column=amount',
    '/api/payment/aggregate?fn=sum&column=amount&group_by=customer_id',
    '/api/rental/aggregate?fn=count',
    '/api/rental?limit=10000&expand=customer.address.city,inventory.film',
    '/api/customer?limit=600&expand=nested:rental.inventory.film',
  ])('%s is answered', async path => {
    const reply = await ask(path)
    expect([reply.status, reply.text.slice(0, 300)]).toEqual([200, expect.any(String)])
  })
  test('an exact count is answered', async () => {
    const reply = await ask('/api/payment?limit=1', { headers: { Prefer: 'count=exact' } })
    expect([reply.status, reply.json.total > 1_000]).toEqual([200, true])
  })
  test('a join by the key is answered', async () => {
    const text = 'get payment p inner join customer c on c.customer_id = p.customer_id fields sum(p.amount) as total'
    expect((await query(text)).status).toBe(200)
  })
  test('a query that multiplies rows is rejected', async () => {
    const reply = await query('get payment p cross join film fields count(*) as n')
    expect([reply.status, reply.json.code]).toEqual([422, 'QUERY_TOO_EXPENSIVE'])
  })
})
