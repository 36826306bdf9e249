/** docs/reference/limits.md#execution-plans: reads whose generic execution plan is slower than others. */
import { expect, test } from 'vitest'
import { parseExposition } from '../support/exposition.ts'
import { databaseFixture } from '../support/fixtures.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'

// PostgreSQL expects half of the rows for an unknown kind, so its generic plan reads them in order of id.
const database = databaseFixture(`
  create table parts (id int primary key, kind text not null);
  insert into parts select i, case when i <= 299990 then 'common' else 'rare' end
    from generate_series(1, 300000) as i;
  create index on parts (kind); grant all on parts to app; analyze parts`)

async function withGateway(toml: string, use: (gateway: TestGateway) => Promise<void>): Promise<void> {
  const gateway = await testGateway(database.url, { toml: `max_connections = 1\n${toml}` })
  try {
    await use(gateway)
  } finally {
    await gateway.close()
  }
}

async function run(gateway: TestGateway, query: string): Promise<unknown> {
  const { json } = await gateway.get('/api/_query', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ query, parameters: { kind: 'rare' } }),
  })
  return json
}

async function figure(gateway: TestGateway, name: string): Promise<number | undefined> {
  return parseExposition((await gateway.get('/metrics')).text).get(name)?.samples[0]?.value
}

test('a read is planned for its values once its generic plan has been slower', async () => {
  await withGateway('', async gateway => {
    expect(await figure(gateway, 'svc_custom_plan_statements')).toBe(0)
    while ((await figure(gateway, 'svc_custom_plan_statements')) === 0) {
      const answer = await run(gateway, 'get parts fields min(id) as first where kind = :kind')
      expect(answer).toMatchObject({ data: [{ first: 299_991 }] })
    }
    expect(await figure(gateway, 'svc_execution_plan_trials_total')).toBeGreaterThanOrEqual(1)
  })
})

test.each([
  ['plan_trials = true', 1],
  ['plan_trials = false', 0],
])('%s: so many trials of a read that is slow with any plan', async (toml, trials) => {
  await withGateway(toml, async gateway => {
    for (let turn = 0; turn < 150; turn++)
      expect(await run(gateway, 'get parts fields count(*) as total where kind != :kind')).toMatchObject({
        data: [{ total: 299_990 }],
      })
    expect(await figure(gateway, 'svc_execution_plan_trials_total')).toBe(trials)
    expect(await figure(gateway, 'svc_custom_plan_statements')).toBe(0)
  })
})
