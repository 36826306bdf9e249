import { describe, expect, test } from 'vitest'
import type { Database, Result, RunningRequest } from '../postgres/types.ts'
import { createServerTiming, printServerTiming, type Timed } from './server-timing.ts'

/** Work that takes the stated time on a test clock; requests run concurrently. */
function world() {
  let now = 1_000
  const timing = createServerTiming(() => now)
  const takes = async (ms: number) => {
    await Promise.resolve()
    now += ms
  }
  const plain: Database = {
    run: () => ({ result: takes(7).then((): readonly Result[] => []), cancel: () => {} }),
    describe: () => ({ result: takes(1).then(() => ({ parameters: [], fields: [] })), cancel: () => {} }) as never,
    begin: () => {
      throw new Error('no transaction was expected')
    },
    stream: () => ({
      next: () => takes(11).then(() => ({ done: false, value: [] })),
      return: () => takes(0).then(() => ({ done: true as const, value: undefined })),
      [Symbol.asyncIterator]() {
        return this
      },
    }),
  }
  return { timing, takes, plain, database: timing.database(plain) }
}

describe('the timing of a request', () => {
  test('has auth, plan until the first statement, and db for all statements', async () => {
    const { timing, takes, database } = world()
    const authenticate = timing.authenticate(async (_: string) => {
      await takes(2)
      return 'ann'
    })
    const pipeline = timing.pipeline(async (incoming: string, _: Timed) => {
      const who = await authenticate(incoming)
      await takes(3)
      await database.run([]).result
      await takes(100)
      await database.run([]).result
      return `${who} ${incoming}`
    })
    const progress: Timed = { timing: null }
    expect(await pipeline('asks', progress)).toBe('ann asks')
    expect(progress.timing).toMatchObject({ auth: 2, plan: 3, db: 14 })
  })
  test('covers a failed request up to its error, which is unchanged', async () => {
    const { timing, takes, plain } = world()
    const failing = (): RunningRequest<readonly Result[]> => ({
      result: takes(5).then(() => Promise.reject(new Error('refused'))),
      cancel: () => {},
    })
    const database = timing.database({ ...plain, run: failing })
    const authenticate = timing.authenticate((_: string): string => {
      throw new Error('who?')
    })
    const unknown: Timed = { timing: null }
    await expect(timing.pipeline((who: string, _: Timed) => authenticate(who))('x', unknown)).rejects.toThrow('who?')
    expect(unknown.timing).toMatchObject({ auth: 0, plan: null, db: null })
    const refused: Timed = { timing: null }
    const run = timing.pipeline((_: string, __: Timed) => database.run([]).result)
    await expect(run('x', refused)).rejects.toThrow('refused')
    expect(refused.timing).toMatchObject({ auth: null, db: 5 })
  })
  test('includes a stream, which can be ended', async () => {
    const { timing, database } = world()
    const progress: Timed = { timing: null }
    const first = timing.pipeline(async (_: string, __: Timed) => {
      const rows = database.stream([], { text: '', parameters: [] }, 1)
      await rows.next()
      return rows.return?.()
    })
    expect(await first('x', progress)).toEqual({ done: true, value: undefined })
    expect(progress.timing?.db).toBe(11)
  })
  test('is separate for concurrent requests, and ignores statements outside requests', async () => {
    const { timing, database } = world()
    const pipeline = timing.pipeline(async (statements: number, _: Timed) => {
      for (let n = 0; n < statements; n++) await database.run([]).result
    })
    const [none, some]: Timed[] = [{ timing: null }, { timing: null }]
    await Promise.all([pipeline(0, none as Timed), pipeline(3, some as Timed), database.run([]).result])
    expect(none?.timing?.db).toBeNull()
    expect(some?.timing?.db).toBeGreaterThan(0)
  })
  test('wraps a running statement that can still be cancelled', () => {
    const { timing, plain } = world()
    let cancelled = false
    const running = { result: Promise.resolve([]), cancel: () => (cancelled = true) }
    const handed = timing.database({ ...plain, run: () => running }).run([])
    handed.cancel()
    expect([handed === running, cancelled]).toEqual([true, true])
  })
})

test.each([
  [null, 0, 'total;dur=0'],
  [{ startedAt: 0, auth: 0.12345, plan: null, db: null }, 1.5, 'auth;dur=0.123, total;dur=1.5'],
  [{ startedAt: 0, auth: 1, plan: 2, db: 3 }, 7, 'auth;dur=1, plan;dur=2, db;dur=3, total;dur=7'],
])('the header of %j is printed', (timing, totalMs, header) => {
  expect(printServerTiming(timing, totalMs)).toBe(header)
})
