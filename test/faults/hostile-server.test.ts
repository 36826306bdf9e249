/**
 * A server that means no good, or is none: it falls silent, hangs up, trickles, declares gigabytes, swaps mechanisms and
 * replays what it once recorded. Every attempt ends, within its time and with little memory, by an error that names the step.
 */
import { randomBytes } from 'node:crypto'
import { createServer as createTlsServer } from 'node:tls'
import { afterEach, expect, test } from 'vitest'
import { scramProofs } from '../../src/postgres/auth/scram.ts'
import { ConnectError } from '../../src/postgres/errors.ts'
import type { Authentication, BackendMessage } from '../../src/postgres/protocol/backend.ts'
import { connect } from '../../src/postgres/startup.ts'
import { parseUrl } from '../../src/postgres/url.ts'
import { createAuthority, createCertificate } from '../support/certificates.ts'
import {
  AUTHENTICATION_OK,
  type FakePostgres,
  type FakeSession,
  fakePostgres,
  READY,
} from '../support/fake-postgres.ts'

const servers: FakePostgres[] = []

afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

async function failure(script: (session: FakeSession) => Promise<void>, parameters: string): Promise<ConnectError> {
  const server = await fakePostgres(script)
  servers.push(server)
  const target = parseUrl(`${server.url}?${parameters}`)
  const outcome = await connect({ target, throughPooler: false }).catch(reason => reason)
  if (outcome instanceof ConnectError) return outcome
  outcome.wire?.destroy(new Error('not wanted'))
  throw new Error(`expected a ConnectError, got ${outcome}`)
}

function ask(authentication: Authentication): BackendMessage {
  return { kind: 'authentication', authentication }
}

const OFFER = ask({ method: 'sasl', mechanisms: ['SCRAM-SHA-256'] })
const SALT = 'W22ZaJ0SNY7soEsUEjb6gQ=='

interface Conversation {
  readonly clientFirst: string
  readonly nonce: string
}

async function readClientFirst(session: FakeSession): Promise<Conversation> {
  const answer = await session.next()
  const clientFirst = answer.kind === 'answer' ? (/n=,r=.*$/.exec(answer.body.toString())?.[0] ?? '') : ''
  return { clientFirst, nonce: clientFirst.slice('n=,r='.length) }
}

const MD5 = ask({ method: 'md5', salt: Buffer.alloc(4) })
const CLEARTEXT = ask({ method: 'cleartext' })

/** What a server does, turn by turn, and what the client is doing when it stops after so many of them. */
const TURNS: readonly { readonly step: string; play(session: FakeSession): Promise<void> }[] = [
  { step: 'requesting TLS', play: async () => {} },
  {
    step: 'starting the session',
    async play(session) {
      await session.next()
      session.raw(Buffer.from('N'))
      await session.next()
    },
  },
  {
    step: 'authenticating with SCRAM-SHA-256: waiting for its challenge',
    play: async session => session.send(OFFER),
  },
  {
    step: 'authenticating with SCRAM-SHA-256: waiting for its proof',
    async play(session) {
      const { clientFirst, nonce } = await readClientFirst(session)
      const serverFirst = `r=${nonce}more,s=${SALT},i=4096`
      said.set(session, { clientFirst, serverFirst, withoutProof: `c=biws,r=${nonce}more` })
      session.send(ask({ method: 'saslContinue', data: Buffer.from(serverFirst) }))
    },
  },
  {
    step: 'authenticating with SCRAM-SHA-256: waiting for AuthenticationOk',
    async play(session) {
      await session.next()
      const { clientFirst, serverFirst, withoutProof } = said.get(session) ?? nothing
      const message = `${clientFirst},${serverFirst},${withoutProof}`
      const { serverSignature } = await scramProofs('secret', Buffer.from(SALT, 'base64'), 4096, message)
      session.send(ask({ method: 'saslFinal', data: Buffer.from(`v=${serverSignature.toString('base64')}`) }))
    },
  },
  {
    step: 'waiting for the session',
    play: async session => session.send(AUTHENTICATION_OK),
  },
]

const nothing = { clientFirst: '', serverFirst: '', withoutProof: '' }
const said = new WeakMap<FakeSession, typeof nothing>()

function playUpTo(turn: number, then: (session: FakeSession) => void) {
  return async (session: FakeSession): Promise<void> => {
    for (const { play } of TURNS.slice(0, turn + 1)) await play(session)
    then(session)
    await session.gone
  }
}

const cases = TURNS.map(({ step }, turn) => [step, turn] as const)

test('silence at any step costs connect_timeout and not more', async () => {
  const errors = await Promise.all(
    cases.map(([, turn]) =>
      failure(
        playUpTo(turn, () => {}),
        'sslmode=prefer&connect_timeout=3',
      ),
    ),
  )
  for (const [index, error] of errors.entries()) {
    expect(error.message).toMatch(
      new RegExp(`^no session with somebody@127.0.0.1:\\d+/anything within 3000 ms \\(while ${TURNS[index]?.step}\\)$`),
    )
    expect(error.permanent).toBe(false)
  }
})

test.each(cases)('hanging up while %s', async (step, turn) => {
  const { message, permanent } = await failure(
    // Behind what it has said last, or the client sees only the end.
    playUpTo(turn, session => session.socket.end()),
    'sslmode=prefer',
  )
  expect(message).toContain(turn === 0 ? 'closed the connection when asked for TLS' : `(while ${step})`)
  expect(permanent).toBe(false)
})

test.each(cases.slice(1))('a length of 1 GB while %s is refused unread', async (_step, turn) => {
  const before = process.memoryUsage().rss
  for (const type of ['R', 'E', 'S', 'N', 'D']) {
    const { message } = await failure(
      playUpTo(turn, session => session.raw(Buffer.concat([Buffer.from(type), Buffer.from('3fffffff', 'hex')]))),
      'sslmode=prefer',
    )
    expect(message).toContain('1073741819 bytes before the session began; at most 32768')
  }
  expect(process.memoryUsage().rss - before).toBeLessThan(256 * 1024 * 1024)
})

test('a byte now and then, or notices without end, do not keep an attempt alive', async () => {
  const notice: BackendMessage = { kind: 'notice', fields: new Map([['M', 'x'.repeat(30_000)]]) }
  const drip = (session: FakeSession, send: () => void): void => {
    const timer = setInterval(send, 20)
    void session.gone.then(() => clearInterval(timer))
  }
  const [bytes, notices] = await Promise.all([
    failure(
      playUpTo(1, session => {
        // The beginning of a message that never ends.
        session.raw(Buffer.from('4500001000', 'hex'))
        drip(session, () => session.raw(Buffer.from('M')))
      }),
      'sslmode=prefer&connect_timeout=3',
    ),
    failure(
      playUpTo(1, session => drip(session, () => session.send(notice))),
      'sslmode=prefer&connect_timeout=3',
    ),
  ])
  expect(bytes.message).toContain('within 3000 ms (while starting the session)')
  expect(notices.message).toContain('within 3000 ms (while starting the session)')
})

test.each<[string, BackendMessage]>([
  ['md5', MD5],
  ['the bare password', CLEARTEXT],
  ['SCRAM from the beginning', OFFER],
  ['GSSAPI', ask({ method: 'gss' })],
  ['the end of SCRAM', ask({ method: 'saslFinal', data: Buffer.from('v=AAAA') })],
])('a server that began SCRAM and then asks for %s gets nothing', async (_what, swapped) => {
  const received: Buffer[] = []
  const { message } = await failure(
    playUpTo(2, async session => {
      await session.next()
      session.socket.on('data', chunk => received.push(chunk))
      session.send(swapped)
    }),
    'sslmode=prefer&auth_mode=compat&auth_cleartext=true',
  )
  expect(message).toMatch(/^the server sent "\w+" out of turn during SCRAM-SHA-256$/)
  expect(Buffer.concat(received).length).toBe(0)
})

/** What the server may say at no step, or at one only: played at all of them. */
const WRONG: Readonly<Record<string, (session: FakeSession) => void>> = {
  'an offer': session => session.send(OFFER),
  'an empty offer': session => session.send(ask({ method: 'sasl', mechanisms: [] })),
  'an offer of something else': session => session.send(ask({ method: 'sasl', mechanisms: ['OAUTHBEARER'] })),
  'an offer of binding': session => session.send(ask({ method: 'sasl', mechanisms: ['SCRAM-SHA-256-PLUS'] })),
  'a challenge': session => session.send(ask({ method: 'saslContinue', data: Buffer.from(`r=abc,s=${SALT},i=4096`) })),
  'an empty challenge': session => session.send(ask({ method: 'saslContinue', data: Buffer.alloc(0) })),
  'a proof': session => session.send(ask({ method: 'saslFinal', data: Buffer.from('v=AAAA') })),
  'a question for the bare password': session => session.send(CLEARTEXT),
  'a question for md5': session => session.send(MD5),
  'a question for a ticket': session => session.send(ask({ method: 'gss' })),
  'a token': session => session.send(ask({ method: 'gssContinue', data: Buffer.from('token') })),
  'a question for SSPI': session => session.send(ask({ method: 'sspi' })),
  'a question of 1998': session => session.send(ask({ method: 'kerberos' })),
  'a question that nobody knows': session => session.raw(Buffer.from('520000000800000063', 'hex')),
  'a question cut short': session => session.raw(Buffer.from('52000000060000', 'hex')),
  'a message that nobody knows': session => session.raw(Buffer.from('2100000004', 'hex')),
  'a length that cannot be': session => session.raw(Buffer.from('5200000003', 'hex')),
  'another version of the protocol': session =>
    session.send({ kind: 'negotiateProtocolVersion', minor: 2, unknown: [] }),
  'a row': session => session.send({ kind: 'dataRow', columns: [null] }),
  'a request for data': session => session.send({ kind: 'copyIn', format: 0, columnFormats: [] }),
  'a notification': session => session.send({ kind: 'notification', processId: 1, channel: 'c', payload: '' }),
  'the end of a statement': session => session.send({ kind: 'commandComplete', tag: 'SELECT 1' }),
}

/** The next thing that is right, which is no failure. */
const RIGHT = new Map([[1, 'an offer']])

test.each(cases.slice(1))('nothing that is wrong while %s makes a session', async (_step, turn) => {
  for (const [what, say] of Object.entries(WRONG)) {
    if (RIGHT.get(turn) === what) continue
    const received: Buffer[] = []
    const { message } = await failure(
      playUpTo(turn, async session => {
        session.socket.on('data', chunk => received.push(chunk))
        say(session)
        session.send(AUTHENTICATION_OK, READY)
      }),
      'sslmode=prefer',
    )
    expect(message, what).not.toBe('')
    const sent = Buffer.concat(received).toString('latin1')
    // Before the proof is due nothing made from the password has left, and the password itself never does.
    expect(sent, what).not.toContain('secret')
    if (turn < 3) expect(sent, what).not.toContain('p=')
  }
})

test('letting in at any step of SCRAM but the last is not believed', async () => {
  for (const turn of [2, 3]) {
    const { message, permanent } = await failure(
      playUpTo(turn, async session => {
        await session.next()
        session.send(AUTHENTICATION_OK, READY)
      }),
      'sslmode=prefer',
    )
    expect(message).toBe('the server accepted the login before completing SCRAM-SHA-256; it may be an impostor')
    expect(permanent).toBe(true)
  }
})

test.each<[string, BackendMessage, string]>([
  ['trust', AUTHENTICATION_OK, 'the server accepted the login without any proof'],
  ['md5', MD5, 'the server offers md5'],
  ['the bare password', CLEARTEXT, 'the server offers the cleartext password (password)'],
  ['GSSAPI', ask({ method: 'gss' }), 'the server offers GSSAPI'],
  ['SCRAM without TLS', OFFER, 'this connection has no TLS; use sslmode=require'],
])('channel_binding=require is not content with %s', async (_what, message, reason) => {
  const received: Buffer[] = []
  const refused = await failure(
    playUpTo(1, session => {
      session.socket.on('data', chunk => received.push(chunk))
      session.send(message, READY)
    }),
    'sslmode=prefer&auth_mode=compat&auth_cleartext=true&channel_binding=require',
  )
  expect(refused.message).toContain(`channel_binding=require requires SCRAM-SHA-256-PLUS, but ${reason}`)
  expect(refused.permanent).toBe(true)
  expect(Buffer.concat(received).length).toBe(0)
})

test('a recorded conversation is of no use', async () => {
  const recorded = randomBytes(18).toString('base64')
  const { message } = await failure(
    playUpTo(2, async session => {
      await session.next()
      session.send(ask({ method: 'saslContinue', data: Buffer.from(`r=${recorded}more,s=${SALT},i=4096`) }))
    }),
    'sslmode=prefer',
  )
  expect(message).toContain('it did not extend the nonce that was sent; an old conversation may be being replayed')
})

test('no two attempts send the same nonce', async () => {
  const nonces: string[] = []
  for (let attempt = 0; attempt < 5; attempt++) {
    await failure(
      playUpTo(2, async session => {
        nonces.push((await readClientFirst(session)).nonce)
        session.socket.end()
      }),
      'sslmode=prefer',
    )
  }
  expect(new Set(nonces).size).toBe(5)
  expect(nonces.every(nonce => nonce.length === 24)).toBe(true)
})

test('a server that speaks no TLS of today, or none behind its S', async () => {
  const { key, certificate } = createCertificate(createAuthority('authority'), 'server', ['localhost'])
  // Node speaks it still, if it is asked to.
  const old = createTlsServer({
    ...{ key, cert: certificate, minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' },
  })
  old.on('tlsClientError', () => {})
  const handshakes: [string, (session: FakeSession) => void][] = [
    ['TLS 1.1', session => old.emit('connection', session.socket.removeAllListeners('data'))],
    ['garbage', session => session.socket.once('data', () => session.raw(randomBytes(4096)))],
    ['the plain protocol', session => session.socket.once('data', () => session.send(AUTHENTICATION_OK, READY))],
    ['nothing more', session => session.socket.once('data', () => session.socket.end())],
  ]
  for (const [what, shake] of handshakes) {
    const { message } = await failure(async session => {
      await session.next()
      session.socket.removeAllListeners('data')
      shake(session)
      session.raw(Buffer.from('S'))
      await session.gone
    }, 'sslmode=require')
    expect(message, what).toContain('TLS with the server failed (sslmode=require)')
  }
})

test('plain bytes behind the S are an attack, whenever they are sent', async () => {
  for (const injected of [Buffer.from('x'), Buffer.alloc(5_000, 'R')]) {
    const { message } = await failure(async session => {
      await session.next()
      session.raw(Buffer.concat([Buffer.from('S'), injected]))
      await session.gone
    }, 'sslmode=require')
    expect(message).toContain('unencrypted bytes after its response to the TLS request')
  }
})

test('what a stranger says is cut before anybody has to read it', async () => {
  const { message } = await failure(async session => {
    await session.next()
    session.raw(Buffer.from('N'))
    await session.next()
    const fields = new Map(Object.entries({ S: 'FATAL', C: '28000', M: 'no '.repeat(9_000) }))
    session.send({ kind: 'error', fields })
    await session.gone
  }, 'sslmode=prefer')
  expect(message.length).toBeLessThan(1_500)
})
