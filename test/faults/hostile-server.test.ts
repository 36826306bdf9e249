/**
 * Malicious servers: they stop responding, disconnect, send single bytes, announce gigabytes, switch
 * mechanisms and replay recorded messages. Every attempt fails within its time limit, with little memory, and
 * names the step.
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

/** The server's messages step by step, and the client's state when the server stops after that many steps. */
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

test('a server that is silent at any step costs at most connect_timeout', async () => {
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

test.each(cases)('a server that disconnects while %s causes an error', async (step, turn) => {
  const { message, permanent } = await failure(
    // Sent after its last message, or the client would only see the end of the connection.
    playUpTo(turn, session => session.socket.end()),
    'sslmode=prefer',
  )
  expect(message).toContain(turn === 0 ? 'closed the connection when asked for TLS' : `(while ${step})`)
  expect(permanent).toBe(false)
})

test.each(cases.slice(1))('a length of 1 GB while %s is rejected unread', async (_step, turn) => {
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

test('single bytes at intervals, or endless notices, do not keep an attempt alive', async () => {
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
  ['the cleartext password', CLEARTEXT],
  ['SCRAM from the start', OFFER],
  ['GSSAPI', ask({ method: 'gss' })],
  ['the end of SCRAM', ask({ method: 'saslFinal', data: Buffer.from('v=AAAA') })],
])('a server that began SCRAM and then asks for %s receives nothing', async (_what, swapped) => {
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

/** Messages that are valid at no step, or at one step only. They are sent at every step. */
const WRONG: Readonly<Record<string, (session: FakeSession) => void>> = {
  'an offer': session => session.send(OFFER),
  'an empty list of mechanisms': session => session.send(ask({ method: 'sasl', mechanisms: [] })),
  'an unsupported mechanism': session => session.send(ask({ method: 'sasl', mechanisms: ['OAUTHBEARER'] })),
  'channel binding without TLS': session => session.send(ask({ method: 'sasl', mechanisms: ['SCRAM-SHA-256-PLUS'] })),
  'a challenge': session => session.send(ask({ method: 'saslContinue', data: Buffer.from(`r=abc,s=${SALT},i=4096`) })),
  'an empty challenge': session => session.send(ask({ method: 'saslContinue', data: Buffer.alloc(0) })),
  'a proof': session => session.send(ask({ method: 'saslFinal', data: Buffer.from('v=AAAA') })),
  'a request for the cleartext password': session => session.send(CLEARTEXT),
  'a request for md5': session => session.send(MD5),
  'a request for GSSAPI': session => session.send(ask({ method: 'gss' })),
  'a token': session => session.send(ask({ method: 'gssContinue', data: Buffer.from('token') })),
  'a request for SSPI': session => session.send(ask({ method: 'sspi' })),
  'a request for Kerberos V5 of 1998': session => session.send(ask({ method: 'kerberos' })),
  'an unknown authentication request': session => session.raw(Buffer.from('520000000800000063', 'hex')),
  'a truncated authentication request': session => session.raw(Buffer.from('52000000060000', 'hex')),
  'a message of an unknown type': session => session.raw(Buffer.from('2100000004', 'hex')),
  'an impossible length': session => session.raw(Buffer.from('5200000003', 'hex')),
  'another version of the protocol': session =>
    session.send({ kind: 'negotiateProtocolVersion', minor: 2, unknown: [] }),
  'a row': session => session.send({ kind: 'dataRow', columns: [null] }),
  'a request for data': session => session.send({ kind: 'copyIn', format: 0, columnFormats: [] }),
  'a notification': session => session.send({ kind: 'notification', processId: 1, channel: 'c', payload: '' }),
  'the end of a statement': session => session.send({ kind: 'commandComplete', tag: 'SELECT 1' }),
}

/** The next valid message, which must not fail. */
const RIGHT = new Map([[1, 'an offer']])

test.each(cases.slice(1))('no invalid message while %s opens a session', async (_step, turn) => {
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
    // Nothing derived from the password is sent before the proof is due, and the password itself is never
    // sent.
    expect(sent, what).not.toContain('secret')
    if (turn < 3) expect(sent, what).not.toContain('p=')
  }
})

test('AuthenticationOk before the last step of SCRAM is rejected', async () => {
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
  ['a cleartext password', CLEARTEXT, 'the server offers the cleartext password (password)'],
  ['GSSAPI', ask({ method: 'gss' }), 'the server offers GSSAPI'],
  ['SCRAM without TLS', OFFER, 'this connection has no TLS; use sslmode=require'],
])('channel_binding=require rejects %s', async (_what, message, reason) => {
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

test('a replayed conversation is rejected', async () => {
  const recorded = randomBytes(18).toString('base64')
  const { message } = await failure(
    playUpTo(2, async session => {
      await session.next()
      session.send(ask({ method: 'saslContinue', data: Buffer.from(`r=${recorded}more,s=${SALT},i=4096`) }))
    }),
    'sslmode=prefer',
  )
  expect(message).toContain(
    'it did not extend the nonce that was sent; this may be a replay of an earlier conversation',
  )
})

test('each attempt sends a different nonce', async () => {
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

test('a server with outdated TLS, or no TLS after accepting it, is rejected', async () => {
  const { key, certificate } = createCertificate(createAuthority('authority'), 'server', ['localhost'])
  // Node still supports it if asked to.
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

test('unencrypted bytes after the response to the TLS request are rejected, whenever they arrive', async () => {
  for (const injected of [Buffer.from('x'), Buffer.alloc(5_000, 'R')]) {
    const { message } = await failure(async session => {
      await session.next()
      session.raw(Buffer.concat([Buffer.from('S'), injected]))
      await session.gone
    }, 'sslmode=require')
    expect(message).toContain('unencrypted bytes after its response to the TLS request')
  }
})

test('long messages of an unauthenticated server are shortened in errors', async () => {
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
