/** Startup against scripted servers: the messages sent, and which responses are trusted. */
import { afterEach, expect, test } from 'vitest'
import {
  AUTHENTICATION_OK,
  error,
  type FakePostgres,
  type FakeSession,
  fakePostgres,
  READY,
  UTF8,
} from '../../test/support/fake-postgres.ts'
import { ConnectError } from './errors.ts'
import type { BackendMessage } from './protocol/backend.ts'
import { type Connected, connect } from './startup.ts'
import { parseUrl } from './url.ts'

const servers: FakePostgres[] = []

afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

async function attempt(
  script: (session: FakeSession) => Promise<void>,
  parameters = 'sslmode=disable',
): Promise<Connected> {
  const server = await fakePostgres(script)
  servers.push(server)
  return connect({ target: parseUrl(`${server.url}?${parameters}`), throughPooler: false })
}

/** The failure of an attempt. A session that was opened is closed, and fails the test. */
async function failure(...given: Parameters<typeof attempt>): Promise<ConnectError> {
  const outcome = await attempt(...given).catch(reason => reason)
  if (outcome instanceof ConnectError) return outcome
  outcome.wire?.destroy(new Error('not wanted'))
  throw new Error(`expected a ConnectError, got ${outcome}`)
}

const SASL: BackendMessage = {
  kind: 'authentication',
  authentication: { method: 'sasl', mechanisms: ['SCRAM-SHA-256'] },
}

test('the startup packet sets the output format of values', async () => {
  let packet: unknown
  const { wire, session } = await attempt(async fake => {
    packet = await fake.next()
    fake.send(AUTHENTICATION_OK, UTF8, { kind: 'backendKeyData', processId: 7, secret: Buffer.from('abcd') }, READY)
  }, 'sslmode=disable&application_name=test&options=-c%20work_mem%3D1MB')
  expect(packet).toEqual({
    kind: 'startup',
    version: 196608,
    parameters: [
      ['user', 'somebody'],
      ['database', 'anything'],
      ['application_name', 'test'],
      ['client_encoding', 'UTF8'],
      ['DateStyle', 'ISO'],
      ['options', '-c work_mem=1MB'],
      ['standard_conforming_strings', 'on'],
      ['IntervalStyle', 'postgres'],
      ['extra_float_digits', '1'],
      ['bytea_output', 'hex'],
      ['join_collapse_limit', '8'],
      ['from_collapse_limit', '8'],
      ['geqo', 'on'],
      ['geqo_threshold', '12'],
    ],
  })
  expect(session).toEqual({
    processId: 7,
    secret: Buffer.from('abcd'),
    parameters: new Map([['client_encoding', 'UTF8']]),
  })
  wire.destroy(new Error('done'))
})

/** The names in the startup packet. */
async function parameterNames(options: string, throughPooler: boolean): Promise<string[]> {
  const names: string[] = []
  const server = await fakePostgres(async session => {
    const packet = await session.next()
    if (packet.kind === 'startup') names.push(...packet.parameters.map(([name]) => name))
    session.send(AUTHENTICATION_OK, UTF8, READY)
  })
  servers.push(server)
  const target = parseUrl(`${server.url}?sslmode=disable&options=${encodeURIComponent(options)}`)
  const { wire } = await connect({ target, throughPooler })
  wire.destroy(new Error('done'))
  return names
}

test.each([
  '-c bytea_output=escape -c standard_conforming_strings=off',
  '-cBYTEA_OUTPUT=escape -c Standard-Conforming-Strings=off',
  '--bytea-output=escape --standard-conforming-strings=off',
])('a parameter set by the options is not sent twice: %s', async options => {
  const names = await parameterNames(options, false)
  expect(names).not.toContain('bytea_output')
  // The quoting of SQL relies on it.
  expect(names).toContain('standard_conforming_strings')
})

test('an option that appears in the value of another does not count as set', async () => {
  const names = await parameterNames('-c search_path=bytea_output -c my.standard_conforming_strings=off', false)
  expect(names).toContain('bytea_output')
  expect(names).toContain('standard_conforming_strings')
})

test('the planner’s limits on join orders are PostgreSQL’s defaults, whatever the database sets', async () => {
  const planner = ['join_collapse_limit', 'from_collapse_limit', 'geqo', 'geqo_threshold']
  expect(await parameterNames('', false)).toEqual(expect.arrayContaining(planner))
  expect(await parameterNames('-c join_collapse_limit=12', false)).not.toContain('join_collapse_limit')
})

test('through a pooler only parameters that PgBouncer tracks are sent', async () => {
  expect(await parameterNames('-c work_mem=1MB', true)).toEqual([
    'user',
    'database',
    'application_name',
    'client_encoding',
    'DateStyle',
    'options',
    'standard_conforming_strings',
  ])
})

test('the server must prove its identity before AuthenticationOk is accepted', async () => {
  const refused = await failure(async session => {
    await session.next()
    session.send(SASL)
    await session.next()
    session.send(AUTHENTICATION_OK, READY)
    await session.gone
  })
  expect(refused.message).toContain('the login before completing SCRAM-SHA-256')
})

test('no byte of the password is sent for a method that the policy forbids', async () => {
  const received: Buffer[] = []
  const refused = await failure(async session => {
    await session.next()
    session.socket.on('data', chunk => received.push(chunk))
    session.send({ kind: 'authentication', authentication: { method: 'cleartext' } })
    await session.gone
  })
  expect(refused).toMatchObject({ permanent: true })
  expect(refused.message).toContain(
    'the server offers the cleartext password (password); the policy allows SCRAM-SHA-256',
  )
  expect(Buffer.concat(received).length).toBe(0)
})

test('a server that sends messages out of turn is rejected', async () => {
  const data = (nonce: string) => Buffer.from(`r=${nonce}x,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096`)
  const refused = await failure(async session => {
    await session.next()
    session.send(SASL)
    const answer = await session.next()
    const nonce = answer.kind === 'answer' ? (/r=(.*)$/.exec(answer.body.toString())?.[1] ?? '') : ''
    session.send(
      { kind: 'authentication', authentication: { method: 'saslContinue', data: data(nonce) } },
      AUTHENTICATION_OK,
      READY,
    )
    await session.gone
  })
  expect(refused.message).toContain('out of turn')
})

test.each<[string, BackendMessage[], string]>([
  ['a session before authentication', [READY], 'readyForQuery before authentication was complete'],
  ['rows', [AUTHENTICATION_OK, { kind: 'dataRow', columns: [] }], 'dataRow during start-up'],
  [
    'another protocol',
    [AUTHENTICATION_OK, { kind: 'negotiateProtocolVersion', minor: 9, unknown: [] }],
    'negotiateProtocolVersion during start-up',
  ],
  [
    'another encoding',
    [AUTHENTICATION_OK, { kind: 'parameterStatus', name: 'client_encoding', value: 'LATIN1' }, READY],
    'session uses LATIN1 although UTF8',
  ],
])('%s ends the attempt', async (_what, messages, message) => {
  const refused = await failure(async session => {
    await session.next()
    session.send(...messages)
    await session.gone
  })
  expect(refused.message).toContain(message)
})

test('a server that reports parameters endlessly is disconnected', async () => {
  const refused = await failure(async session => {
    await session.next()
    session.send(AUTHENTICATION_OK)
    for (let index = 0; index <= 256; index++) session.send({ kind: 'parameterStatus', name: `p${index}`, value: '' })
    await session.gone
  })
  expect(refused.message).toContain('reports too many parameters')
})

test('a giant message is rejected before the session begins', async () => {
  const refused = await failure(async session => {
    await session.next()
    session.raw(Buffer.from('450fffffff', 'hex'))
    await session.gone
  })
  expect(refused.message).toContain('268435451 bytes before the session began; at most 32768')
})

test.each([
  ['28P01', true],
  ['3D000', true],
  ['57P03', false],
  ['53300', false],
])('SQLSTATE %s is permanent: %s', async (sqlstate, permanent) => {
  const refused = await failure(async session => {
    await session.next()
    session.send(error(sqlstate, 'the reason', { S: 'FATAL', V: 'FATAL' }))
    session.socket.end()
  })
  expect(refused.permanent).toBe(permanent)
  expect(refused.message).toMatch(/^no session with somebody@127\.0\.0\.1:\d+\/anything: the reason$/)
})

test('an attempt with a silent server ends at connect_timeout', async () => {
  const refused = await failure(async session => {
    await session.gone
  }, 'sslmode=disable&connect_timeout=1')
  expect(refused.message).toContain('within 1000 ms')
})

test('an address without a server is reported as such', async () => {
  const server = await fakePostgres(async () => {})
  await server.close()
  const outcome = connect({ target: parseUrl(server.url), throughPooler: false })
  await expect(outcome).rejects.toThrow(/^cannot connect to somebody@127\.0\.0\.1:\d+\/anything: connect ECONNREFUSED/)
})

test('sslmode=prefer continues without TLS if the server has none; require does not', async () => {
  const script = async (session: FakeSession): Promise<void> => {
    expect(await session.next()).toEqual({ kind: 'sslRequest' })
    session.raw(Buffer.from('N'))
    if ((await session.next()).kind === 'startup') session.send(AUTHENTICATION_OK, READY)
  }
  const { wire } = await attempt(script, 'sslmode=prefer')
  wire.destroy(new Error('done'))
  const refused = await failure(session => script(session).catch(() => {}), 'sslmode=require')
  expect(refused).toMatchObject({ permanent: true })
  expect(refused.message).toContain('the server has no TLS, which sslmode=require requires; set')
})

test('bytes after the response to the TLS request are treated as an attack', async () => {
  for (const answer of ['S', 'N']) {
    const refused = await failure(async session => {
      await session.next()
      session.raw(Buffer.concat([Buffer.from(answer), Buffer.from('injected')]))
      await session.gone
    }, 'sslmode=prefer')
    expect(refused.message).toContain('unencrypted bytes after its response')
  }
})

test('the response of a server other than PostgreSQL is not quoted', async () => {
  const refused = await failure(async session => {
    await session.next()
    session.raw(Buffer.from('E<script>'))
    await session.gone
  }, 'sslmode=prefer')
  expect(refused.message).toBe('the server did not understand the request for TLS; it may not be PostgreSQL')
})

test.each([
  ['read-write', 'on', 'off', 'is a standby'],
  ['read-write', 'off', 'on', 'is a primary whose sessions are read-only'],
  ['primary', 'on', 'off', 'is a standby'],
  ['standby', 'off', 'off', 'is a primary'],
  ['read-only', 'off', 'off', 'is a primary'],
])(
  'target_session_attrs=%s refuses in_hot_standby=%s, default_transaction_read_only=%s',
  async (wanted, standby, readOnly, message) => {
    const refused = await failure(async session => {
      await session.next()
      session.send(
        AUTHENTICATION_OK,
        { kind: 'parameterStatus', name: 'in_hot_standby', value: standby },
        { kind: 'parameterStatus', name: 'default_transaction_read_only', value: readOnly },
        READY,
      )
      await session.gone
    }, `sslmode=disable&target_session_attrs=${wanted}`)
    // A failover can change the server's address.
    expect(refused).toMatchObject({
      permanent: false,
      message: expect.stringMatching(
        new RegExp(`^the server at 127\\.0\\.0\\.1:\\d+ ${message}, but target_session_attrs=${wanted} is required$`),
      ),
    })
  },
)
