/** Authentication and TLS against a real server, by the lines of its pg_hba.conf. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Certificate, createAuthority, createCertificate } from '../../../test/support/certificates.ts'
import { folderFixture } from '../../../test/support/fixtures.ts'
import { execute, privateServer } from '../../../test/support/postgres.ts'
import type { TestServer } from '../../../test/support/server.ts'
import { requestCancel } from '../cancel.ts'
import { createPool } from '../pool.ts'
import { connect } from '../startup.ts'
import { parseUrl } from '../url.ts'

const PASSWORD = 'pässwörd\u00a0with: /?#@%'
let server: TestServer

const folder = folderFixture()
beforeAll(async () => {
  const authority = createAuthority('test authority')
  const elsewhere = createAuthority('another authority')
  // Used for localhost, not for the address: both are names of the same server.
  const certificate = createCertificate(authority, 'server', ['localhost'])
  const files: Record<string, string> = { 'ca.pem': authority.certificate, 'other-ca.pem': elsewhere.certificate }
  const save = (name: string, made: Certificate): void => {
    files[`${name}.crt`] = made.certificate
    files[`${name}.key`] = made.key
  }
  save('client', createCertificate(authority, 'by_certificate'))
  save('stranger', createCertificate(elsewhere, 'by_certificate'))
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content)
  server = await privateServer({
    settings: ['ssl = on', "ssl_cert_file = 'server.crt'", "ssl_key_file = 'server.key'", "ssl_ca_file = 'ca.crt'"],
    hba: [
      'host all by_md5 127.0.0.1/32 md5',
      'host all by_password 127.0.0.1/32 password',
      'host all by_trust 127.0.0.1/32 trust',
      'hostssl all by_certificate 127.0.0.1/32 cert',
      'hostssl all only_tls 127.0.0.1/32 scram-sha-256',
      'host all only_tls 127.0.0.1/32 reject',
      'host all refused 127.0.0.1/32 reject',
    ],
    files: { 'server.crt': certificate.certificate, 'server.key': certificate.key, 'ca.crt': authority.certificate },
  })
  const literal = PASSWORD.replaceAll("'", "''")
  await execute(
    server.adminUrl,
    `set password_encryption = 'scram-sha-256';
     create role by_scram login password '${literal}'; create role by_password login password '${literal}';
     create role only_tls login password '${literal}'; create role by_trust login; create role by_certificate login;
     create role refused login;
     set password_encryption = 'md5'; create role by_md5 login password '${literal}'`,
  )
})

afterAll(() => server?.close())

interface Attempt {
  readonly user: string
  readonly password?: string | null
  readonly host?: string
  readonly parameters?: Record<string, string>
}

function url({ user, password = PASSWORD, host = '127.0.0.1', parameters = {} }: Attempt): string {
  const secret = password === null ? '' : `:${encodeURIComponent(password)}`
  const query = new URLSearchParams(parameters).toString().replaceAll('+', '%20')
  return `postgres://${user}${secret}@${host}:${server.port}/postgres?${query}`
}

/** The role and whether the connection is encrypted, as the server sees it. */
async function whoAmI(attempt: Attempt): Promise<string> {
  const pool = createPool({ target: parseUrl(url(attempt)), maxConnections: 1 })
  try {
    await pool.ready()
    const text =
      "select current_user || case when ssl then ' encrypted' else ' plain' end from pg_stat_ssl where pid = " +
      'pg_backend_pid()'
    const [result] = await pool.run([{ text, parameters: [] }]).result
    return String(result?.rows[0]?.[0])
  } finally {
    await pool.close({ deadlineMs: 0 })
  }
}

test('SCRAM works with and without TLS, with a password that needs SASLprep', async () => {
  expect(await whoAmI({ user: 'by_scram' })).toBe('by_scram encrypted')
  expect(await whoAmI({ user: 'by_scram', parameters: { sslmode: 'disable' } })).toBe('by_scram plain')
})

test.each([
  ['what NFKC changes', '\u2168\u00aa'],
  ['what vanishes', 'I\u00adX\u200d'],
  ['many kinds of spaces', 'a\u2003b\u3000c'],
  ['what Unicode 3.2 did not know', '\u{1f600}\u2168'],
  ['Arabic alone', '\u0627\u0628\u0627'],
  ['Arabic and Latin', '\u0627b\u2168'],
  ['digits at the end of Arabic', '\u06271'],
  ['a control character', 'a\u0007\u2168'],
  ['private use', '\ue000\u2168'],
  ['composition', 'e\u0301'],
  ['only what vanishes', '\u00ad'],
])('the server prepares a password in the same way: %s', async (_what, password) => {
  await execute(
    server.adminUrl,
    `set password_encryption = 'scram-sha-256'; drop role if exists by_text; create role by_text login password ` +
      `'${password}'`,
  )
  expect(await whoAmI({ user: 'by_text', password })).toBe('by_text encrypted')
})

test('a wrong password is a permanent error, and the message does not contain the right one', async () => {
  const refused = whoAmI({ user: 'by_scram', password: 'wrong' })
  await expect(refused).rejects.toMatchObject({ name: 'ConnectError', permanent: true })
  await expect(refused).rejects.toThrow('password authentication failed for user "by_scram"')
  await expect(whoAmI({ user: 'by_scram', password: null })).rejects.toThrow('the database URL has none')
})

test('md5 needs permission', async () => {
  await expect(whoAmI({ user: 'by_md5' })).rejects.toThrow('the server offers md5; the policy allows SCRAM-SHA-256.')
  expect(await whoAmI({ user: 'by_md5', parameters: { auth_mode: 'compat' } })).toBe('by_md5 encrypted')
  expect(await whoAmI({ user: 'by_md5', parameters: { auth_md5: 'true' } })).toBe('by_md5 encrypted')
  await expect(whoAmI({ user: 'by_md5', password: 'wrong', parameters: { auth_md5: 'true' } })).rejects.toThrow(
    'failed',
  )
})

test('the cleartext password needs permission, and an explicit one without TLS', async () => {
  await expect(whoAmI({ user: 'by_password' })).rejects.toThrow('the server offers the cleartext password (password)')
  expect(await whoAmI({ user: 'by_password', parameters: { auth_mode: 'compat' } })).toBe('by_password encrypted')
  const open = { sslmode: 'disable', auth_mode: 'compat' }
  await expect(whoAmI({ user: 'by_password', parameters: open })).rejects.toThrow('over a connection without TLS')
  expect(await whoAmI({ user: 'by_password', parameters: { ...open, auth_cleartext: 'true' } })).toBe(
    'by_password plain',
  )
})

test('trust authentication needs no permission', async () => {
  expect(await whoAmI({ user: 'by_trust', password: null })).toBe('by_trust encrypted')
})

test('a client certificate authenticates', async () => {
  const certificate = { sslcert: join(folder, 'client.crt'), sslkey: join(folder, 'client.key') }
  expect(await whoAmI({ user: 'by_certificate', password: null, parameters: certificate })).toBe(
    'by_certificate encrypted',
  )
  await expect(whoAmI({ user: 'by_certificate', password: null })).rejects.toThrow(/certificate/)
  const stranger = { sslcert: join(folder, 'stranger.crt'), sslkey: join(folder, 'stranger.key') }
  await expect(
    connect({ target: parseUrl(url({ user: 'by_certificate', parameters: stranger })), throughPooler: false }),
  ).rejects.toThrow()
  const missing = { sslcert: join(folder, 'none.crt'), sslkey: join(folder, 'client.key') }
  await expect(whoAmI({ user: 'by_certificate', parameters: missing })).rejects.toThrow(
    /sslcert=.*none\.crt cannot be read/,
  )
})

test('a rejection by pg_hba.conf is a permanent error', async () => {
  await expect(whoAmI({ user: 'refused' })).rejects.toMatchObject({ permanent: true })
  expect(await whoAmI({ user: 'only_tls' })).toBe('only_tls encrypted')
  await expect(whoAmI({ user: 'only_tls', parameters: { sslmode: 'disable' } })).rejects.toThrow(/pg_hba\.conf/)
})

const ours = (): string => join(folder, 'ca.pem')
const other = (): string => join(folder, 'other-ca.pem')

test('verify-full requires the configured authority and the right host name', async () => {
  const full = { sslmode: 'verify-full', sslrootcert: ours() }
  expect(await whoAmI({ user: 'by_scram', host: 'localhost', parameters: full })).toBe('by_scram encrypted')
  await expect(whoAmI({ user: 'by_scram', host: '127.0.0.1', parameters: full })).rejects.toThrow(
    /sslmode=verify-full.*127\.0\.0\.1/,
  )
  const wrong = whoAmI({ user: 'by_scram', host: 'localhost', parameters: { ...full, sslrootcert: other() } })
  await expect(wrong).rejects.toMatchObject({ permanent: true })
  await expect(whoAmI({ user: 'by_scram', host: 'localhost', parameters: { sslmode: 'verify-full' } })).rejects.toThrow(
    'TLS with the server failed',
  )
})

test('verify-ca requires the configured authority and accepts any host name', async () => {
  expect(await whoAmI({ user: 'by_scram', parameters: { sslmode: 'verify-ca', sslrootcert: ours() } })).toBe(
    'by_scram encrypted',
  )
  await expect(
    whoAmI({ user: 'by_scram', parameters: { sslmode: 'verify-ca', sslrootcert: other() } }),
  ).rejects.toThrow('sslmode=verify-ca')
})

test('require only encrypts; with sslrootcert it verifies the chain', async () => {
  expect(await whoAmI({ user: 'by_scram', parameters: { sslmode: 'require' } })).toBe('by_scram encrypted')
  expect(await whoAmI({ user: 'by_scram', parameters: { sslmode: 'require', sslrootcert: ours() } })).toBe(
    'by_scram encrypted',
  )
  await expect(whoAmI({ user: 'by_scram', parameters: { sslmode: 'require', sslrootcert: other() } })).rejects.toThrow(
    'sslmode=require',
  )
})

test('large results and many batches pass through TLS unchanged', async () => {
  const pool = createPool({ target: parseUrl(url({ user: 'by_scram' })), maxConnections: 1 })
  const text = 'select repeat($1, 100000)'
  const letters = Array.from({ length: 100 }, (_, index) => String.fromCharCode(97 + (index % 26)))
  const results = await Promise.all(letters.map(letter => pool.run([{ text, parameters: [letter] }]).result))
  for (const [index, [result]] of results.entries()) {
    expect(result?.rows[0]?.[0]?.equals(Buffer.alloc(100_000, letters[index]))).toBe(true)
  }
  await pool.close({ deadlineMs: 1_000 })
})

test('a cancel request uses TLS too', async () => {
  const target = parseUrl(url({ user: 'by_scram', parameters: { sslmode: 'require' } }))
  const { wire, session } = await connect({ target, throughPooler: false })
  expect(await requestCancel(target, session)).toBe('delivered')
  wire.destroy(new Error('done'))
})

test('a Unix socket connects', async context => {
  if (server.socketDirectory === null) return context.skip('this system has no Unix sockets')
  const host = encodeURIComponent(server.socketDirectory)
  expect(await whoAmI({ user: 'by_scram', host })).toBe('by_scram plain')
})
