/** PostgreSQL knows best what depends on its arguments alone; here its own word on each function that can be met. */
import { expect, test } from 'vitest'
import { openSession } from '../../test/support/catalog.ts'
import { databaseFixture, fixture } from '../../test/support/fixtures.ts'
import { catalogOf } from '../../test/support/model.ts'
import { callableName } from '../access/functions.ts'
import { call } from '../language/tree/build.ts'
import { isMoving, isSteady } from './steady.ts'

const database = databaseFixture()
const session = fixture(() => openSession(database.url))

/** Names of PostgreSQL's own functions that have an overload of this volatility. */
async function functionsThatAre(volatility: 'stable' | 'volatile'): Promise<readonly string[]> {
  const rows = await session.query(
    `select distinct proname from pg_proc where pronamespace = 'pg_catalog'::regnamespace and provolatile = $1 and prokind <> 'p'`,
    [volatility[0] ?? ''],
  )
  return rows.map(([name]) => name ?? '')
}

function isCallable(name: string): boolean {
  try {
    callableName(call(name, []), catalogOf(), () => false)
    return true
  } catch {
    return false
  }
}

test('a VOLATILE function that may be called moves', async () => {
  const callable = (await functionsThatAre('volatile')).filter(isCallable)
  expect(callable).toContain('random')
  expect(callable.filter(name => !isMoving(name))).toEqual([])
})

test('a STABLE function that may be called is known, one way or the other', async () => {
  const callable = (await functionsThatAre('stable')).filter(isCallable)
  expect(callable).toContain('now')
  expect(callable.filter(name => isMoving(name) === isSteady(name))).toEqual([])
})

test('what PostgreSQL calls by key word and looks at the clock moves', () => {
  const words = ['current_date', 'current_time', 'current_timestamp', 'localtime', 'localtimestamp']
  expect(words.filter(name => !isMoving(name))).toEqual([])
})

test('nothing steady is VOLATILE, and all of it is there', async () => {
  const [stable, volatile] = [await functionsThatAre('stable'), await functionsThatAre('volatile')]
  expect(volatile.filter(isSteady)).toEqual([])
  expect(stable.filter(isSteady).length).toBeGreaterThan(100)
})
