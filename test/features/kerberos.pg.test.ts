/**
 * docs/guides/database-connections.md#kerberos: the program with a real KDC and a PostgreSQL that accepts
 * only tickets. Skipped if Debian's packages or the optional package are missing.
 */
import { writeFile } from 'node:fs/promises'
import { afterAll, afterEach, beforeAll, expect, type TestContext, test, vi } from 'vitest'
import { createRealm, type Realm, ROLE, whyNoRealm } from '../support/kerberos.ts'
import { execute } from '../support/postgres.ts'
import { killSvc, type Svc, startSvc } from '../support/process.ts'

// Each test starts programs, and the machine may be busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

let missing: string | null = null
let realm: Realm | undefined

beforeAll(async () => {
  missing = await whyNoRealm()
  if (missing !== null) return
  realm = await createRealm()
  await execute(
    realm.adminUrl,
    `create role ${ROLE} login; create table notes (id int primary key, body text);
     insert into notes values (1, 'by ticket'); grant select on notes to ${ROLE}`,
  )
})

afterEach(killSvc)
afterAll(() => realm?.close())

/** Skips the test if no realm can be started. */
function needed(context: TestContext): Realm {
  if (realm === undefined) return context.skip(missing ?? 'there is no realm')
  return realm
}

const TARGET = 'gss_target=postgres@localhost'

function svc(
  of: Realm,
  command: 'serve' | 'check',
  parameters = TARGET,
  more: Readonly<Record<string, string>> = {},
): Svc {
  const url = `postgres://${ROLE}@127.0.0.1:${of.port}/postgres?auth_mode=gssapi_only&${parameters}`
  const settings = { DATABASE_URL: url, SVC_BIND: '127.0.0.1:0', JWT_SECRET: 'a secret for tests of 32 bytes or more' }
  const none = { SVC_CONFIG: of.file('svc.toml') }
  return startSvc([command], { ...settings, ...none, ...of.environment, ...more })
}

beforeAll(async () => {
  if (realm !== undefined) await writeFile(realm.file('svc.toml'), '[gateway]\nrequire_auth = false\n')
})

async function listening(of: Svc): Promise<string> {
  return of.says(/"url":"([^"]+)","msg":"listening"/)
}

test('the gateway serves over connections authenticated by a ticket, and receives NOTIFY', async context => {
  const of = needed(context)
  const gateway = svc(of, 'serve')
  const url = await listening(gateway)
  expect(await (await fetch(`${url}/api/notes`)).json()).toMatchObject({ data: [{ id: 1, body: 'by ticket' }] })
  await gateway.says(/"msg":"database: listener connected"/)
  const sessions = await execute(
    of.adminUrl,
    `select distinct principal from pg_stat_gssapi join pg_stat_activity using (pid) where usename = '${ROLE}'
      and gss_authenticated`,
  )
  expect(sessions).toEqual([{ principal: `${ROLE}@SVC.TEST` }])
})

test('the target consists of service and host, and the default service is postgres', async context => {
  const of = needed(context)
  const gateway = svc(of, 'serve', 'host=localhost&gss_service=postgres')
  await listening(gateway)
})

test('a keytab can replace a ticket', async context => {
  const of = needed(context)
  const gateway = svc(of, 'serve', TARGET, {
    KRB5CCNAME: `FILE:${of.file('filled by the library')}`,
    KRB5_CLIENT_KTNAME: of.keytab,
  })
  await listening(gateway)
})

/** The exit code and standard error. */
async function failure(of: Svc): Promise<readonly [number | null, string]> {
  const [code] = await of.exited
  return [code, of.said.error]
}

test('missing credentials are rejected before any attempt, with advice', async context => {
  const of = needed(context)
  const gateway = svc(of, 'serve', TARGET, { KRB5CCNAME: `FILE:${of.file('no cache')}` })
  const [code, error] = await failure(gateway)
  expect(code).toBe(1)
  expect(error).toMatch(/Kerberos has no credentials: .*no cache does not exist\.\n {2}Get a ticket with kinit/)
})

test('a service that the KDC does not know is rejected permanently, by name', async context => {
  const of = needed(context)
  const [code, error] = await failure(svc(of, 'serve', 'gss_target=nobody@localhost'))
  expect(code).toBe(1)
  expect(error).toMatch(/GSSAPI authentication for nobody@localhost failed at step 1: .*not found in Kerberos database/)
})

test('a role that the ticket is not valid for is rejected by the server', async context => {
  const of = needed(context)
  const [code, error] = await failure(svc(of, 'serve', `${TARGET}&user=postgres2`))
  expect(code).toBe(1)
  expect(error).toMatch(/GSSAPI authentication failed for user "postgres2"/)
})

test('svc check prints the effective settings, and that they work', async context => {
  const of = needed(context)
  const checked = svc(of, 'check', `${TARGET}&gss_circuit_threshold=3`)
  await checked.exited
  expect(checked.said.out).toContain('authentication: GSSAPI, SSPI')
  expect(checked.said.out).toContain(
    'Kerberos: gss_provider=linux_krb5; target postgres@localhost; 2 retries from 150 ms\n' +
      '  circuit: opens after 3 failures within 30000 ms, for 15000 ms',
  )
  expect(checked.said.out).not.toMatch(/cannot be (checked|reached)/)
})

test('an unreachable KDC opens the circuit; once it is reachable, the start continues', async context => {
  const of = needed(context)
  const cache = await of.ticket('for the service there is none yet')
  await of.stopKdc()
  const patience = 'gss_connect_retries=1&gss_retry_base_ms=10&gss_circuit_threshold=3&gss_circuit_cooldown_ms=500'
  const gateway = svc(of, 'serve', `${TARGET}&${patience}`, { KRB5CCNAME: cache })
  await gateway.says(
    /"from":"closed","to":"open","error":"[^"]*Cannot contact any KDC[^"]*","msg":"the Kerberos circuit is open"/,
  )
  await gateway.says(/attempts to connect with Kerberos to postgres@localhost are blocked/)
  // One trial attempt is allowed per cooldown, and fails until the KDC is reachable.
  await gateway.says(/"from":"half-open","to":"open"/)
  await of.startKdc()
  await gateway.says(/"from":"half-open","to":"closed","msg":"the Kerberos circuit is closed"/)
  const url = await listening(gateway)
  const metrics = await (await fetch(`${url}/metrics`)).text()
  expect(metrics).toMatch(/^svc_kerberos_circuit_transitions_total\{to="closed"\} [1-9]/m)
  const opened = Number(/transitions_total\{to="open"\} (\d+)/.exec(metrics)?.[1])
  expect(opened).toBeGreaterThanOrEqual(2)
})
