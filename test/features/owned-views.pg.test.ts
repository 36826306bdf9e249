/**
 * docs/reference/compatibility.md: a view owned by the gateway's role shows each tenant only its own rows,
 * also where PostgreSQL has no security_invoker.
 */
import { expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'

const database = databaseFixture(`create table notes (id int primary key, tenant_id text not null);
     insert into notes values (1, 't1'), (2, 't2');
     alter table notes enable row level security;
     create policy own on notes using (tenant_id = current_setting('app.current_tenant_id', true));
     create view owned as select id, tenant_id from notes;
     create view foreign_owned as select id, tenant_id from notes;
     grant select on all tables in schema public to app;
     alter view owned owner to app`)

const gateway = gatewayFixture(database, { toml: 'exposed_views = ["owned", "foreign_owned"]' })

test.each(['t1', 't2'])('tenant %s sees its own rows', async tenantId => {
  const { json } = await gateway.get('/api/owned', { as: { tenantId } })
  expect(json.data.map((row: { tenant_id: string }) => row.tenant_id)).toEqual([tenantId])
})

test('the view of another owner shows all rows, which is why svc check reports it', async () => {
  expect((await gateway.get('/api/foreign_owned')).json.count).toBe(2)
})
