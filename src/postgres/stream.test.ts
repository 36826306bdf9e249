/** Streams against a scripted server: when rows are requested, and how streams end. */
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
import type { FrontendMessage } from './protocol/frontend.ts'
import { READY_BYTES_MAX } from './stream.ts'
import type { ResultRow } from './types.ts'
import { parseUrl } from './url.ts'

const opened: { pool: Pool; server: FakePostgres }[] = []

afterEach(async () => {
  for (const { pool, server } of opened.splice(0)) {
    await pool.close({ deadlineMs: 0 })
    await server.close()
  }
})

async function bench(
  script: (session: FakeSession) => Promise<void>,
  options: Partial<PoolOptions> = {},
): Promise<Pool> {
  const server = await fakePostgres(async session => {
    if (await session.welcome()) await script(session)
  })
  const pool = createPool({ target: parseUrl(server.url), maxConnections: 1, clock: () => 0, ...options })
  opened.push({ pool, server })
  await pool.ready()
  return pool
}

const SUSPENDED: BackendMessage = { kind: 'portalSuspended' }
const DONE: BackendMessage = { kind: 'commandComplete', tag: 'SELECT 3' }
const settings = { text: 'settings', parameters: [] }
const rows = { text: 'rows', parameters: [] }

/** The responses to the settings and to the first Execute, up to the end of the first block. */
function opening(...values: string[]): BackendMessage[] {
  return [...firstAnswer('set'), ...firstAnswer(...values).slice(0, -1), SUSPENDED]
}

function text(batch: IteratorResult<readonly ResultRow[]>): string[] | 'done' {
  return batch.done === true ? 'done' : batch.value.map((columns: ResultRow) => String(columns[0]))
}

function kinds(messages: readonly FrontendMessage[]): string[] {
  return messages.map(message => message.kind)
}

test('the settings come first, then block after block, one ahead, and Sync at the end', async () => {
  const pool = await bench(async session => {
    const start = await session.until('flush')
    const prepared = ['parse', 'describe', 'bind', 'execute']
    expect(kinds(start)).toEqual([...prepared, ...prepared, 'flush'])
    expect(start.filter(message => message.kind === 'execute').map(message => message.rowsMax)).toEqual([0, 2])
    session.send(...opening('1', '2'))
    expect(await session.until('flush')).toEqual([{ kind: 'execute', portal: '', rowsMax: 2 }, { kind: 'flush' }])
    session.send(row('3'), DONE)
    expect(kinds(await session.until('sync'))).toEqual(['sync'])
    session.send(READY)
    await session.until('sync')
    session.send(...nextAnswer('after'), READY)
  })
  const stream = pool.stream([settings], rows, 2)
  expect(text(await stream.next())).toEqual(['1', '2'])
  expect(pool.stats().streaming).toBe(1)
  expect(text(await stream.next())).toEqual(['3'])
  expect(text(await stream.next())).toBe('done')
  expect(text(await stream.next())).toBe('done')
  expect(pool.stats()).toMatchObject({ streaming: 0, idle: 1 })
  expect((await pool.run([rows]).result)[0]?.rows.length).toBe(1)
})

test('blocks start small, double while they arrive quickly and halve if they are slow', async () => {
  let now = 0
  const asked: number[] = []
  const took = [100, 100, 101, 200, 0, 0, 0, 0]
  const pool = await bench(
    async session => {
      await answer(session, ...firstAnswer('set'), ...firstAnswer('1').slice(0, -1))
      for (let n = 2; n <= took.length; n++) await answer(session, row(String(n)))
      asked.push(rowsMax(await session.until('flush')))
      session.send(DONE)
      await session.until('sync')
      session.send(READY)
    },
    { clock: () => now },
  )
  async function answer(session: FakeSession, ...messages: readonly BackendMessage[]): Promise<void> {
    asked.push(rowsMax(await session.until('flush')))
    now += took[asked.length - 1] ?? 0
    session.send(...messages, SUSPENDED)
  }
  let batches = 0
  for await (const _batch of pool.stream([settings], rows, 100)) batches++
  expect(batches).toBe(took.length)
  expect(asked).toEqual([16, 32, 64, 32, 16, 32, 64, 100, 100])
})

function rowsMax(messages: readonly FrontendMessage[]): number {
  return messages.findLast(message => message.kind === 'execute')?.rowsMax ?? -1
}

test('at most one block ahead is requested until the reader takes it', async () => {
  let asked = 0
  const pool = await bench(async session => {
    await session.until('flush')
    session.send(...opening('1'))
    for (;;) {
      const messages = await session.until('flush')
      asked += messages.length / 2
      session.send(row('next'), SUSPENDED)
    }
  })
  const stream = pool.stream([settings], rows, 1)
  await stream.next()
  await expect.poll(() => asked).toBe(1)
  await new Promise(resolve => setTimeout(resolve, 20))
  expect(asked).toBe(1)
  await stream.next()
  await expect.poll(() => asked).toBe(2)
})

test('nothing is sent behind a stream, and a stream that is not started sends nothing', async () => {
  const pool = await bench(async session => {
    await session.until('flush')
    session.send(...opening('1'))
    await session.until('flush')
    session.send(DONE)
    await session.until('sync')
    session.send(READY)
    await session.until('sync')
    session.send(...firstAnswer('behind'), READY)
  })
  const unstarted = pool.stream([], rows, 1)
  const stream = pool.stream([settings], rows, 1)
  await stream.next()
  const behind = pool.run([{ text: 'behind', parameters: [] }])
  expect(pool.stats()).toMatchObject({ inFlight: 1, waiting: 1, streaming: 1 })
  expect(text(await stream.next())).toBe('done')
  await behind.result
  expect(text((await unstarted.return?.()) as IteratorResult<readonly ResultRow[]>)).toBe('done')
})

test('return ends the transaction with Sync and discards the block in progress', async () => {
  const pool = await bench(async session => {
    await session.until('flush')
    session.send(...opening('1'))
    await session.until('flush')
    expect(kinds(await session.until('sync'))).toEqual(['sync'])
    session.send(row('2'), SUSPENDED, READY)
    await session.until('sync')
    session.send(...firstAnswer('after'), READY)
  })
  const stream = pool.stream([settings], rows, 1)
  await stream.next()
  await stream.return?.()
  expect(pool.stats()).toMatchObject({ streaming: 0, inFlight: 0 })
  expect(text(await stream.next())).toBe('done')
  await pool.run([{ text: 'after', parameters: [] }]).result
})

test('an error is delivered after the rows before it, and the connection stays open', async () => {
  const pool = await bench(async session => {
    await session.until('flush')
    session.send(...opening('1'))
    await session.until('flush')
    session.send(row('2'), error('22012', 'division by zero'))
    expect(kinds(await session.until('sync'))).toEqual(['sync'])
    session.send(READY)
    await session.until('sync')
    session.send(...firstAnswer('after'), READY)
  })
  const stream = pool.stream([settings], rows, 10)
  expect(text(await stream.next())).toEqual(['1'])
  expect(text(await stream.next())).toEqual(['2'])
  await expect(stream.next()).rejects.toMatchObject({ sqlstate: '22012' })
  expect(text(await stream.next())).toBe('done')
  await pool.run([{ text: 'after', parameters: [] }]).result
})

test('failing settings end it before the first row', async () => {
  const pool = await bench(async session => {
    await session.until('flush')
    session.send({ kind: 'parseComplete' }, error('22023', 'invalid value for parameter'))
    await session.until('sync')
    session.send(READY)
  })
  await expect(pool.stream([settings], rows, 10).next()).rejects.toMatchObject({ sqlstate: '22023' })
})

test('a stale plan restarts the stream if no row has been delivered', async () => {
  const pool = await bench(async session => {
    await session.until('sync')
    session.send(...firstAnswer('warm'), READY)
    await session.until('flush')
    session.send(...nextAnswer('set').slice(0, 0), error('26000', 'prepared statement "s1" does not exist'))
    await session.until('sync')
    session.send(READY)
    expect(kinds(await session.until('flush'))).toEqual(['close', 'parse', 'describe', 'bind', 'execute', 'flush'])
    session.send({ kind: 'closeComplete' }, ...firstAnswer('1').slice(0, -1), DONE)
    await session.until('sync')
    session.send(READY)
  })
  await pool.run([rows]).result
  const stream = pool.stream([], rows, 10)
  expect(text(await stream.next())).toEqual(['1'])
  expect(text(await stream.next())).toBe('done')
})

test('a connection that breaks in the middle is reported after the rows that arrived', async () => {
  const pool = await bench(async session => {
    await session.until('flush')
    session.send(...opening('1'))
    await session.until('flush')
    session.socket.destroy()
  })
  const stream = pool.stream([settings], rows, 1)
  expect(text(await stream.next())).toEqual(['1'])
  await expect(stream.next()).rejects.toMatchObject({ name: 'UnavailableError', sent: true })
  expect(pool.stats()).toMatchObject({ streaming: 0, open: 0 })
})

test('large rows are delivered in pieces, and beyond the limit the socket is not read', async () => {
  const large = 'x'.repeat(READY_BYTES_MAX / 4)
  let written = 0
  const pool = await bench(async session => {
    await session.until('flush')
    session.send(...opening(large))
    await session.until('flush')
    const batch = row(large)
    for (let index = 0; index < 400; index++) {
      session.send(batch)
      if (session.socket.writableNeedDrain) await new Promise(resolve => session.socket.once('drain', resolve))
      written++
    }
    session.send(DONE)
    await session.until('sync')
    session.send(READY)
  })
  const stream = pool.stream([settings], rows, 1_000)
  let count = (await stream.next()).value?.length ?? 0
  await new Promise(resolve => setTimeout(resolve, 100))
  // 100 MB were requested; rows that the reader has not taken wait at the server.
  expect(written).toBeLessThan(200)
  for await (const batch of stream) {
    expect(batch.length).toBeLessThan(10)
    count += batch.length
  }
  expect(count).toBe(401)
})

test('the stream of a reader that takes nothing for too long ends with an error', async () => {
  const pool = await bench(
    async session => {
      await session.until('flush')
      session.send(...opening('1'))
      await session.until('flush')
      session.send(row('2'), SUSPENDED)
      await session.until('sync')
      session.send(READY)
    },
    { readerIdleMs: 20 },
  )
  const stream = pool.stream([settings], rows, 1)
  await stream.next()
  await expect.poll(() => pool.stats().streaming).toBe(0)
  await expect(stream.next()).rejects.toThrow('the stream was not read for 20 ms')
  expect(text(await stream.next())).toBe('done')
})

test('a server that falls silent within a block is given up after answerTimeoutMs', async () => {
  let now = 0
  const pool = await bench(
    async session => {
      await session.until('flush')
      session.send(...opening('1'))
      await session.until('flush')
      now = 50_000
      await session.gone
    },
    { answerTimeoutMs: 40_000, clock: () => now },
  )
  const stream = pool.stream([settings], rows, 1)
  expect(text(await stream.next())).toEqual(['1'])
  await expect(stream.next()).rejects.toThrow('no response for 40000 ms')
  expect(pool.stats()).toMatchObject({ streaming: 0, open: 0 })
})

test('a server that falls silent after the last row is given up as well', async () => {
  let now = 0
  const pool = await bench(
    async session => {
      await session.until('flush')
      session.send(...firstAnswer('set'), ...firstAnswer('1'))
      await session.until('sync')
      now = 50_000
      await session.gone
    },
    { answerTimeoutMs: 40_000, clock: () => now },
  )
  const stream = pool.stream([settings], rows, 10)
  expect(text(await stream.next())).toEqual(['1'])
  await expect(stream.next()).rejects.toThrow('no response for 40000 ms')
})

test('time spent waiting for the reader does not count against the server', async () => {
  const large = 'x'.repeat(READY_BYTES_MAX)
  let now = 0
  const pool = await bench(
    async session => {
      await session.until('flush')
      session.send(...opening('1'))
      await session.until('flush')
      session.send(row(large))
      // The block continues when the reader has taken rows, long after it was requested.
      await expect.poll(() => now, { timeout: 10_000 }).toBe(100_000)
      session.send(row('3'), DONE)
      await session.until('sync')
      session.send(READY)
    },
    { answerTimeoutMs: 40_000, clock: () => now },
  )
  const stream = pool.stream([settings], rows, 2)
  await stream.next()
  // The large row arrives, and the socket is no longer read.
  await new Promise(resolve => setTimeout(resolve, 100))
  now = 90_000
  // The pool checks every second and must not end the stream, neither now nor after the reader has continued.
  await new Promise(resolve => setTimeout(resolve, 1_100))
  expect(text(await stream.next())).toEqual([large])
  await new Promise(resolve => setTimeout(resolve, 1_100))
  now = 100_000
  expect(text(await stream.next())).toEqual(['3'])
  expect(text(await stream.next())).toBe('done')
})

test('two concurrent calls of next are rejected', async () => {
  const pool = await bench(async session => {
    await session.gone
  })
  const stream = pool.stream([settings], rows, 1)
  const first = stream.next().catch(() => {})
  await expect(stream.next()).rejects.toThrow('before the previous next() had resolved')
  await pool.close({ deadlineMs: 0 })
  await first
})

test('a block has at least one row', async () => {
  const pool = await bench(async session => {
    await session.gone
  })
  expect(() => pool.stream([], rows, 0)).toThrow('batchRows is 0; it must be at least 1')
})
