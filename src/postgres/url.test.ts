/** Connection URLs: the meaning of each part, and that all problems are reported together. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { UrlError } from './errors.ts'
import { describeTarget } from './target.ts'
import { parseUrl } from './url.ts'

function problems(url: string): readonly string[] {
  try {
    parseUrl(url)
  } catch (error) {
    if (error instanceof UrlError) return error.problems
    throw error
  }
  return []
}

test('omitted parts have their defaults', () => {
  expect(parseUrl('postgres://app@db')).toEqual({
    address: { kind: 'tcp', host: 'db', port: 5432 },
    others: [],
    user: 'app',
    password: null,
    database: 'app',
    tls: { mode: 'prefer', rootCertificates: null, certificate: null },
    auth: { scram: true, md5: false, cleartext: 'never', channelBinding: 'prefer', gss: [] },
    gss: null,
    applicationName: null,
    connectTimeoutMs: 10_000,
    options: null,
    sessionAttributes: 'any',
    loadBalanceHosts: 'disable',
    warnings: [],
  })
})

test('every part and parameter is parsed', () => {
  const url =
    'postgresql://us%40er:p%3Aw%2F@db.example:6432/my%20db?sslmode=verify-full&sslrootcert=/ca.pem&' +
    'sslcert=/c.pem&sslkey=/k.pem' +
    '&application_name=a%20b&connect_timeout=3&options=-c%20search_path%3Dx&target_session_attrs=read-write&' +
    'load_balance_hosts=random&' +
    'auth_mode=compat&auth_scram=false&channel_binding=disable&sslpassword=p%20w'
  expect(parseUrl(url)).toEqual({
    address: { kind: 'tcp', host: 'db.example', port: 6432 },
    others: [],
    user: 'us@er',
    password: 'p:w/',
    database: 'my db',
    tls: {
      mode: 'verify-full',
      rootCertificates: '/ca.pem',
      certificate: { certPath: '/c.pem', keyPath: '/k.pem', password: 'p w' },
    },
    auth: { scram: false, md5: true, cleartext: 'tls-only', channelBinding: 'disable', gss: [] },
    gss: null,
    applicationName: 'a b',
    connectTimeoutMs: 3_000,
    options: '-c search_path=x',
    sessionAttributes: 'read-write',
    loadBalanceHosts: 'random',
    warnings: [],
  })
})

test.each([
  ['postgres://app@[::1]:5433/d', { kind: 'tcp', host: '::1', port: 5433 }],
  ['postgres://app@/d?host=/run/postgresql', { kind: 'unix', path: '/run/postgresql/.s.PGSQL.5432' }],
  ['postgres://app@%2Frun%2Fpostgresql%2F:5433/d', { kind: 'unix', path: '/run/postgresql/.s.PGSQL.5433' }],
  ['postgres://app@/d', { kind: 'tcp', host: 'localhost', port: 5432 }],
  ['postgres:///d?host=db&port=1&user=app', { kind: 'tcp', host: 'db', port: 1 }],
  ['postgres://app:pass@word@db/d', { kind: 'tcp', host: 'db', port: 5432 }],
])('%s is parsed', (url, address) => {
  expect(parseUrl(url).address).toEqual(address)
})

test('parameters override the parts of the URL', () => {
  expect(parseUrl('postgres://a:b@c:1/d?user=e&password=f&host=g&port=2&dbname=h')).toMatchObject({
    address: { kind: 'tcp', host: 'g', port: 2 },
    user: 'e',
    password: 'f',
    database: 'h',
  })
})

test('auth_cleartext=true allows sending the password without TLS; a preset does not', () => {
  expect(parseUrl('postgres://a@b/c?auth_mode=compat').auth.cleartext).toBe('tls-only')
  expect(parseUrl('postgres://a@b/c?auth_cleartext=true').auth.cleartext).toBe('always')
  expect(parseUrl('postgres://a@b/c?auth_mode=compat&auth_cleartext=false').auth.cleartext).toBe('never')
})

test('Kerberos parameters, presets and defaults are parsed', () => {
  const defaults = {
    provider: 'linux_krb5',
    target: 'postgres@db.example',
    retries: 2,
    retryBaseMs: 150,
    circuit: { threshold: 8, windowMs: 30_000, cooldownMs: 15_000 },
  }
  const only = parseUrl('postgres://app@db.example/d?auth_mode=gssapi_only')
  expect(only.auth).toMatchObject({ scram: false, md5: false, cleartext: 'never', gss: ['gss', 'sspi'] })
  expect(only.gss).toEqual(defaults)
  const besides = parseUrl('postgres://app@db.example/d?auth_gssapi=true&gss_service=pg')
  expect(besides.auth).toMatchObject({ scram: true, gss: ['gss'] })
  expect(besides.gss).toEqual({ ...defaults, target: 'pg@db.example' })
  expect(parseUrl('postgres://app@b/d?auth_mode=gssapi_only&auth_sspi=false').auth.gss).toEqual(['gss'])
  const all =
    'postgres://app@b/d?auth_mode=gssapi_only&auth_kerberos=true&gss_provider=callback&gss_target=pg@kdc.example&' +
    'gss_connect_retries=0' +
    '&gss_retry_base_ms=1&gss_circuit_threshold=1&gss_circuit_window_ms=2&gss_circuit_cooldown_ms=3'
  expect(parseUrl(all).auth.gss).toEqual(['gss', 'sspi', 'kerberos'])
  expect(parseUrl(all).gss).toEqual({
    provider: 'callback',
    target: 'pg@kdc.example',
    retries: 0,
    retryBaseMs: 1,
    circuit: { threshold: 1, windowMs: 2, cooldownMs: 3 },
  })
})

test.each([
  ['postgres://a@b:1,[::1]:2,%2Frun/d', 'b:1,[::1]:2,/run/.s.PGSQL.5432'],
  ['postgres://a@b,c:6432/d', 'b:5432,c:6432'],
  ['postgres://a@/d?host=b,c&port=1,2', 'b:1,c:2'],
  ['postgres://a@b,c/d?port=6432', 'b:6432,c:6432'],
  ['postgres://a@b,/d', 'b:5432,localhost:5432'],
  ['postgres://b:1,c:2/d?user=a', 'b:1,c:2'],
])('%s has several hosts', (url, hosts) => {
  expect(describeTarget(parseUrl(url))).toBe(`a@${hosts}/d`)
})

test('all problems are reported together', () => {
  expect(
    problems('postgres://app@db:99999/d?sslmod=require&sslmode=on&connect_timeout=0&auth_md5=yes&sslcert=/c.pem'),
  ).toEqual([
    'unknown parameter "sslmod"; did you mean sslmode?',
    'sslmode=on is not one of disable, prefer, require, verify-ca, verify-full',
    'sslcert is given without sslkey; give both or neither',
    'auth_md5=yes is not one of true, false',
    'connect_timeout=0 is not a number of seconds from 1 to 600',
    'port "99999" is not a number from 1 to 65535',
  ])
})

test.each([
  ['mysql://a@b/c', 'its scheme is "mysql"; expected postgres://user:password@host:port/database'],
  ['postgres://a@b/c?sslmode', 'parameter "sslmode" has no value; expected sslmode=…'],
  ['postgres://a@b/c?sslmode=require&sslmode=disable', 'sslmode is given twice'],
  ['postgres://db/c', 'the user is missing; expected postgres://user:password@host:port/database'],
  ['postgres://a:%zz@b/c', 'the password is not valid percent-encoding; a literal % must be encoded as %25'],
  [
    'postgres://a@b,c/d?auth_mode=gssapi_only',
    'several hosts are given with Kerberos, whose tickets are for one host; give one host, or use another ' +
      'authentication method',
  ],
  ['postgres://a@b,c,d/e?port=1,2', '2 ports are given for 3 hosts; give one for each, or one for all'],
  ['postgres://a@b,c:x/d', 'port "x" is not a number from 1 to 65535'],
  [`postgres://a@b${',b'.repeat(16)}/d`, '17 hosts are given; at most 16 are accepted'],
  ['postgres://a@b/d?load_balance_hosts=yes', 'load_balance_hosts=yes is not one of disable, random'],
  [
    'postgres://a@b,%2Frun/d?sslmode=verify-full',
    'sslmode=verify-full is not possible over a Unix socket, which never uses TLS; remove it or give a host',
  ],
  ['postgres://a@::1/d', '"::1" is not host:port; an IPv6 address must be in brackets: [::1]:5432'],
  ['postgres://a%00@b/c', 'the user contains a zero byte (%00), which PostgreSQL cannot store'],
  ['postgres://a@b/c?application_name=%00', 'application_name contains a zero byte (%00)'],
  ['postgres://a@b/c?xyz=1', 'unknown parameter "xyz"'],
  ['postgres://a@b/c?__proto__=1', 'unknown parameter "__proto__"'],
  ['postgres://a@b/c?ssl=true', 'parameter "ssl" is not supported; use sslmode=require, verify-ca or verify-full'],
  ['postgres://a@b/c?krbsrvname=pg', 'parameter "krbsrvname" is not supported; use gss_service'],
  [
    'postgres://a@b/c?sslmode=requre',
    'sslmode=requre is not one of disable, prefer, require, verify-ca, verify-full; did you mean require?',
  ],
  ['postgres://a@b/c?sslpassword=x', 'sslpassword is given without sslkey, the encrypted key it belongs to'],
  ['postgres://a@b/c?channel_binding=yes', 'channel_binding=yes is not one of disable, prefer, require'],
  [
    'postgres://a@b/c?channel_binding=require&sslmode=disable',
    'channel_binding=require requires TLS, but sslmode=disable turns it off; use sslmode=require',
  ],
  [
    'postgres://a@%2Frun/c?channel_binding=require',
    'channel_binding=require requires TLS, which a Unix socket never uses; remove it or give a host',
  ],
  [
    'postgres://a@b/c?channel_binding=require&auth_mode=compat&auth_scram=false',
    'channel_binding=require works only with SCRAM, but auth_scram is false; remove one or the other',
  ],
  ['postgres://a@b/c?gss_connect_retries=many', 'gss_connect_retries=many is not a number of retries from 0 to 20'],
  [
    'postgres://a@b/c?auth_mode=gssapi_only&gss_provider=krb5',
    'gss_provider=krb5 is not one of linux_krb5, callback, custom',
  ],
  [
    'postgres://a@b/c?auth_kerberos=true',
    'auth_kerberos=true selects a protocol that PostgreSQL removed in 9.3 and that gss_provider=linux_krb5 does ' +
      'not support; use auth_gssapi=true',
  ],
  [
    'postgres://a@b/c?auth_gssapi=true&gss_service=postgres/b',
    'gss_service must be the name of a service, such as postgres; for a complete target use gss_target=service@host',
  ],
  [
    'postgres://a@b/c?auth_gssapi=true&gss_target=b',
    'gss_target must be service@host, such as postgres@db.example.com',
  ],
  [
    'postgres://a@b/c?auth_gssapi=true&gss_circuit_threshold=0',
    'gss_circuit_threshold=0 is not a number of failures from 1 to 1000',
  ],
  [
    'postgres://a@%2Frun/c?auth_gssapi=true',
    'PostgreSQL does not support Kerberos over a Unix socket; give a host, or use another authentication method',
  ],
  [
    'postgres://a@b/c?auth_mode=gssapi_only&channel_binding=require',
    'channel_binding=require works only with SCRAM, but auth_scram is false; remove one or the other',
  ],
  ['postgres://a@b/c?auth_mode=gssapi', 'auth_mode=gssapi is not one of scram_only, gssapi_only, compat'],
  [
    'postgres://a@b/c?auth_scram=false',
    'every authentication method is disabled; remove auth_scram=false, or allow another method',
  ],
  [
    'postgres://a@b/c?sslmode=disable&sslrootcert=/x',
    'sslmode=disable is combined with certificates; remove one or the other',
  ],
  [
    'postgres://a@b/c?target_session_attrs=master',
    'target_session_attrs=master is not one of any, read-write, read-only, primary, standby, prefer-standby',
  ],
])('%s is rejected', (url, problem) => {
  expect(problems(url)).toEqual([problem])
})

test('a check that any public authority could pass is rejected', () => {
  expect(problems('postgres://a@b/c?sslmode=verify-ca')[0]).toContain('sslmode=verify-ca requires sslrootcert=<file>')
  expect(problems('postgres://a@b/c?sslmode=require&sslrootcert=system')[0]).toContain('requires sslmode=verify-full')
  expect(problems('postgres://a@b/c?sslmode=verify-full&sslrootcert=system')).toEqual([])
})

test.each(['/', '?', '#', '@', ':', '&', '=', '%', '[', ']', ' ', '?a=', '/@', '\\'])(
  'a password with an unencoded %j appears in no message',
  bare => {
    const piece = 'S3CR3T'
    for (const url of [
      `postgres://app:${piece}${bare}${piece}@db/d`,
      `postgres://app:${bare}${piece}@db:99999/d?sslmood=require`,
      `postgres://app@db:99999/d?password=${piece}${bare}${piece}&sslmode=x`,
    ]) {
      expect(problems(url).join()).not.toContain(piece)
    }
  },
)

test('any text is either parsed or rejected with short problems', () => {
  const parts = fc.constantFrom(
    ...[
      'postgres://',
      'postgresql://',
      'app',
      ':',
      '@',
      '/',
      '?',
      '&',
      '=',
      '%',
      '%00',
      '%zz',
      '[',
      '::1',
      ']',
      ',',
      '#',
    ],
    ...[
      'sslmode',
      'require',
      'host',
      'port',
      '5432',
      'gss_target',
      'auth_mode',
      'gssapi_only',
      '\u0000',
      'ü',
      'x'.repeat(500),
    ],
  )
  const texts = fc.oneof(
    fc.string(),
    fc.array(parts, { maxLength: 20 }).map(some => `postgres://${some.join('')}`),
  )
  fc.assert(
    fc.property(texts, text => {
      for (const problem of problems(text)) expect(problem.length).toBeLessThan(600)
    }),
    { numRuns: 2_000 },
  )
})

test('no message and no description contains the password', () => {
  const url = 'postgres://app:hush@db:99999/d?password=hush2&nonsense=1&sslmode=hush-no'
  expect(problems(url).join()).not.toMatch(/hush[^-]/)
  expect(problems('postgres//app:hush@db').join()).not.toContain('hush')
  expect(describeTarget(parseUrl('postgres://app:hush@[::1]:1/d'))).toBe('app@[::1]:1/d')
})

test('a valid Kerberos parameter is a warning while Kerberos is off', () => {
  const all =
    'gss_provider=callback&gss_service=p&gss_target=p@h&gss_connect_retries=1&gss_retry_base_ms=1&' +
    'gss_circuit_threshold=2&gss_circuit_window_ms=3&gss_circuit_cooldown_ms=4'
  const off = parseUrl(`postgres://a@b/c?${all}`)
  expect(off.gss).toBeNull()
  expect(off.warnings).toHaveLength(8)
  expect(off.warnings[0]).toBe('gss_provider has no effect because Kerberos is not enabled')
  expect(parseUrl(`postgres://a@b/c?auth_mode=gssapi_only&${all}`).warnings).toEqual([])
})
