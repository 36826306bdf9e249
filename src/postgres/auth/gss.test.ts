/**
 * GSSAPI and SSPI against scripted servers and a scripted provider: the message flow, and what is rejected.
 */
import { afterEach, expect, test } from 'vitest'
import {
  AUTHENTICATION_OK,
  error,
  type FakePostgres,
  type FakeSession,
  fakePostgres,
  READY,
} from '../../../test/support/fake-postgres.ts'
import { ConnectError } from '../errors.ts'
import type { Authentication, BackendMessage } from '../protocol/backend.ts'
import { connect } from '../startup.ts'
import { parseUrl } from '../url.ts'
import { type GssConversation, GssError, type GssMethod, type GssRequest } from './gss.ts'
import { CircuitBreaker, type CircuitTransition, GssAttempts } from './gss-attempts.ts'

const servers: FakePostgres[] = []

afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

interface Bench {
  readonly script: (session: FakeSession) => Promise<void>
  readonly converse?: (request: GssRequest) => GssConversation
  readonly parameters?: string
}

/** A client whose pauses end at once and are recorded. */
async function bench({ script, converse = () => mutual, parameters = 'auth_mode=gssapi_only' }: Bench) {
  const server = await fakePostgres(script)
  servers.push(server)
  const target = parseUrl(`${server.url}?sslmode=disable&gss_provider=callback&${parameters}`)
  if (target.gss === null) throw new Error('the target allows no Kerberos')
  const pauses: number[] = []
  const transitions: CircuitTransition[] = []
  const clock = { now: 0 }
  const attempts = new GssAttempts({
    circuit: new CircuitBreaker(),
    settings: target.gss,
    onTransition: transition => transitions.push(transition),
    clock: () => clock.now,
    // The middle of the random range: pauses are exactly those of the settings.
    random: () => 0.5,
    pause: async (ms, signal) => {
      signal.throwIfAborted()
      pauses.push(ms)
      clock.now += ms
    },
  })
  const gss = { provider: { start: converse }, attempts }
  const run = async (signal?: AbortSignal): Promise<ConnectError | 'a session'> => {
    try {
      const { wire } = await connect({ target, throughPooler: false, gss, ...(signal === undefined ? {} : { signal }) })
      wire.destroy(new Error('done'))
      return 'a session'
    } catch (reason) {
      if (reason instanceof ConnectError) return reason
      throw reason
    }
  }
  return { run, pauses, transitions, clock, attempts, server }
}

/** A provider that authenticates the server with one token in each direction. */
const mutual: GssConversation = async token =>
  token === null ? { token: Buffer.from('hello'), done: false } : { token: null, done: String(token) === 'welcome' }

function ask(authentication: Authentication): BackendMessage {
  return { kind: 'authentication', authentication }
}

function goOn(text: string): BackendMessage {
  return ask({ method: 'gssContinue', data: Buffer.from(text) })
}

/** A server that requests this method, receives `hello` and sends `welcome`. */
function welcoming(method: GssMethod) {
  return async (session: FakeSession): Promise<void> => {
    await session.next()
    session.send(ask({ method }))
    const answer = await session.next()
    if (answer.kind !== 'answer' || String(answer.body) !== 'hello') throw new Error('expected hello')
    session.send(goOn('welcome'), AUTHENTICATION_OK, READY)
  }
}

test.each<[GssMethod, string]>([
  ['gss', 'auth_mode=gssapi_only'],
  ['sspi', 'auth_mode=gssapi_only'],
  ['kerberos', 'auth_kerberos=true'],
  ['gss', 'auth_gssapi=true'],
])('%s with %s', async (method, parameters) => {
  const requests: GssRequest[] = []
  const { run } = await bench({
    script: welcoming(method),
    parameters,
    converse: request => {
      requests.push(request)
      return mutual
    },
  })
  expect(await run()).toBe('a session')
  expect(requests).toMatchObject([{ target: 'postgres@127.0.0.1', method }])
})

test('the last token can be the client’s, and a conversation can be long', async () => {
  const heard: string[] = []
  const { run } = await bench({
    converse: () => async token => ({ token: Buffer.from(`after ${token}`), done: String(token) === '3' }),
    script: async session => {
      await session.next()
      session.send(ask({ method: 'gss' }))
      for (const text of ['1', '2', '3', null]) {
        const answer = await session.next()
        if (answer.kind === 'answer') heard.push(String(answer.body))
        if (text !== null) session.send(goOn(text))
      }
      session.send(AUTHENTICATION_OK, READY)
    },
  })
  expect(await run()).toBe('a session')
  expect(heard).toEqual(['after null', 'after 1', 'after 2', 'after 3'])
})

test('AuthenticationOk before the server has authenticated is rejected', async () => {
  const { run } = await bench({
    parameters: 'auth_mode=gssapi_only&gss_connect_retries=0',
    script: async session => {
      await session.next()
      session.send(ask({ method: 'gss' }))
      await session.next()
      session.send(AUTHENTICATION_OK, READY)
      await session.gone
    },
  })
  expect(await run()).toMatchObject({
    message: 'the server accepted the login before completing GSSAPI; it may be an impostor',
    permanent: true,
  })
})

test.each<[string, BackendMessage[], string]>([
  ['another question', [ask({ method: 'sspi' })], 'the server sent "sspi" out of turn during GSSAPI'],
  ['the same question', [ask({ method: 'gss' })], 'the server sent "gss" out of turn during GSSAPI'],
  ['the bare password', [ask({ method: 'cleartext' })], 'the server sent "cleartext" out of turn during GSSAPI'],
  [
    'a token after the end',
    [goOn('welcome'), goOn('welcome')],
    'the server sent "gssContinue" out of turn during GSSAPI',
  ],
])('%s in the middle ends the attempt', async (_what, messages, message) => {
  const { run } = await bench({
    parameters: 'auth_mode=gssapi_only&gss_connect_retries=0',
    script: async session => {
      await session.next()
      session.send(ask({ method: 'gss' }))
      await session.next()
      session.send(...messages)
      await session.gone
    },
  })
  expect(String(await run())).toContain(message)
})

test('data that arrives while a token is being created is not read', async () => {
  let written = 0
  const { run } = await bench({
    parameters: 'auth_mode=gssapi_only&gss_connect_retries=0&connect_timeout=3',
    converse: () => () => new Promise(() => {}),
    script: async session => {
      await session.next()
      session.send(ask({ method: 'gss' }))
      const length = Buffer.alloc(4)
      length.writeInt32BE(30_000 + 7)
      const chunk = Buffer.concat([Buffer.from('S'), length, Buffer.from(`p\0${'x'.repeat(30_000)}\0`)])
      const pour = (): void => {
        while (!session.socket.destroyed && session.socket.write(chunk)) written += chunk.length
      }
      session.socket.on('drain', pour)
      pour()
      await session.gone
    },
  })
  expect(String(await run())).toContain('within 3000 ms')
  expect(written).toBeLessThan(64 * 1024 * 1024)
})

test('a server that requests tokens endlessly is disconnected', async () => {
  let steps = 0
  const { run } = await bench({
    parameters: 'auth_mode=gssapi_only&gss_connect_retries=0',
    converse: () => async () => ({ token: Buffer.from(`${++steps}`), done: false }),
    script: async session => {
      await session.next()
      session.send(ask({ method: 'gss' }))
      for (;;) {
        await session.next()
        session.send(goOn('more'))
      }
    },
  })
  expect(String(await run())).toContain('out of turn during GSSAPI')
  expect(steps).toBe(16)
})

test.each<[string, () => Promise<{ token: Buffer | null; done: boolean }>, string]>([
  ['fails', () => Promise.reject(new GssError('no such principal', false)), 'no such principal'],
  ['breaks', () => Promise.reject(new TypeError('x is not a function')), 'x is not a function'],
  [
    'says nothing',
    async () => ({ token: null, done: false }),
    'the provider returned neither a token for the server nor done: true',
  ],
  ['says too much', async () => ({ token: Buffer.alloc(65_536), done: false }), 'the token has 65536 bytes'],
])('a provider that %s is an error with step and target, without a retry', async (_what, step, message) => {
  const { run, pauses } = await bench({ script: welcoming('gss'), converse: () => step })
  const refused = await run()
  expect(refused).toMatchObject({ permanent: true })
  expect(String(refused)).toContain(`GSSAPI authentication for postgres@127.0.0.1 failed at step 1: ${message}`)
  expect(pauses).toEqual([])
})

test('a provider that never responds ends the attempt at connect_timeout and is aborted', async () => {
  const signals: AbortSignal[] = []
  const { run } = await bench({
    script: welcoming('gss'),
    parameters: 'auth_mode=gssapi_only&gss_connect_retries=0&connect_timeout=3',
    converse: ({ signal }) => {
      signals.push(signal)
      return () => new Promise(() => {})
    },
  })
  expect(String(await run())).toMatch(
    /within 3000 ms \(while authenticating with GSSAPI: waiting for a token for postgres@127\.0\.0\.1 \(step 1\)\)/,
  )
  expect(signals.map(({ aborted }) => aborted)).toEqual([true])
})

test('a method that the policy forbids is rejected by name before anything is sent', async () => {
  const { run } = await bench({
    script: async session => {
      await session.next()
      session.send(ask({ method: 'sasl', mechanisms: ['SCRAM-SHA-256'] }))
      await session.gone
    },
  })
  expect(String(await run())).toContain('the server offers SCRAM-SHA-256; the policy allows GSSAPI, SSPI.')
})

/** Fails this many times, then sends `welcome`. */
function failing(times: number, sqlstate = '57P03') {
  let left = times
  return async (session: FakeSession): Promise<void> => {
    if (left-- <= 0) return welcoming('gss')(session)
    await session.next()
    session.send(error(sqlstate, 'not now', { S: 'FATAL', V: 'FATAL' }))
    session.socket.end()
  }
}

test('transient failures are retried with doubling pauses', async () => {
  const { run, pauses, server } = await bench({
    script: failing(4),
    parameters: 'auth_mode=gssapi_only&gss_connect_retries=4&gss_retry_base_ms=100',
  })
  expect(await run()).toBe('a session')
  expect(pauses).toEqual([100, 200, 400, 800])
  expect(server.count).toBe(5)
})

test('the default is two retries, starting at 150 ms', async () => {
  const { run, pauses, server } = await bench({ script: failing(9) })
  expect(await run()).toMatchObject({ permanent: false })
  expect(pauses).toEqual([150, 300])
  expect(server.count).toBe(3)
})

test('a permanent failure is not retried', async () => {
  const { run, pauses, server } = await bench({ script: failing(9, '28000') })
  expect(await run()).toMatchObject({ permanent: true })
  expect(pauses).toEqual([])
  expect(server.count).toBe(1)
})

test('a KDC that does not respond is retried', async () => {
  let asked = 0
  const { run, pauses } = await bench({
    script: welcoming('gss'),
    converse: () => async token => {
      if (token === null && ++asked <= 2) throw new GssError('Cannot contact any KDC', true)
      return mutual(token)
    },
  })
  expect(await run()).toBe('a session')
  expect(pauses).toEqual([150, 300])
})

test('a shutdown ends the pauses', async () => {
  const shutdown = new AbortController()
  const { run, server } = await bench({
    script: async session => {
      shutdown.abort(new Error('closing'))
      await failing(1)(session)
    },
    parameters: 'auth_mode=gssapi_only&gss_circuit_threshold=1',
  })
  expect(await run(shutdown.signal)).toBeInstanceOf(ConnectError)
  expect(server.count).toBe(1)
})

const ONE_TRY = 'auth_mode=gssapi_only&gss_connect_retries=0&gss_circuit_threshold=2&gss_circuit_cooldown_ms=1000'

test('the circuit breaker opens, blocks without a connection, allows one attempt, and closes', async () => {
  const { run, transitions, clock, server, attempts } = await bench({ script: failing(2), parameters: ONE_TRY })
  await run()
  await run()
  expect(attempts.state).toBe('open')
  clock.now = 999
  const blocked = await run()
  expect(blocked).toMatchObject({ permanent: false })
  expect(String(blocked)).toMatch(
    /to postgres@127\.0\.0\.1 are blocked for another 1 ms, after 2 failures within 30000 ms .*; the last: .*not now/,
  )
  expect(server.count).toBe(2)
  clock.now = 1_000
  expect(await run()).toBe('a session')
  expect(transitions.map(({ from, to }) => `${from} → ${to}`)).toEqual([
    'closed → open',
    'open → half-open',
    'half-open → closed',
  ])
  expect(String(transitions[0]?.error)).toContain('not now')
})

test('while the circuit breaker’s trial attempt runs, others are blocked', async () => {
  const { run, clock, server } = await bench({ script: failing(2), parameters: ONE_TRY })
  await run()
  await run()
  clock.now = 1_000
  const [one, other] = await Promise.all([run(), run()])
  expect(one).toBe('a session')
  expect(String(other)).toContain('are blocked until the attempt in progress has ended')
  expect(server.count).toBe(3)
})

test('a failed trial attempt opens the circuit breaker again', async () => {
  const { run, clock, attempts } = await bench({ script: failing(3), parameters: ONE_TRY })
  await run()
  await run()
  clock.now = 1_000
  await run()
  expect(attempts.state).toBe('open')
  clock.now = 1_999
  expect(String(await run())).toContain('blocked for another 1 ms')
  clock.now = 2_000
  expect(await run()).toBe('a session')
})

test('if passwords are allowed too, failures count only if the server requested Kerberos', async () => {
  const { run, attempts, pauses } = await bench({
    script: failing(3),
    parameters: 'auth_gssapi=true&gss_circuit_threshold=1',
  })
  await run()
  await run()
  expect([attempts.state, pauses]).toEqual(['closed', []])

  const asked = await bench({
    script: welcoming('gss'),
    parameters: 'auth_gssapi=true&gss_circuit_threshold=1',
    converse: () => () => Promise.reject(new GssError('no ticket', false)),
  })
  await asked.run()
  expect(asked.attempts.state).toBe('open')
})

test('a target that allows Kerberos without a provider is rejected', async () => {
  const target = parseUrl('postgres://a@127.0.0.1:1/b?auth_gssapi=true')
  await expect(connect({ target, throughPooler: false })).rejects.toThrow(
    'no provider of Kerberos tokens is configured',
  )
})
