/**
 * Kerberos problems that are found at startup: files that are missing, unreadable or of the wrong kind,
 * each with the fix.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { folderFixture } from '../../test/support/fixtures.ts'
import { type KerberosFiles, preflight } from './preflight.ts'

let good: KerberosFiles

/** The id of a user that does not exist and has no cache in /tmp. */
const USER = 4_000_000_001

const folder = folderFixture()
beforeAll(async () => {
  await writeFile(join(folder, 'krb5.conf'), '# ours\n[libdefaults]\n  default_realm = TEST\n')
  await writeFile(join(folder, 'elsewhere.conf'), '[libdefaults]\n  default_ccache_name = KCM:\n')
  await writeFile(join(folder, 'cache'), Buffer.from([5, 4, 0, 0]))
  await writeFile(join(folder, 'keytab'), Buffer.from([5, 2, 0, 0]))
  await writeFile(join(folder, 'text'), 'hello')
  await writeFile(join(folder, 'empty'), '')
  await mkdir(join(folder, 'folder'))
  good = { krb5Config: file('krb5.conf'), krb5CredentialCache: `FILE:${file('cache')}`, krb5ClientKeytab: null }
})

const file = (name: string): string => join(folder, name)

/** Each finding as `message fix`, with paths relative to the folder. */
async function said(files: Partial<KerberosFiles>): Promise<readonly string[]> {
  const findings = await preflight({ ...good, ...files }, USER)
  expect(findings.every(({ level }) => level === 'error')).toBe(true)
  return findings.map(({ message, fix }) => `${message} ${fix}`.replaceAll(`${folder}/`, ''))
}

test('a valid setup has no findings', async () => {
  expect(await said({})).toEqual([])
  expect(await said({ krb5CredentialCache: file('cache') })).toEqual([])
  expect(await said({ krb5CredentialCache: null, krb5ClientKeytab: file('keytab') })).toEqual([])
  expect(await said({ krb5ClientKeytab: `FILE:${file('keytab')}`, krb5CredentialCache: 'MEMORY:svc' })).toEqual([])
})

test.each(['KEYRING:persistent:1000', 'KCM:', 'DIR:/nowhere', 'API:'])('a cache %s is not checked', async cache => {
  expect(await said({ krb5CredentialCache: cache })).toEqual([])
})

test('one of several configuration files can be missing, but not all', async () => {
  expect(await said({ krb5Config: `${file('none')}:${file('krb5.conf')}` })).toEqual([])
  expect(await said({ krb5Config: file('none') })).toEqual([
    'Kerberos has no configuration: none does not exist. Set KRB5_CONFIG to a file with default_realm and the ' +
      'KDCs of [realms] that this user can read.',
  ])
  expect((await said({ krb5Config: `${file('folder')}:${file('krb5.conf')}` }))[0]).toContain('folder is not a file')
  expect((await said({ krb5Config: file('text') }))[0]).toContain('text is not a krb5.conf: it has no [section]')
  expect((await said({ krb5Config: ':' }))[0]).toContain('KRB5_CONFIG names no file')
})

test.each([
  ['none', 'none does not exist'],
  ['folder', 'folder is not a file'],
  ['text', 'text is not a credential cache'],
  ['empty', 'empty is not a credential cache'],
  ['keytab', null],
])('the credential cache %s is rejected', async (name, problem) => {
  // A keytab of version 2 begins like a cache of version 2, so only the library can tell.
  const found = await said({ krb5CredentialCache: file(name) })
  if (problem === null) return expect(found).toEqual([])
  expect(found).toEqual([
    `Kerberos has no credentials: ${problem}. Get a ticket with kinit (or keep one with k5start or sssd) ` +
      'as the user of the gateway and set KRB5CCNAME to its cache, or set KRB5_CLIENT_KTNAME to a keytab. The ' +
      'gateway itself does not request tickets.',
  ])
})

test('an unreadable file is reported with the reason', async () => {
  const below = file('text/below')
  expect((await said({ krb5CredentialCache: below }))[0]).toMatch(/text\/below cannot be read: ENOTDIR.*Get a ticket/)
  expect((await said({ krb5ClientKeytab: below }))[0]).toMatch(
    /text\/below cannot be read: ENOTDIR.*Set KRB5_CLIENT_KTNAME/,
  )
  expect((await said({ krb5Config: below }))[0]).toMatch(/text\/below cannot be read: ENOTDIR.*Set KRB5_CONFIG/)
})

// Root can read every file.
test.skipIf(process.getuid?.() === 0)('a file of another user is reported', async () => {
  await writeFile(file('closed'), Buffer.from([5, 4, 0, 0]), { mode: 0o000 })
  expect((await said({ krb5CredentialCache: file('closed') }))[0]).toContain('closed cannot be read: EACCES')
})

test('a cache that cannot be filled and an unknown kind are rejected', async () => {
  expect((await said({ krb5CredentialCache: 'MEMORY:svc' }))[0]).toContain('a cache of this process only')
  expect((await said({ krb5CredentialCache: 'FLIE:/tmp/x' }))[0]).toContain(
    'KRB5CCNAME=FLIE:/tmp/x has an unknown type; supported types are FILE, DIR, KEYRING, KCM, API',
  )
})

test('without KRB5CCNAME the default cache is checked, unless the configuration can set another', async () => {
  expect((await said({ krb5CredentialCache: null }))[0]).toContain(`/tmp/krb5cc_${USER} does not exist`)
  expect(await said({ krb5CredentialCache: null, krb5Config: file('elsewhere.conf') })).toEqual([])
})

test.each([
  ['none', 'none does not exist'],
  ['text', 'text is not a keytab'],
  ['cache', 'cache is not a keytab'],
])('the keytab %s is rejected', async (name, problem) => {
  expect((await said({ krb5ClientKeytab: file(name) }))[0]).toContain(`The client keytab cannot be used: ${problem}.`)
})

test('all problems are reported together', async () => {
  expect(await said({ krb5Config: file('none'), krb5CredentialCache: file('none') })).toHaveLength(2)
})
