import { describe, expect, test } from 'vitest'
import { type TestClock, testClock } from '../../test/support/test-clock.ts'
import { DENIED_ROWS_MAX, type DeniedRow, RevokedTokens, type TokenFacts } from './denylist.ts'

interface World {
  readonly list: RevokedTokens
  readonly clock: TestClock
  readonly problems: string[]
  reads: number
  rows: readonly DeniedRow[] | Error
}

async function open(...rows: readonly Partial<DeniedRow>[]): Promise<World> {
  const clock = testClock()
  const problems: string[] = []
  const world = { clock, problems, reads: 0, rows: rows.map(rowOf) as World['rows'] }
  const list = await RevokedTokens.open({
    read: async () => {
      if (world.rows instanceof Error) throw world.rows
      return world.rows
    },
    clock,
    onRead: () => {
      world.reads += 1
    },
    onProblem: message => problems.push(message),
  })
  return Object.assign(world, { list })
}

const rowOf = (row: Partial<DeniedRow>): DeniedRow => ({ jti: null, sub: null, iat: null, ...row })
const facts = (given: Partial<TokenFacts>): TokenFacts => ({ jti: null, sub: null, iat: null, ...given })

describe('rows of the denylist', () => {
  test.each<[Partial<DeniedRow>, Partial<TokenFacts>, boolean]>([
    [{ jti: 'a' }, { jti: 'a' }, true],
    [{ jti: 'a' }, { jti: 'b' }, false],
    [{ jti: 'a' }, {}, false],
    [{ jti: 'a', sub: 's', iat: '100' }, { jti: 'b', sub: 's', iat: 1 }, false],
    [{ sub: 's', iat: '100' }, { sub: 's', iat: 99 }, true],
    [{ sub: 's', iat: '100.5' }, { sub: 's', iat: 100 }, true],
    [{ sub: 's', iat: '100' }, { sub: 's', iat: 100 }, false],
    [{ sub: 's', iat: '100' }, { sub: 's' }, true],
    [{ sub: 's', iat: '100' }, { sub: 't', iat: 1 }, false],
    [{ sub: 's', iat: '100' }, { iat: 1 }, false],
    [{ sub: 's' }, { sub: 's', iat: 1e12 }, true],
    [{ iat: '100' }, { iat: 99 }, true],
    [{ iat: '100' }, { sub: 's', iat: 101 }, false],
    [{ iat: '100' }, {}, true],
    [{}, {}, false],
    [{}, { jti: 'a', sub: 's', iat: 1 }, false],
  ])('%j of a token with %j: %s', async (row, token, isDenied) => {
    const { list } = await open(row)
    expect(list.denies(facts(token))).toBe(isDenied)
  })

  test('of several rows of a subject the latest time counts', async () => {
    const { list } = await open({ sub: 's', iat: '300' }, { sub: 's', iat: '100' }, { iat: '50' })
    expect([list.denies(facts({ sub: 's', iat: 299 })), list.denies(facts({ sub: 's', iat: 300 }))]).toEqual([
      true,
      false,
    ])
  })

  test('rows beyond 20 000 are not in force, which is reported once', async () => {
    const many = Array.from({ length: DENIED_ROWS_MAX + 1 }, (_, n) => ({ jti: `j${n}` }))
    const { list, clock, problems } = await open(...many)
    expect([
      list.denies(facts({ jti: `j${DENIED_ROWS_MAX - 1}` })),
      list.denies(facts({ jti: `j${DENIED_ROWS_MAX}` })),
    ]).toEqual([true, false])
    await clock.advance(10_000)
    expect(problems).toEqual(['it has more than 20000 rows, and only the newest rows are in force'])
  })
})

test('an added row takes effect within three seconds, and a removed row no longer does', async () => {
  const world = await open()
  const { list, clock } = world
  world.rows = [rowOf({ jti: 'a' })]
  const before = list.version()
  await clock.advance(3_000)
  await clock.advance(0)
  expect([list.denies(facts({ jti: 'a' })), list.version() > before, world.reads]).toEqual([true, true, 1])
  world.rows = []
  await clock.advance(3_000)
  await clock.advance(0)
  expect(list.denies(facts({ jti: 'a' }))).toBe(false)
  list.close()
  await clock.advance(60_000)
  expect(world.reads).toBe(2)
})

test('the version changes with the rows, not with each read or their order', async () => {
  const rows = [rowOf({ jti: 'a' }), rowOf({ sub: 's', iat: '100' }), rowOf({ sub: 't' })]
  const world = await open(...rows)
  const { list, clock } = world
  const versionAfter = async (next: readonly DeniedRow[]) => {
    world.rows = next
    await clock.advance(3_000)
    await clock.advance(0)
    return list.version()
  }
  const first = list.version()
  expect(await versionAfter([...rows].reverse())).toBe(first)
  expect(world.reads).toBe(1)
  const changed = [
    await versionAfter([...rows, rowOf({ jti: 'b' })]),
    await versionAfter([rowOf({ jti: 'c' }), ...rows.slice(1), rowOf({ jti: 'b' })]),
    await versionAfter([
      rowOf({ jti: 'c' }),
      rowOf({ sub: 's', iat: '101' }),
      rowOf({ sub: 't' }),
      rowOf({ jti: 'b' }),
    ]),
    await versionAfter([rowOf({ iat: '50' })]),
    await versionAfter([]),
  ]
  expect(changed).toEqual([1, 2, 3, 4, 5].map(n => first + n))
})

test('while the table cannot be read, the previous list stays in force, which is reported once', async () => {
  const world = await open({ jti: 'a' })
  world.rows = new Error('gone')
  await world.clock.advance(30_000)
  expect(world.list.denies(facts({ jti: 'a' }))).toBe(true)
  expect(world.problems).toEqual(['it cannot be read, and the previous list stays in force: gone'])
})

test('opening rejects if the table cannot be read', async () => {
  const read = async () => {
    throw new Error('gone')
  }
  await expect(RevokedTokens.open({ read, clock: testClock(), onRead() {}, onProblem() {} })).rejects.toThrow('gone')
})
