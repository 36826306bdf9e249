/**
 * Results count from the moment they are read, and are given up if the budget is exceeded. Against a
 * scripted server.
 */
import { afterEach, expect, test } from 'vitest'
import {
  error,
  type FakePostgres,
  type FakeSession,
  fakePostgres,
  firstAnswer,
  nextAnswer,
  READY,
  row,
} from '../../test/support/fake-postgres.ts'
import { createPool, type Pool, type PoolOptions } from './pool.ts'
import type { BackendMessage } from './protocol/backend.ts'
import type { ResultBudget } from './result-budget.ts'
import { READY_BYTES_MAX } from './stream.ts'
import type { Command } from './types.ts'
import { parseUrl } from './url.ts'

const KB = 1024
const MB = 1024 * KB

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/**
 * A server whose first session follows `script`. The first cancel request ends the running statement, as in
 * PostgreSQL; until that response has been read the pool repeats the request, which then finds an idle
 * session. `beforeCancelled` sends the remaining messages.
 */
async function bench(
  script: (session: FakeSession) => Promise<void>,
  options: Partial<PoolOptions> = {},
  beforeCancelled: (session: FakeSession) => void = () => {},
): Promise<{ readonly pool: Pool; readonly server: FakePostgres; readonly wasCancelled: () => boolean }> {
  let main: FakeSession | null = null
  let wasCancelled = false
  const server = await fakePostgres(async session => {
    if (main === null) {
      main = session
      if (await session.welcome()) await script(session)
    } else if (!(await session.welcome()) && !wasCancelled) {
      wasCancelled = true
      beforeCancelled(main)
      main.send(error('57014', 'canceling statement due to user request'), READY)
    }
  })
  const pool = createPool({ target: parseUrl(server.url), maxConnections: 1, clock: () => 0, ...options })
  closing.push(async () => {
    await pool.close({ deadlineMs: 0 })
    await server.close()
  })
  await pool.ready()
  return { pool, server, wasCancelled: () => wasCancelled }
}

const FULL = new Error('no room for the answer')
const NO_START = new Error('no room to start')

interface Counted extends ResultBudget {
  readonly taken: () => number
  readonly most: () => number
}

/** `max`: the limit on the bytes of all other holders together. */
function budgetOf(max: number, mayStart: (readsOnly: boolean) => boolean = () => true): Counted {
  let taken = 0
  let most = 0
  return {
    beforeStart: (_flow, readsOnly) => (mayStart(readsOnly) ? null : NO_START),
    whileReading: (_flow, own) => (taken - own >= max ? FULL : null),
    take(_flow, bytes) {
      taken += bytes
      most = Math.max(most, taken)
    },
    give(_flow, bytes) {
      taken -= bytes
    },
    taken: () => taken,
    most: () => most,
  }
}

const read: Command = { text: 'read', parameters: [], flow: 'tenant a', readsOnly: true }
const change: Command = { text: 'change', parameters: [], flow: 'tenant a' }

const nextTurn = () => new Promise(resolve => setImmediate(resolve))

test('a small result is not counted, a large one until the end of the event loop turn that delivers it', async () => {
  const budget = budgetOf(1)
  const { pool } = await bench(
    async session => {
      await session.until('sync')
      session.send(...firstAnswer('x'.repeat(60 * KB)), READY)
      await session.until('sync')
      session.send(...nextAnswer(...Array.from({ length: 100 }, () => 'x'.repeat(40 * KB))), READY)
    },
    { resultBudget: budget },
  )
  await pool.run([read]).result
  expect(budget.most()).toBe(0)
  const [large] = await pool.run([read]).result
  expect(large?.rows.length).toBe(100)
  expect(budget.taken()).toBeGreaterThan(100 * 40 * KB)
  expect(budget.taken()).toBeLessThan(100 * 40 * KB + MB)
  await nextTurn()
  expect(budget.taken()).toBe(0)
})

test('the memory overhead of rows counts as well', async () => {
  const budget = budgetOf(1)
  const { pool } = await bench(
    async session => {
      await session.until('sync')
      session.send(...firstAnswer(...Array.from({ length: 20_000 }, () => '')), READY)
    },
    { resultBudget: budget },
  )
  await pool.run([read]).result
  // Six bytes each on the wire.
  expect(budget.most()).toBeGreaterThan(20_000 * 150)
})

test('a read is cancelled and rejected if other results have used up the budget', async () => {
  const budget = budgetOf(MB)
  budget.take('tenant b', MB)
  const rows: BackendMessage[] = Array.from({ length: 30 }, () => row('x'.repeat(20 * KB)))
  const { pool, wasCancelled } = await bench(
    async session => {
      await session.until('sync')
      // The rest arrives when PostgreSQL is asked to cancel it.
      session.send(...firstAnswer().slice(0, -1), ...rows)
      await session.until('sync')
      session.send(...nextAnswer('next'), READY)
    },
    { resultBudget: budget },
  )
  await expect(pool.run([read]).result).rejects.toBe(FULL)
  expect(wasCancelled()).toBe(true)
  expect(budget.taken()).toBe(MB)
  // The connection stays open.
  const [next] = await pool.run([read]).result
  expect(String(next?.rows[0]?.[0])).toBe('next')
})

test('a single read succeeds, whatever the budget', async () => {
  const budget = budgetOf(MB)
  const { pool } = await bench(
    async session => {
      await session.until('sync')
      session.send(...firstAnswer('x'.repeat(8 * MB), 'y'.repeat(8 * MB)), READY)
    },
    { resultBudget: budget },
  )
  const [result] = await pool.run([read]).result
  expect(result?.rows.map(columns => columns[0]?.length)).toEqual([8 * MB, 8 * MB])
})

test('a large row is counted by its length before it has arrived, and skipped', async () => {
  const budget = budgetOf(MB)
  budget.take('tenant b', MB)
  const header = Buffer.alloc(1000)
  header[0] = 0x44
  header.writeInt32BE(40 * MB + 4, 1)
  const { pool, wasCancelled } = await bench(
    async session => {
      await session.until('sync')
      session.send(...firstAnswer().slice(0, -1))
      session.raw(header)
    },
    { resultBudget: budget },
    session => session.raw(Buffer.alloc(40 * MB + 5 - header.length)),
  )
  await expect(pool.run([read]).result).rejects.toBe(FULL)
  expect(wasCancelled()).toBe(true)
})

test('the result of a write counts and is always read', async () => {
  const budget = budgetOf(1)
  budget.take('tenant b', MB)
  const { pool } = await bench(
    async session => {
      await session.until('sync')
      session.send(...firstAnswer('x'.repeat(3 * MB)), READY)
    },
    { resultBudget: budget },
  )
  const [result] = await pool.run([change]).result
  expect(result?.rows[0]?.[0]?.length).toBe(3 * MB)
  expect(budget.most()).toBeGreaterThan(4 * MB)
  await nextTurn()
  expect(budget.taken()).toBe(MB)
})

test('a request without budget is rejected at its turn, and the gateway’s own statements are not', async () => {
  const budget = budgetOf(MB, readsOnly => readsOnly)
  const texts: string[] = []
  const { pool } = await bench(
    async session => {
      for (;;) {
        const [parse] = await session.until('sync')
        if (parse?.kind === 'parse') texts.push(parse.text)
        session.send(...firstAnswer('done'), READY)
      }
    },
    { resultBudget: budget },
  )
  await expect(pool.run([change]).result).rejects.toBe(NO_START)
  await pool.run([read]).result
  await pool.run([{ text: 'own', parameters: [] }]).result
  expect(texts).toEqual(['read', 'own'])
})

test('a batch whose connection breaks releases its budget', async () => {
  const budget = budgetOf(MB)
  const { pool } = await bench(
    async session => {
      await session.until('sync')
      session.send(...firstAnswer('x'.repeat(MB)).slice(0, -1))
      await expect.poll(() => budget.taken()).toBeGreaterThan(MB)
      session.socket.destroy()
    },
    { resultBudget: budget },
  )
  await expect(pool.run([read]).result).rejects.toThrow('lost')
  expect(budget.taken()).toBe(0)
})

const SUSPENDED: BackendMessage = { kind: 'portalSuspended' }

test('a stream counts the rows that wait for its reader', async () => {
  const half = 'x'.repeat(READY_BYTES_MAX / 2 - 100)
  const budget = budgetOf(1)
  budget.take('tenant b', 1)
  const { pool } = await bench(
    async session => {
      await session.until('flush')
      session.send(...firstAnswer('set'), ...firstAnswer(half, half, 'x'.repeat(300)).slice(0, -1), SUSPENDED)
      await session.until('sync')
      session.send(READY)
    },
    { resultBudget: budget },
  )
  const stream = pool.stream([read], { text: 'rows', parameters: [] }, 10)
  const { value } = await stream.next()
  expect(value?.length).toBe(3)
  expect(budget.taken()).toBeGreaterThan(READY_BYTES_MAX)
  await nextTurn()
  expect(budget.taken()).toBe(1)
  await stream.return?.()
})

test('a streamed row above the limit of waiting bytes ends the stream if the budget is used up', async () => {
  const budget = budgetOf(1)
  budget.take('tenant b', 1)
  const { pool, wasCancelled } = await bench(
    async session => {
      await session.until('flush')
      session.send(...firstAnswer('set'), ...firstAnswer('y'.repeat(2 * READY_BYTES_MAX)).slice(0, -1))
      await session.until('sync')
    },
    { resultBudget: budget },
  )
  const stream = pool.stream([read], { text: 'rows', parameters: [] }, 10)
  await expect(stream.next()).rejects.toBe(FULL)
  expect(wasCancelled()).toBe(true)
  expect(budget.taken()).toBe(1)
})
