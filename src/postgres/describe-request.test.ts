/** Describe requests against a scripted server: the messages sent, the result, and how they end. */
import { afterEach, expect, test } from 'vitest'
import {
  description,
  error,
  type FakePostgres,
  type FakeSession,
  fakePostgres,
  firstAnswer,
  nextAnswer,
  READY,
  row,
} from '../../test/support/fake-postgres.ts'
import { CancelledError } from './errors.ts'
import { createPool, type Pool, type PoolEvent, type PoolOptions } from './pool.ts'
import type { BackendMessage } from './protocol/backend.ts'
import type { FrontendMessage } from './protocol/frontend.ts'
import { parseUrl } from './url.ts'

const opened: { pool: Pool; server: FakePostgres }[] = []
const events: PoolEvent[] = []

afterEach(async () => {
  events.length = 0
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
  const onEvent = (event: PoolEvent): unknown => events.push(event)
  const pool = createPool({ target: parseUrl(server.url), maxConnections: 1, clock: () => 0, onEvent, ...options })
  opened.push({ pool, server })
  await pool.ready()
  return pool
}

const DESCRIBED: readonly BackendMessage[] = [
  { kind: 'parseComplete' },
  { kind: 'parameterDescription', typeOids: [23, 25] },
  description('sum'),
  { kind: 'closeComplete' },
]
const SUM = { parameterTypeOids: [23, 25], fields: [{ name: 'sum', typeOid: 25 }] }
const settings = { text: 'settings', parameters: [] }

function kinds(messages: readonly FrontendMessage[]): string[] {
  return messages.map(message => message.kind)
}

test.each([true, false])(
  'a statement is described without a name, closed again, and never bound (prepared statements: %s)',
  async preparedStatements => {
    const pool = await bench(
      async session => {
        expect(await session.until('sync')).toEqual([
          { kind: 'parse', statement: '', text: 'select f($1, $2)', typeOids: [] },
          { kind: 'describe', target: 'statement', name: '' },
          { kind: 'close', target: 'statement', name: '' },
          { kind: 'sync' },
        ])
        session.send(...DESCRIBED, READY)
      },
      { preparedStatements },
    )
    expect(await pool.describe([], 'select f($1, $2)').result).toEqual(SUM)
  },
)

test('a statement without parameters and columns is described', async () => {
  const pool = await bench(async session => {
    await session.until('sync')
    const nothing: BackendMessage = { kind: 'parameterDescription', typeOids: [] }
    session.send({ kind: 'parseComplete' }, nothing, { kind: 'noData' }, { kind: 'closeComplete' }, READY)
  })
  expect(await pool.describe([], 'reset all').result).toEqual({ parameterTypeOids: [], fields: [] })
})

test('a request with settings describes the text, not the settings', async () => {
  const pool = await bench(async session => {
    const messages = await session.until('sync')
    expect(kinds(messages)).toEqual(['parse', 'describe', 'bind', 'execute', 'parse', 'describe', 'close', 'sync'])
    session.send(...firstAnswer('set'), ...DESCRIBED, READY)
    expect(kinds(await session.until('sync'))).toEqual(['bind', 'execute', 'parse', 'describe', 'close', 'sync'])
    session.send(...nextAnswer('set'), ...DESCRIBED, READY)
  })
  expect(await pool.describe([settings], 'select f($1, $2)').result).toEqual(SUM)
  expect(await pool.describe([settings], 'select f($1, $2)').result).toEqual(SUM)
})

test('a request is sent between batches in one packet, and its error affects only itself', async () => {
  let packets = 0
  const pool = await bench(async session => {
    await session.until('sync')
    session.send(...firstAnswer('warm'), READY)
    // The latency of describing is known from then on, and nothing waits for another connection.
    await session.until('sync')
    session.send(...DESCRIBED, READY)
    session.socket.on('data', () => packets++)
    for (let index = 0; index < 4; index++) await session.until('sync')
    session.send(...nextAnswer('before'), READY)
    session.send(error('42883', 'function f(integer) does not exist', { P: '8', H: 'Add casts.' }), READY)
    session.send(...DESCRIBED, READY)
    session.send(...nextAnswer('after'), READY)
  })
  await pool.run([settings]).result
  await pool.describe([], 'anything').result
  const before = pool.run([settings])
  const refused = pool.describe([], 'select f($1::int)')
  const probe = pool.describe([], 'select f($1, $2)')
  const after = pool.run([settings])
  await expect(refused.result).rejects.toMatchObject({
    name: 'DatabaseError',
    sqlstate: '42883',
    position: 8,
    hint: 'Add casts.',
  })
  expect(await probe.result).toEqual(SUM)
  expect(String((await before.result)[0]?.rows[0]?.[0])).toBe('before')
  expect(String((await after.result)[0]?.rows[0]?.[0])).toBe('after')
  expect(packets).toBe(1)
  expect(events.map(event => event.kind)).toEqual(['connected'])
})

test('failing settings end the request; settings that the session has lost are prepared again, once', async () => {
  const pool = await bench(async session => {
    await session.until('sync')
    session.send(...firstAnswer('set'), READY)
    await session.until('sync')
    session.send(error('26000', 'prepared statement "s1" does not exist'), READY)
    expect(kinds(await session.until('sync')).slice(0, 3)).toEqual(['close', 'parse', 'describe'])
    session.send({ kind: 'closeComplete' }, ...firstAnswer('set'), ...DESCRIBED, READY)
    await session.until('sync')
    session.send(error('22023', 'invalid value for parameter'), READY)
  })
  await pool.run([settings]).result
  expect(await pool.describe([settings], 'select f($1, $2)').result).toEqual(SUM)
  await expect(pool.describe([settings], 'select 1').result).rejects.toMatchObject({ sqlstate: '22023' })
  expect(events.map(event => event.kind)).toEqual(['connected', 'retried'])
})

test('a request waits in the same queue as batches, with the same limits', async () => {
  const pool = await bench(
    async session => {
      await session.until('sync')
      await session.gone
    },
    { acquireTimeoutMs: 30, waitingMax: 1, clock: () => performance.now() },
  )
  const stuck = pool.run([settings]).result.catch(() => {})
  await expect.poll(() => pool.stats().inFlight).toBe(1)
  const waiting = pool.describe([], 'select 1').result.catch(reason => reason)
  await expect(pool.describe([], 'select 2').result).rejects.toThrow('1 requests are already waiting')
  expect(await waiting).toMatchObject({ name: 'UnavailableError', sent: false })
  await pool.close({ deadlineMs: 0 })
  await stuck
  await expect(pool.describe([], 'select 3').result).rejects.toThrow('the database pool is closed')
})

test('a request that is cancelled while it waits is never sent; if later, it ends with its response', async () => {
  const pool = await bench(
    async session => {
      await session.until('sync')
      session.send(...firstAnswer('first'), READY)
      expect((await session.until('sync'))[0]).toMatchObject({ text: 'sent' })
      session.send(...DESCRIBED, READY)
      await session.until('sync')
      session.send(...nextAnswer('last'), READY)
    },
    { pipelineDepth: 1 },
  )
  const first = pool.run([settings])
  const waiting = pool.describe([], 'never sent')
  waiting.cancel()
  await expect(waiting.result).rejects.toBeInstanceOf(CancelledError)
  await first.result
  const sent = pool.describe([], 'sent')
  sent.cancel()
  await expect(sent.result).rejects.toBeInstanceOf(CancelledError)
  await pool.run([settings]).result
})

test('a text that cannot be encoded is not sent', async () => {
  const pool = await bench(async session => {
    await session.until('sync')
    session.send(...firstAnswer('x'), READY)
  })
  await expect(pool.describe([settings], 'select\0').result).rejects.toThrow('zero byte')
  await pool.run([settings]).result
})

test.each<[string, readonly BackendMessage[]]>([
  ['no description', [READY]],
  ['half a description', [...DESCRIBED.slice(0, 2), READY]],
  ['a row', [...DESCRIBED, row('x'), READY]],
  ['a result', [...DESCRIBED, { kind: 'commandComplete', tag: 'SELECT 1' }, READY]],
  ['two descriptions', [...DESCRIBED, description('more'), READY]],
  ['a suspended portal', [...DESCRIBED, { kind: 'portalSuspended' }, READY]],
  ['an open transaction', [...DESCRIBED, { kind: 'readyForQuery', status: 'transaction' }]],
])('a server that responds with %s is disconnected', async (_what, messages) => {
  const pool = await bench(async session => {
    await session.until('sync')
    session.send(...messages)
    await session.gone
  })
  await expect(pool.describe([], 'select 1').result).rejects.toMatchObject({ name: 'UnavailableError', sent: true })
  expect(events.map(event => event.kind)).toEqual(['connected', 'lost'])
})
