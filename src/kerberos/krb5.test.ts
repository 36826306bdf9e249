/**
 * The provider over the system's library, with a scripted package in place of the library;
 * test/features/kerberos.pg.test.ts uses the real one.
 */
import { expect, test } from 'vitest'
import { GssError } from '../postgres/auth/gss.ts'
import { createKrb5, openKrb5 } from './krb5.ts'

const REQUEST = { target: 'postgres@db.example', method: 'gss', signal: new AbortController().signal } as const

interface Scripted {
  readonly step: (challenge: string) => Promise<string | null>
  readonly contextComplete?: boolean
}

function library(client: () => Promise<Scripted>) {
  const asked: unknown[] = []
  const initializeClient = async (service: string, options: unknown) => {
    asked.push(service, options)
    return { contextComplete: false, ...(await client()) }
  }
  return { asked, initializeClient, GSS_C_MUTUAL_FLAG: 2, GSS_MECH_OID_KRB5: 9 }
}

test('tokens are exchanged in base64, for the target, with mutual authentication', async () => {
  const heard: string[] = []
  const scripted = library(async () => ({
    step: async challenge => {
      heard.push(challenge)
      return heard.length === 1 ? Buffer.from('hello').toString('base64') : ''
    },
  }))
  const converse = createKrb5(scripted).start(REQUEST)
  expect(await converse(null)).toEqual({ token: Buffer.from('hello'), done: false })
  expect(await converse(Buffer.from('welcome'))).toEqual({ token: null, done: false })
  expect(heard).toEqual(['', Buffer.from('welcome').toString('base64')])
  expect(scripted.asked).toEqual(['postgres@db.example', { gssFlag: 2, mechOID: 9 }])
})

test('the library decides when the conversation is complete', async () => {
  const scripted = library(async () => ({ contextComplete: true, step: async () => null }))
  expect(await createKrb5(scripted).start(REQUEST)(null)).toEqual({ token: null, done: true })
})

test.each([
  ["Cannot contact any KDC for realm 'EXAMPLE.COM'", true],
  ['Cannot resolve network address for KDC in requested realm', true],
  ['A service is not available that is required to process the request', true],
  ['Connection timed out', true],
  ['No Kerberos credentials available (default cache: FILE:/tmp/krb5cc_0)', false],
  ['Ticket expired', false],
  ['Server postgres/db@EXAMPLE.COM not found in Kerberos database', false],
  ['Clock skew too great', false],
])('"%s" is transient: %s', async (message, transient) => {
  for (const client of [
    async () => ({ step: () => Promise.reject(new Error(`Unspecified GSS failure. ${message}`)) }),
    () => Promise.reject(new Error(`Unspecified GSS failure. ${message}`)),
  ]) {
    const failed = createKrb5(library(client)).start(REQUEST)(null)
    await expect(failed).rejects.toBeInstanceOf(GssError)
    await expect(failed).rejects.toMatchObject({ transient })
    await expect(failed).rejects.toThrow(`Unspecified GSS failure. ${message}`)
  }
})

test('an error of the library is reported with advice', async () => {
  const scripted = library(async () => ({ step: () => Promise.reject(new Error('Clock skew too great')) }))
  await expect(createKrb5(scripted).start(REQUEST)(null)).rejects.toThrow(
    /^Clock skew too great; set the clocks of gateway, KDC and database by the same source$/,
  )
})

test('at most two steps run at once, so that other work gets threads', async () => {
  const release: (() => void)[] = []
  const scripted = library(async () => ({
    contextComplete: true,
    step: () => new Promise(resolve => release.push(() => resolve(null))),
  }))
  const provider = createKrb5(scripted)
  const waiting = [provider.start(REQUEST)(null), provider.start(REQUEST)(null)]
  await expect(provider.start(REQUEST)(null)).rejects.toMatchObject({ transient: true })
  await expect(provider.start(REQUEST)(null)).rejects.toThrow('too many concurrent requests for tickets: at most 2')
  await expect.poll(() => release.length).toBe(2)
  for (const resolve of release) resolve()
  await Promise.all(waiting)
  const next = provider.start(REQUEST)(null)
  await expect.poll(() => release.length).toBe(3)
  release[2]?.()
  expect(await next).toEqual({ token: null, done: true })
})

test('without the package the error contains the command that installs it', async () => {
  const absent = Object.assign(new Error("Cannot find package 'kerberos'"), { code: 'ERR_MODULE_NOT_FOUND' })
  await expect(openKrb5('linux', () => Promise.reject(absent))).rejects.toMatchObject({
    name: 'KerberosSetupError',
    message: 'gss_provider=linux_krb5 needs the feature enterprise-gssapi, which is not installed.',
    fix: expect.stringContaining('npm install kerberos@7'),
  })
  const broken = new Error('libgssapi_krb5.so.2: cannot open shared object file')
  await expect(openKrb5('linux', () => Promise.reject(broken))).rejects.toThrow(
    'enterprise-gssapi, which cannot be loaded: libgssapi_krb5.so.2',
  )
})

test('on other systems than Linux the package is not loaded', async () => {
  const load = () => Promise.reject(new Error('looked for'))
  await expect(openKrb5('darwin', load)).rejects.toThrow('gss_provider=linux_krb5 works on Linux only')
})
