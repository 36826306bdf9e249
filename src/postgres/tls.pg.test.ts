/**
 * TLS against a real server (docs/guides/database-connections.md#parameters): what each sslmode
 * accepts, and the messages of those it rejects. auth/auth.pg.test.ts tests the requirements of
 * pg_hba.conf.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type Certificate,
  createAuthority,
  createCertificate,
  createSelfSigned,
  type Signature,
} from '../../test/support/certificates.ts'
import { folderFixture } from '../../test/support/fixtures.ts'
import { execute, privateServer } from '../../test/support/postgres.ts'
import type { TestServer } from '../../test/support/server.ts'
import { createPool } from './pool.ts'
import { parseUrl } from './url.ts'

const SIGNATURES: readonly Signature[] = ['ecdsa-sha384', 'rsa-sha256', 'rsa-sha512', 'rsa-pss-sha384', 'ed25519']
const KEY_PASSWORD = 'wörd of a key'

let server: TestServer

const folder = folderFixture()
beforeAll(async () => {
  const authority = createAuthority('test authority')
  const elsewhere = createAuthority('another authority')
  const onServer: Record<string, string> = { 'ca.crt': authority.certificate }
  const onClient: Record<string, string> = {
    'ca.pem': authority.certificate,
    'other.pem': elsewhere.certificate,
    'bundle.pem': `two authorities\n${elsewhere.certificate}${authority.certificate}`,
    'nothing.pem': 'no certificate at all\n',
  }
  const install = (name: string, made: Certificate): void => {
    onServer[`${name}.crt`] = made.certificate
    onServer[`${name}.key`] = made.key
  }
  install('valid', createCertificate(authority, 'server', ['localhost']))
  install('expired', createCertificate(authority, 'server', ['localhost'], { validUntil: '200201000000Z' }))
  install('elsewhere', createCertificate(authority, 'server', ['db.example']))
  // Without alternative names the common name counts, as in libpq.
  install('by-common-name', createCertificate(authority, 'localhost'))
  const selfSigned = createSelfSigned('localhost', ['localhost'])
  install('self-signed', selfSigned)
  onClient['self-signed.pem'] = selfSigned.certificate
  for (const signature of SIGNATURES) {
    const signer = createAuthority(`authority with ${signature}`, signature)
    install(signature, createCertificate(signer, 'server', ['localhost']))
    onClient[`${signature}.pem`] = signer.certificate
  }
  const client = createCertificate(authority, 'by_certificate')
  onClient['client.crt'] = client.certificate
  onClient['client.key'] = client.key
  onClient['encrypted.key'] = client.keyObject.export({
    ...{ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: KEY_PASSWORD },
  }) as string
  onClient['stranger.key'] = createCertificate(authority, 'by_certificate').key
  for (const [name, content] of Object.entries(onClient)) await writeFile(join(folder, name), content)
  server = await privateServer({
    settings: ['ssl = on', "ssl_cert_file = 'valid.crt'", "ssl_key_file = 'valid.key'", "ssl_ca_file = 'ca.crt'"],
    hba: ['hostssl all by_certificate 127.0.0.1/32 cert'],
    files: onServer,
  })
  await execute(server.adminUrl, 'create role by_certificate login')
})

afterAll(() => server?.close())

/**
 * Connections opened from now on use the new configuration: the postmaster reloads everything before it
 * starts the next backend.
 */
async function set(settings: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, value] of Object.entries(settings)) {
    await execute(server.adminUrl, `alter system set ${name} = '${value}'`)
  }
  await execute(server.adminUrl, 'select pg_reload_conf()')
  for (const [name, value] of Object.entries(settings)) {
    await expect.poll(() => execute(server.adminUrl, `show ${name}`)).toEqual([{ [name]: value }])
  }
}

async function serve(certificate: string): Promise<void> {
  await set({ ssl_cert_file: `${certificate}.crt`, ssl_key_file: `${certificate}.key` })
}

interface Attempt {
  readonly host?: string
  readonly user?: string
}

/** The version of TLS, or `none`, as the server sees it. */
async function tlsVersion(parameters: Readonly<Record<string, string>>, attempt: Attempt = {}): Promise<string> {
  const url = new URL(server.url)
  url.hostname = attempt.host ?? 'localhost'
  if (attempt.user !== undefined) url.username = attempt.user
  url.search = new URLSearchParams(parameters).toString().replaceAll('+', '%20')
  const pool = createPool({ target: parseUrl(url.href), maxConnections: 1 })
  try {
    await pool.ready()
    const text = "select coalesce(version, 'none') from pg_stat_ssl where pid = pg_backend_pid()"
    const [result] = await pool.run([{ text, parameters: [] }]).result
    return String(result?.rows[0]?.[0])
  } finally {
    await pool.close({ deadlineMs: 0 })
  }
}

const file = (name: string): string => join(folder, name)

test('each mode connects as documented to a server with a valid certificate', async () => {
  await serve('valid')
  expect(await tlsVersion({ sslmode: 'disable' })).toBe('none')
  for (const sslmode of ['prefer', 'require']) {
    expect(await tlsVersion({ sslmode })).toBe('TLSv1.3')
    expect(await tlsVersion({ sslmode, sslrootcert: file('ca.pem') })).toBe('TLSv1.3')
  }
  for (const sslmode of ['verify-ca', 'verify-full']) {
    expect(await tlsVersion({ sslmode, sslrootcert: file('ca.pem') })).toBe('TLSv1.3')
    expect(await tlsVersion({ sslmode, sslrootcert: file('bundle.pem') })).toBe('TLSv1.3')
  }
})

test.each(['prefer', 'require', 'verify-ca', 'verify-full'])(
  'a configured certificate authority is used, with %s too',
  async sslmode => {
    await serve('valid')
    const refused = tlsVersion({ sslmode, sslrootcert: file('other.pem') })
    await expect(refused).rejects.toMatchObject({ name: 'ConnectError', permanent: true })
    await expect(refused).rejects.toThrow(`TLS with the server failed (sslmode=${sslmode})`)
  },
)

test('without sslrootcert verify-full trusts only the runtime’s authorities', async () => {
  await serve('valid')
  for (const more of [{}, { sslrootcert: 'system' }]) {
    await expect(tlsVersion({ sslmode: 'verify-full', ...more })).rejects.toMatchObject({ permanent: true })
  }
})

test('a wrong host name is rejected by verify-full', async () => {
  await serve('elsewhere')
  const full = { sslmode: 'verify-full', sslrootcert: file('ca.pem') }
  await expect(tlsVersion(full)).rejects.toThrow(/sslmode=verify-full.*localhost.*db\.example/)
  await expect(tlsVersion(full)).rejects.toMatchObject({ permanent: true })
  expect(await tlsVersion({ ...full, sslmode: 'verify-ca' })).toBe('TLSv1.3')
  await serve('valid')
  await expect(tlsVersion(full, { host: '127.0.0.1' })).rejects.toThrow('127.0.0.1')
  await serve('by-common-name')
  expect(await tlsVersion(full)).toBe('TLSv1.3')
})

test('an expired certificate is rejected', async () => {
  await serve('expired')
  for (const sslmode of ['require', 'verify-ca', 'verify-full']) {
    const refused = tlsVersion({ sslmode, sslrootcert: file('ca.pem') })
    await expect(refused).rejects.toMatchObject({ permanent: true })
    await expect(refused).rejects.toThrow(/expired/)
  }
  expect(await tlsVersion({ sslmode: 'require' })).toBe('TLSv1.3')
})

test('a self-signed certificate is trusted if sslrootcert names it', async () => {
  await serve('self-signed')
  const refused = tlsVersion({ sslmode: 'verify-full', sslrootcert: file('ca.pem') })
  await expect(refused).rejects.toMatchObject({ permanent: true })
  await expect(refused).rejects.toThrow(/self.signed/)
  expect(await tlsVersion({ sslmode: 'verify-full', sslrootcert: file('self-signed.pem') })).toBe('TLSv1.3')
})

test('a bundle that is empty or missing is rejected', async () => {
  await expect(tlsVersion({ sslmode: 'require', sslrootcert: file('nothing.pem') })).rejects.toThrow(
    /sslrootcert=.*nothing\.pem contains no certificate/,
  )
  await expect(tlsVersion({ sslmode: 'require', sslrootcert: file('gone.pem') })).rejects.toThrow(
    /sslrootcert=.*gone\.pem cannot be read: ENOENT/,
  )
})

test.each(['TLSv1.2', 'TLSv1.3'])('a server that supports %s only', async version => {
  await serve('valid')
  // In this order the server never has an empty range of versions.
  await set({ ssl_min_protocol_version: 'TLSv1', ssl_max_protocol_version: version })
  await set({ ssl_min_protocol_version: version })
  const parameters = { sslmode: 'verify-full', sslrootcert: file('ca.pem'), channel_binding: 'require' }
  expect(await tlsVersion(parameters)).toBe(version)
  await set({ ssl_min_protocol_version: 'TLSv1.2', ssl_max_protocol_version: 'TLSv1.3' })
})

const WITH_CERTIFICATE = { user: 'by_certificate' }

test('a client certificate works with a plain or an encrypted key', async () => {
  await serve('valid')
  const sslcert = file('client.crt')
  expect(await tlsVersion({ sslcert, sslkey: file('client.key') }, WITH_CERTIFICATE)).toBe('TLSv1.3')
  const encrypted = { sslcert, sslkey: file('encrypted.key') }
  expect(await tlsVersion({ ...encrypted, sslpassword: KEY_PASSWORD }, WITH_CERTIFICATE)).toBe('TLSv1.3')
  for (const [more, message] of [
    [{}, /sslkey=.*encrypted\.key is encrypted; give its password as sslpassword/],
    [{ sslpassword: 'wrong' }, /sslkey=.*encrypted\.key cannot be decrypted with sslpassword/],
  ] as const) {
    const refused = tlsVersion({ ...encrypted, ...more }, WITH_CERTIFICATE)
    await expect(refused).rejects.toMatchObject({ name: 'ConnectError', permanent: true })
    await expect(refused).rejects.toThrow(message)
  }
})

test.each([
  [{ sslcert: 'client.crt', sslkey: 'stranger.key' }, /stranger\.key is not the key of the certificate in sslcert=/],
  [{ sslcert: 'client.crt', sslkey: 'nothing.pem' }, /sslkey=.*nothing\.pem contains no private key in PEM format/],
  [{ sslcert: 'nothing.pem', sslkey: 'client.key' }, /sslcert=.*nothing\.pem contains no certificate in PEM format/],
  [{ sslcert: 'client.crt', sslkey: 'gone.key' }, /sslkey=.*gone\.key cannot be read: ENOENT/],
])('%o is rejected with the reason', async ({ sslcert, sslkey }, message) => {
  const refused = tlsVersion({ sslcert: file(sslcert), sslkey: file(sslkey) }, WITH_CERTIFICATE)
  await expect(refused).rejects.toMatchObject({ name: 'ConnectError', permanent: true })
  await expect(refused).rejects.toThrow(message)
})

test.each(SIGNATURES.filter(signature => signature !== 'ed25519'))(
  'SCRAM is bound to a certificate signed with %s, as the server sees it too',
  async signature => {
    await serve(signature)
    expect(await tlsVersion({ sslmode: 'require', channel_binding: 'require' })).toBe('TLSv1.3')
  },
)

test('channel binding to a certificate signed with Ed25519 is rejected', async () => {
  await serve('ed25519')
  await expect(tlsVersion({ channel_binding: 'require' })).rejects.toThrow('not defined for the signature')
  await expect(tlsVersion({ channel_binding: 'require' })).rejects.toMatchObject({ permanent: true })
  // The server cannot compute the hash either and reports only a general error; without channel binding the
  // connection works.
  expect(await tlsVersion({ channel_binding: 'prefer' })).toBe('TLSv1.3')
})

test('channel_binding=disable and prefer connect to the same server', async () => {
  await serve('valid')
  for (const channel_binding of ['disable', 'prefer', 'require']) {
    expect(await tlsVersion({ sslmode: 'require', channel_binding })).toBe('TLSv1.3')
  }
})
