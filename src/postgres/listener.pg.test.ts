/** A listener that survives the loss of its connection. */
import { afterEach, expect, test } from 'vitest'
import { error, fakePostgres, firstAnswer, READY } from '../../test/support/fake-postgres.ts'
import { databaseFixture } from '../../test/support/fixtures.ts'
import { execute } from '../../test/support/postgres.ts'
import { createListener, type Listener, type ListenerEvent } from './listener.ts'
import { parseUrl } from './url.ts'

const database = databaseFixture()
const listeners: Listener[] = []

afterEach(() => {
  for (const listener of listeners.splice(0)) listener.close()
})

interface Heard {
  readonly notifications: [string, string][]
  readonly events: ListenerEvent['kind'][]
  gaps: number
}

function listener(url: string, heartbeatMs = 10_000): { listener: Listener; heard: Heard } {
  const heard: Heard = { notifications: [], events: [], gaps: 0 }
  const made = createListener({
    target: parseUrl(url),
    onNotification: (channel, payload) => heard.notifications.push([channel, payload]),
    onGap: () => {
      heard.gaps++
    },
    onEvent: event => heard.events.push(event.kind),
    heartbeatMs,
    heartbeatAnswerMs: 50,
    random: () => 0,
  })
  listeners.push(made)
  return { listener: made, heard }
}

async function terminate(): Promise<void> {
  await execute(
    database.adminUrl,
    "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app' and datname = current_database()",
  )
}

test('notifications have channel and payload, for any channel name', async () => {
  const { listener: made, heard } = listener(database.url)
  const names = ['plain', 'Upper "quoted"', 'تست', 'a'.repeat(63)]
  await Promise.all(names.map(name => made.listen(name)))
  for (const name of names) await execute(database.adminUrl, `notify "${name.replaceAll('"', '""')}", 'to ${name}'`)
  await expect.poll(() => heard.notifications).toEqual(names.map(name => [name, `to ${name}`]))
  expect(heard).toMatchObject({ gaps: 0, events: ['connected'] })
})

test('after a lost connection it listens again and reports the gap', async () => {
  const { listener: made, heard } = listener(database.url)
  await made.listen('first')
  await terminate()
  await expect.poll(() => heard.gaps).toBe(1)
  await made.listen('second')
  await execute(database.adminUrl, "notify first, 'one'; notify second, 'two'")
  await expect
    .poll(() => heard.notifications)
    .toEqual([
      ['first', 'one'],
      ['second', 'two'],
    ])
  expect(heard.events).toEqual(['connected', 'lost', 'connected'])
})

test('notifications stop after unlisten', async () => {
  const { listener: made, heard } = listener(database.url)
  await made.listen('kept')
  await made.listen('dropped')
  made.unlisten('dropped')
  await execute(database.adminUrl, 'notify dropped; notify kept')
  await expect.poll(() => heard.notifications).toEqual([['kept', '']])
})

test('invalid channel names are rejected', async () => {
  const { listener: made } = listener(database.url)
  await expect(made.listen('')).rejects.toThrow('1 to 63 bytes')
  await expect(made.listen('ü'.repeat(32))).rejects.toThrow('this one has 64')
  await expect(made.listen('a\0b')).rejects.toThrow('bytes without zero')
})

test('a silent server is detected by the heartbeat', async () => {
  const server = await fakePostgres(async session => {
    if (!(await session.welcome())) return
    await session.until('sync')
    session.send(...firstAnswer(), READY)
    // From now on the server does not respond, as if the network cable were cut.
    await session.gone
  })
  const { listener: made, heard } = listener(server.url, 20)
  await made.listen('anything')
  await expect.poll(() => heard.gaps).toBe(1)
  expect(heard.events.slice(0, 3)).toEqual(['connected', 'lost', 'connected'])
  made.close()
  await server.close()
})

test('a connection that ends together with the response to LISTEN is opened again', async () => {
  const server = await fakePostgres(async session => {
    if (!(await session.welcome())) return
    await session.until('sync')
    if (session.number === 1) {
      session.send(...firstAnswer(), READY, error('57P01', 'terminating connection', { S: 'FATAL', V: 'FATAL' }))
    } else {
      session.send(...firstAnswer(), READY, { kind: 'notification', processId: 1, channel: 'news', payload: 'heard' })
    }
    await session.gone
  })
  const { listener: made, heard } = listener(server.url)
  await made.listen('news')
  await expect.poll(() => heard.notifications).toEqual([['news', 'heard']])
  expect(heard.events).toEqual(['connect-failed', 'connected'])
  expect(made.connected).toBe(true)
  made.close()
  await server.close()
})

test('the number of channels is limited to 10 000', async () => {
  const server = await fakePostgres(async session => {
    await session.gone
  })
  const { listener: made } = listener(server.url)
  const waiting = Array.from({ length: 10_000 }, (_, index) => made.listen(`channel ${index}`).catch(() => {}))
  await expect(made.listen('one more')).rejects.toThrow('10000 channels already have listeners, the maximum')
  made.close()
  await Promise.all(waiting)
  await server.close()
})

test('close rejects pending calls, and nothing reconnects', async () => {
  const server = await fakePostgres(async session => {
    await session.gone
  })
  const { listener: made } = listener(server.url)
  const waiting = made.listen('never')
  made.close()
  await expect(waiting).rejects.toThrow('the listener is closed')
  await expect(made.listen('late')).rejects.toThrow('the listener is closed')
  await server.close()
})
