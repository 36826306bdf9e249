/**
 * Each operator of docs/reference/reading.md#filters finds rows of the demo, the same rows in both styles.
 */
import { expect, test } from 'vitest'
import { OPERATOR_EXAMPLES } from '../../src/rest/parameters/operators-reference.ts'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { sampleDatabase } from '../support/sample.ts'

const database = databaseFixture(sampleDatabase)
const gateway = gatewayFixture(database)

async function found(table: string, filter: string): Promise<number> {
  const [tenant] = database.tenants
  const as = { tenantId: tenant?.id, userId: tenant?.userId, role: 'clerk' }
  const headers = { Prefer: 'count=exact' }
  const reply = await gateway.get(`/api/${table}?limit=1&${encodeURI(filter)}`, { as, headers })
  if (reply.status !== 200) throw new Error(reply.text)
  return reply.json.total
}

test.each(OPERATOR_EXAMPLES)(
  'the operator $operator finds the same rows in both styles',
  async ({ table, valueStyle, keyStyle }) => {
    const total = await found(table, valueStyle)
    expect(total).toBeGreaterThan(0)
    expect(await found(table, keyStyle)).toBe(total)
    expect(await found(table, '')).toBeGreaterThan(total)
  },
)
