/** Compares the function lists with the volatility that PostgreSQL itself declares for its functions. */
import { expect, test } from 'vitest'
import { openSession } from '../../test/support/catalog.ts'
import { databaseFixture, fixture } from '../../test/support/fixtures.ts'
import { catalogOf } from '../../test/support/model.ts'
import { callableName } from '../access/functions.ts'
import { call } from '../language/tree/build.ts'
import { changesOverTime, isDeterministic } from './determinism.ts'

const database = databaseFixture()
const session = fixture(() => openSession(database.url))

/** Names of PostgreSQL's own functions that have an overload with this volatility. */
async function functionsThatAre(volatility: 'stable' | 'volatile'): Promise<readonly string[]> {
  const rows = await session.query(
    `select distinct proname from pg_proc
      where pronamespace = 'pg_catalog'::regnamespace and provolatile = $1 and prokind <> 'p'`,
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

test('every VOLATILE function that can be called is moving', async () => {
  const callable = (await functionsThatAre('volatile')).filter(isCallable)
  expect(callable).toContain('random')
  expect(callable.filter(name => !changesOverTime(name))).toEqual([])
})

test('every STABLE function that can be called is listed as steady or moving', async () => {
  const callable = (await functionsThatAre('stable')).filter(isCallable)
  expect(callable).toContain('now')
  expect(callable.filter(name => changesOverTime(name) === isDeterministic(name))).toEqual([])
})

test('key words that read the clock are moving', () => {
  const words = ['current_date', 'current_time', 'current_timestamp', 'localtime', 'localtimestamp']
  expect(words.filter(name => !changesOverTime(name))).toEqual([])
})

test('every steady function exists and is not VOLATILE', async () => {
  const [stable, volatile] = [await functionsThatAre('stable'), await functionsThatAre('volatile')]
  expect(volatile.filter(isDeterministic)).toEqual([])
  expect(stable.filter(isDeterministic).length).toBeGreaterThan(100)
})
