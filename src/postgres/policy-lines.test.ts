/** The description of a connection URL in the output of `svc check`. */
import { expect, test } from 'vitest'
import { policyLines } from './policy-lines.ts'
import { parseUrl } from './url.ts'

function lines(url: string): readonly string[] {
  return policyLines(parseUrl(url))
}

test('every default is printed', () => {
  expect(lines('postgres://app:hush@db/d')).toEqual([
    'app@db:5432/d',
    'TLS: sslmode=prefer, encrypted if the server supports it; the certificate is not verified',
    'authentication: SCRAM-SHA-256; channel_binding=prefer',
    'session: connect_timeout=10; application_name=svc; target_session_attrs=any',
  ])
})

test.each([
  ['sslmode=disable', 'sslmode=disable, nothing is encrypted'],
  ['sslmode=require', 'sslmode=require, the certificate is not verified'],
  ['sslmode=require&sslrootcert=/ca', 'sslmode=require, certificate verified against /ca'],
  [
    'sslmode=prefer&sslrootcert=/ca',
    'sslmode=prefer, encrypted if the server supports it; certificate verified against /ca',
  ],
  ['sslmode=verify-ca&sslrootcert=/ca', 'sslmode=verify-ca, certificate verified against /ca'],
  [
    'sslmode=verify-full&sslcert=/c&sslkey=/k&sslpassword=hush',
    'sslmode=verify-full, certificate verified against the authorities of the runtime, and the host name; client ' +
      'certificate /c',
  ],
  ['host=/run', 'none, over a Unix socket'],
])('TLS settings are described: %s', (parameters, line) => {
  expect(lines(`postgres://app@db/d?${parameters}`)[1]).toBe(`TLS: ${line}`)
})

test('mechanisms, Kerberos and the circuit breaker are described', () => {
  expect(lines('postgres://app@db/d?auth_mode=compat&auth_cleartext=true&channel_binding=require')[2]).toBe(
    'authentication: SCRAM-SHA-256, md5, password; channel_binding=require',
  )
  expect(lines('postgres://app@db/d?auth_mode=gssapi_only&gss_connect_retries=1').slice(2, 5)).toEqual([
    'authentication: GSSAPI, SSPI',
    'Kerberos: gss_provider=linux_krb5; target postgres@db; 1 retry from 150 ms',
    'circuit: opens after 8 failures within 30000 ms, for 15000 ms',
  ])
})

test('no secret is printed', () => {
  const url = 'postgres://app:hush@db/d?sslcert=/c&sslkey=/k&sslpassword=hush&password=hush'
  expect(lines(url).join()).not.toContain('hush')
})
