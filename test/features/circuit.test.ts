/**
 * The circuit breaker of docs/guides/database-connections.md#kerberos as operators see it: a log line for
 * each change of state, and no attempt while it is open. The tokens are a module's, so this needs no
 * Kerberos; with a real KDC it is in kerberos.pg.test.ts.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { fakePostgres } from '../support/fake-postgres.ts'
import { killSvc, startSvc } from '../support/process.ts'

afterEach(killSvc)

const MODULE = `export async function step() {
  throw Object.assign(new Error('nobody answers'), { transient: true })
}`

test('each state of the circuit is logged, and no ticket is requested while it is open', {
  timeout: 120_000,
}, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-circuit-'))
  const server = await fakePostgres(async session => {
    const first = await session.next()
    if (first.kind === 'sslRequest') session.raw(Buffer.from('N'))
    await session.next()
    session.send({ kind: 'authentication', authentication: { method: 'gss' } })
    await session.gone
  })
  try {
    await writeFile(join(folder, 'tokens.mjs'), MODULE)
    const parameters = [
      'auth_mode=gssapi_only',
      'gss_provider=callback',
      'gss_connect_retries=2',
      'gss_retry_base_ms=1',
      'gss_circuit_threshold=4',
      'gss_circuit_cooldown_ms=200',
    ]
    const databaseUrl = `postgres://app@127.0.0.1:${server.port}/d?${parameters.join('&')}`
    await writeFile(join(folder, 'svc.toml'), `[gateway]\ndatabase_url = "${databaseUrl}"\ngss_module = "tokens.mjs"\n`)
    const svc = startSvc(['serve', '--config', join(folder, 'svc.toml')], {
      JWT_SECRET: 'a secret of 32 bytes, or of more',
    })
    await svc.says(
      /"level":40,[^\n]*"from":"closed","to":"open","error":"[^"]*nobody answers","msg":"the Kerberos circuit is open"/,
    )
    await svc.says(/"level":30,[^\n]*"from":"open","to":"half-open","msg":"the Kerberos circuit is half-open"/)
    await svc.says(/"level":40,[^\n]*"from":"half-open","to":"open","error":"[^"]*nobody answers"/)
    // While the circuit was open no attempt was made, and blocked requests did not ask again before the end
    // of the cooldown.
    const lines = svc.said.out.split('\n')
    const opened = lines.findIndex(line => line.includes('"from":"closed","to":"open"'))
    const halfOpen = lines.findIndex(line => line.includes('"to":"half-open"'))
    const between = lines.slice(opened + 1, halfOpen)
    expect(between.filter(line => !line.includes('connect-failed'))).toEqual([])
    // The event of the attempt that opened the circuit can arrive after a blocked request.
    expect(between.filter(line => line.includes('are blocked for another')).length).toBeGreaterThan(0)
    // The attempts up to the threshold, and the trial attempt.
    expect(server.count).toBeGreaterThanOrEqual(5)
  } finally {
    killSvc()
    await server.close()
    await rm(folder, { recursive: true, force: true })
  }
})
