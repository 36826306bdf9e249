/**
 * docs/guides/realtime.md#a-live-query: the rows of a query at once, and again whenever they have changed.
 */
import { describe, expect, test } from 'vitest'
import { shopDatabase } from '../features/shop.ts'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { testGateway } from '../support/gateway.ts'
import { execute } from '../support/postgres.ts'
import { openSocket, type TestSocket } from '../support/socket.ts'

const database = databaseFixture(shopDatabase)
const gateway = gatewayFixture(database, { toml: 'max_result_rows = 3\nexplain_max_rows = 100000' })

async function socketOf(tenantId: string): Promise<TestSocket> {
  return openSocket(gateway.url, { token: await gateway.token({ tenantId }) })
}

test('the first result arrives at once, and the next when any client has changed the rows', async () => {
  const socket = await socketOf('t1')
  socket.say({
    type: 'live_query',
    id: 'l',
    svc: 'get labels fields id, name order by id',
    table: 'labels',
    interval_ms: 100,
  })
  expect(await socket.next()).toEqual({ type: 'subscribed', id: 'l', table: 'labels' })
  const rows = [
    { id: 1, name: 'sport' },
    { id: 2, name: 'home' },
  ]
  expect(await socket.next()).toEqual({ type: 'notification', id: 'l', table: 'labels', rows, count: 2, seq: 1 })
  await execute(
    database.adminUrl,
    "update labels set name = name where id = 1; update labels set name = 'x' where tenant_id = 't2'",
  )
  await execute(database.adminUrl, "insert into labels values (3, 't1', 'third')")
  expect(await socket.next()).toMatchObject({ rows: [...rows, { id: 3, name: 'third' }], count: 3, seq: 2 })
  // The limit on rows.
  await execute(
    database.adminUrl,
    "update labels set name = 'new' where id = 1; insert into labels values (4, 't1', 'fourth')",
  )
  expect(await socket.next()).toMatchObject({ rows: [{ id: 1, name: 'new' }, rows[1], { id: 3 }], count: 3, seq: 3 })
  socket.say({ type: 'stop_live_query', id: 'l' })
  expect(await socket.next()).toEqual({ type: 'unsubscribed', id: 'l' })
  await execute(database.adminUrl, 'delete from labels where id in (3, 4)')
  await socket.close()
})

test('a live query supports counts, parameters, numbers of any length, and empty results', async () => {
  const socket = await socketOf('t1')
  const ask = async (svc: string, table: string, parameters?: unknown) => {
    socket.say({ type: 'live_query', svc, table, ...(parameters === undefined ? {} : { parameters }) })
    const { id } = await socket.nextOf('subscribed')
    const answer = await socket.nextOf('notification')
    socket.say({ type: 'stop_live_query', id })
    await socket.nextOf('unsubscribed')
    return answer
  }
  expect(await ask('count labels', 'labels')).toMatchObject({ rows: [{ count: 2 }] })
  expect(await ask('get labels fields name where id = $1', 'labels', [2])).toMatchObject({ rows: [{ name: 'home' }] })
  expect(await ask('get labels fields name where id = :id', 'labels', { id: 2 })).toMatchObject({
    rows: [{ name: 'home' }],
  })
  expect(await ask('get labels fields name where id = 77', 'labels')).toMatchObject({ rows: [], count: 0, seq: 1 })
  await socket.close()
})

describe('a rejected live query', () => {
  test.each([
    ['get labels fields', 'labels', 'PARSE_ERROR', { line: 1 }],
    ['get labels fields nope', 'labels', 'PARSE_ERROR', { line: 1, column: 19 }],
    ['get orders', 'labels', 'PARSE_ERROR', { line: 1, column: 5 }],
    ['get labels', 'nothing', 'NOT_FOUND', undefined],
    ["set labels values name = 'x' where id = 1", 'labels', 'FORBIDDEN', { line: 1 }],
    ['export labels', 'labels', 'FORBIDDEN', { line: 1 }],
    ['with labels as (get orders fields id) get labels', 'labels', 'PARSE_ERROR', undefined],
    ['get labels where id = $1', 'labels', 'PARSE_ERROR', { line: 1, column: 23 }],
  ])('is answered with an error: %s', async (svc, table, code, details) => {
    const socket = await socketOf('t1')
    socket.say({ type: 'live_query', id: 'x', svc, table })
    const said = await socket.next()
    expect(said).toMatchObject({ type: 'error', id: 'x', code })
    if (details !== undefined) expect(said.details).toMatchObject(details)
    await socket.close()
  })

  test('can have an invalid interval, or be one query more than 50', async () => {
    const socket = await socketOf('t1')
    for (const interval of [99, 3_600_001, '1000', 1.5]) {
      socket.say({ type: 'live_query', svc: 'get labels', table: 'labels', interval_ms: interval })
      expect(await socket.next()).toMatchObject({
        type: 'error',
        code: 'PARSE_ERROR',
        message: expect.stringContaining('interval_ms'),
      })
    }
    const all: string[] = []
    for (let n = 0; n < 51; n++) {
      socket.say({
        type: 'live_query',
        id: `q${n}`,
        svc: `get labels where id = ${n}`,
        table: 'labels',
        interval_ms: 3_600_000,
      })
    }
    while (all.length < 51) {
      const { type, id, code } = await socket.next()
      if (type === 'subscribed') all.push(id)
      else if (type === 'error') all.push(`${id} ${code}`)
    }
    expect(all.at(-1)).toBe('q50 FORBIDDEN')
    await socket.close()
  })

  test('ends with the reason if the database rejects it later', async () => {
    const socket = await socketOf('t1')
    socket.say({ type: 'live_query', id: 'x', svc: 'get labels fields 1 / (id - id) as n', table: 'labels' })
    await socket.nextOf('subscribed')
    expect(await socket.next()).toMatchObject({ type: 'error', id: 'x', code: 'QUERY_ERROR' })
    socket.say({ type: 'stop_live_query', id: 'x' })
    expect(await socket.next()).toMatchObject({ type: 'error', code: 'NOT_FOUND' })
    await socket.close()
  })
})

test('callers with equal queries share the run, and tenants never do', async () => {
  const [one, again, other] = [await socketOf('t1'), await socketOf('t1'), await socketOf('t2')]
  const query = { type: 'live_query', svc: 'get labels fields name order by id', table: 'labels', interval_ms: 100 }
  for (const socket of [one, again, other]) socket.say(query)
  const answers = await Promise.all([one, again, other].map(socket => socket.nextOf('notification')))
  expect(answers[1]?.rows).toEqual(answers[0]?.rows)
  expect(answers[2]?.rows).not.toEqual(answers[0]?.rows)
  await Promise.all([one, again, other].map(socket => socket.close()))
})

test('a query that is too expensive is rejected before it runs, and ended', async () => {
  const strict = await testGateway(database.url, { toml: 'explain_max_rows = 1' })
  try {
    const socket = await openSocket(strict.url, { token: await strict.token({ tenantId: 't1' }) })
    socket.say({ type: 'live_query', id: 'x', svc: 'get orders', table: 'orders' })
    await socket.nextOf('subscribed')
    expect(await socket.next()).toMatchObject({ type: 'error', id: 'x', code: 'QUERY_TOO_EXPENSIVE' })
    socket.say({ type: 'stop_live_query', id: 'x' })
    expect(await socket.next()).toMatchObject({ type: 'error', code: 'NOT_FOUND' })
    await socket.close()
  } finally {
    await strict.close()
  }
})
