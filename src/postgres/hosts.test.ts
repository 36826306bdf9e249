/** Targets with several hosts, against scripted servers: the order of attempts, and what ends the search. */
import { afterEach, expect, test } from 'vitest'
import {
  AUTHENTICATION_OK,
  error,
  type FakePostgres,
  type FakeSession,
  fakePostgres,
  firstAnswer,
  READY,
  UTF8,
} from '../../test/support/fake-postgres.ts'
import { ConnectError } from './errors.ts'
import { HostOrder } from './host-order.ts'
import { createPool, type Pool, type PoolEvent } from './pool.ts'
import type { BackendMessage } from './protocol/backend.ts'
import { connect } from './startup.ts'
import { describeAddress } from './target.ts'
import { parseUrl } from './url.ts'

const closing: { close(): Promise<void> }[] = []

afterEach(async () => {
  for (const one of closing.splice(0).reverse()) await one.close()
})

type Kind = 'primary' | 'standby'

/** A server that accepts sessions as its kind, or answers the startup packet with an error. */
async function host(answer: Kind | BackendMessage): Promise<FakePostgres> {
  const server = await fakePostgres(async session => {
    await session.next()
    if (typeof answer !== 'string') session.send(answer)
    else session.send(AUTHENTICATION_OK, UTF8, ...kindReports(answer), READY)
    await session.gone
  })
  closing.push(server)
  return server
}

function kindReports(kind: Kind): BackendMessage[] {
  return [
    { kind: 'parameterStatus', name: 'in_hot_standby', value: kind === 'standby' ? 'on' : 'off' },
    { kind: 'parameterStatus', name: 'default_transaction_read_only', value: 'off' },
  ]
}

/** A port on which nothing listens any more. */
async function closedPort(): Promise<number> {
  const server = await fakePostgres(async () => {})
  await server.close()
  return server.port
}

function urlOf(ports: readonly number[], parameters: string): string {
  const hosts = ports.map(port => `127.0.0.1:${port}`).join(',')
  return `postgres://app:secret@${hosts}/anything?sslmode=disable&${parameters}`
}

/** The port that accepts the session. */
async function portOf(ports: readonly number[], parameters: string): Promise<number> {
  const { wire, target } = await connect({ target: parseUrl(urlOf(ports, parameters)), throughPooler: false })
  wire.destroy(new Error('the test is over'))
  return target.address.kind === 'tcp' ? target.address.port : 0
}

test.each([
  ['any', 0],
  ['read-write', 1],
  ['primary', 1],
  ['standby', 0],
  ['read-only', 0],
  ['prefer-standby', 0],
])('target_session_attrs=%s of a standby and a primary', async (wanted, expected) => {
  const ports = [(await host('standby')).port, (await host('primary')).port]
  expect(await portOf(ports, `target_session_attrs=${wanted}`)).toBe(ports[expected])
})

test('prefer-standby accepts a primary if no host is a standby', async () => {
  const ports = [await closedPort(), (await host('primary')).port, (await host('primary')).port]
  expect(await portOf(ports, 'target_session_attrs=prefer-standby')).toBe(ports[1])
})

test('hosts that are unreachable, starting up or full are skipped', async () => {
  const starting = await host(error('57P03', 'the database system is starting up', { V: 'FATAL' }))
  const full = await host(error('53300', 'sorry, too many clients already', { V: 'FATAL' }))
  const last = await host('primary')
  expect(await portOf([await closedPort(), starting.port, full.port, last.port], '')).toBe(last.port)
})

test('a silent host is skipped after connect_timeout', async () => {
  const silent = await fakePostgres(session => session.gone)
  closing.push(silent)
  const last = await host('primary')
  expect(await portOf([silent.port, last.port], 'connect_timeout=1')).toBe(last.port)
})

test('a host that refuses the password ends the search', async () => {
  const refusing = await host(error('28P01', 'password authentication failed', { V: 'FATAL' }))
  const last = await host('primary')
  const refused = await portOf([refusing.port, last.port], '').catch(reason => reason)
  expect(refused).toBeInstanceOf(ConnectError)
  expect(refused).toMatchObject({
    permanent: true,
    message: `no session with app@127.0.0.1:${refusing.port}/anything: password authentication failed`,
  })
  expect(last.count).toBe(0)
})

test('the error names every host and its reason', async () => {
  const down = await closedPort()
  const standby = await host('standby')
  const refused = await portOf([down, standby.port], 'target_session_attrs=read-write').catch(reason => reason)
  const both = `app@127.0.0.1:${down},127.0.0.1:${standby.port}/anything`
  expect(refused).toMatchObject({
    permanent: false,
    message:
      `no host of ${both} accepted the session: ` +
      `cannot connect to app@127.0.0.1:${down}/anything: connect ECONNREFUSED 127.0.0.1:${down}; ` +
      `the server at 127.0.0.1:${standby.port} is a standby, but target_session_attrs=read-write is required`,
  })
})

test('a host that failed is tried last for five seconds', () => {
  let now = 0
  const target = parseUrl(urlOf([1, 2, 3], ''))
  const order = new HostOrder(target, { clock: () => now })
  const ports = () => order.next().map(({ address }) => describeAddress(address).replace('127.0.0.1:', ''))
  expect(ports()).toEqual(['1', '2', '3'])
  order.failed(target.address)
  expect(ports()).toEqual(['2', '3', '1'])
  now = 4_999
  expect(ports()).toEqual(['2', '3', '1'])
  now = 5_000
  expect(ports()).toEqual(['1', '2', '3'])
  order.failed(target.address)
  order.worked(target.address)
  expect(ports()).toEqual(['1', '2', '3'])
})

test('load_balance_hosts=random shuffles the hosts', () => {
  const numbers = [0.9, 0, 0]
  const order = new HostOrder(parseUrl(urlOf([1, 2, 3], 'load_balance_hosts=random')), {
    random: () => numbers.shift() ?? 0,
  })
  expect(order.next().map(({ address, others }) => [describeAddress(address), others])).toEqual([
    ['127.0.0.1:3', []],
    ['127.0.0.1:1', []],
    ['127.0.0.1:2', []],
  ])
})

interface Opened {
  readonly pool: Pool
  readonly events: PoolEvent[]
}

function open(ports: readonly number[], parameters: string, clock: () => number = () => 0): Opened {
  const events: PoolEvent[] = []
  const target = parseUrl(urlOf(ports, parameters))
  const pool = createPool({ target, clock, onEvent: event => events.push(event) })
  closing.push({ close: () => pool.close({ deadlineMs: 0 }) })
  return { pool, events }
}

test('a cancel request goes to the host of the session', async () => {
  const server = await fakePostgres(async session => {
    if (!(await session.welcome())) return
    await session.gone
  })
  closing.push(server)
  const { pool } = open([await closedPort(), server.port], '')
  await pool.ready()
  const running = pool.run([{ text: 'select value', parameters: [] }])
  running.result.catch(() => {})
  running.cancel()
  // The first connection to this server is the session, the second the cancel request.
  await expect.poll(() => server.count).toBe(2)
})

/** A server whose sessions send the responses of `answers` to one request each, and report `kind`. */
async function scripted(kind: Kind, ...answers: readonly (readonly BackendMessage[])[]): Promise<FakePostgres> {
  const server = await fakePostgres(async session => {
    await session.next()
    session.send(AUTHENTICATION_OK, UTF8, ...kindReports(kind), READY)
    for (const answer of answers) {
      await session.until('sync')
      session.send(...answer)
    }
    await session.gone
  })
  closing.push(server)
  return server
}

function ask({ pool }: Opened): Promise<unknown> {
  return pool.run([{ text: 'insert', parameters: [] }]).result
}

test('once another host is the primary, sessions with the former one take no more requests', async () => {
  const held: FakeSession[] = []
  const former = await fakePostgres(async session => {
    await session.next()
    const kind = held.length === 0 ? 'primary' : 'standby'
    held.push(session)
    session.send(AUTHENTICATION_OK, UTF8, ...kindReports(kind), READY)
    await session.gone
  })
  closing.push(former)
  const next = await scripted('primary', [...firstAnswer('next'), READY])
  const opened = open([former.port, next.port], 'target_session_attrs=read-write')
  const first = ask(opened)
  await expect.poll(() => held.length).toBe(1)
  // The first session is busy, so the pool opens another one, and finds the host demoted.
  const second = ask(opened)
  await (held[0] as FakeSession).until('sync')
  await expect(second).resolves.toMatchObject([{ rows: [[Buffer.from('next')]] }])
  ;(held[0] as FakeSession).send(...firstAnswer('former'), READY)
  await expect(first).resolves.toMatchObject([{ rows: [[Buffer.from('former')]] }])
  await (held[0] as FakeSession).gone
  expect(opened.events.filter(({ kind }) => kind === 'host-changed')).toEqual([
    { kind: 'host-changed', from: `127.0.0.1:${former.port}`, to: `127.0.0.1:${next.port}` },
  ])
})

const REFUSED = error('25006', 'cannot execute INSERT in a read-only transaction')

test('a session with a standby is replaced after a refused change, at most once per second', async () => {
  let now = 0
  const server = await scripted('standby', [REFUSED, READY], [REFUSED, READY])
  const opened = open([server.port], '', () => now)
  await opened.pool.ready()
  now = 1_000
  await expect(ask(opened)).rejects.toMatchObject({ sqlstate: '25006' })
  expect(opened.pool.stats().open).toBe(1)
  now = 1_001
  await expect(ask(opened)).rejects.toMatchObject({ sqlstate: '25006' })
  expect(opened.pool.stats().open).toBe(0)
  await expect(ask(opened)).rejects.toMatchObject({ sqlstate: '25006' })
  expect(server.count).toBe(2)
})

test('a change refused in a read-only transaction of a primary keeps its session', async () => {
  let now = 0
  const server = await scripted('primary', [REFUSED, READY], [REFUSED, READY])
  const opened = open([server.port], '', () => now)
  await opened.pool.ready()
  now = 60_000
  await expect(ask(opened)).rejects.toMatchObject({ sqlstate: '25006' })
  await expect(ask(opened)).rejects.toMatchObject({ sqlstate: '25006' })
  expect(server.count).toBe(1)
})

test('a commit that was not replicated because its wait was cancelled is not confirmed', async () => {
  const warning: BackendMessage = {
    kind: 'notice',
    fields: new Map([
      ['S', 'WARNING'],
      ['V', 'WARNING'],
      ['C', '01000'],
      ['M', 'canceling wait for synchronous replication due to user request'],
      ['R', 'SyncRepWaitForLSN'],
    ]),
  }
  const server = await scripted('primary', [...firstAnswer('1'), warning, READY])
  await expect(ask(open([server.port], ''))).rejects.toMatchObject({ name: 'UnavailableError', sent: true })
})
