/**
 * One circuit breaker for each connection target and process
 * (docs/guides/database-connections.md#kerberos).
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { BlockedError, ConnectError } from '../postgres/errors.ts'
import { parseUrl } from '../postgres/url.ts'
import { openGss } from './open.ts'

const folder = mkdtempSync(join(tmpdir(), 'svc-circuits-'))
const gssModule = join(folder, 'tokens.mjs')
writeFileSync(gssModule, 'export async function step() { return null }')
afterAll(() => rmSync(folder, { recursive: true }))

const THRESHOLD = 4
const PARAMETERS = 'auth_mode=gssapi_only&gss_provider=callback&gss_connect_retries=0'
const URL = `postgres://app@db.example.com:5432/d?${PARAMETERS}&gss_circuit_threshold=${THRESHOLD}`

/**
 * Opens as the pool, a listener or the feed does; `attempt` counts the attempts that reach the server,
 * which rejects them.
 */
async function client(url: string, reached: string[]) {
  const gss = await openGss(parseUrl(url), { gssModule })
  if (gss === null) throw new Error('the target has Kerberos')
  return () =>
    gss.attempts
      .run(attempt => {
        attempt.usesGss = true
        reached.push(url)
        throw new ConnectError('refused', false)
      }, new AbortController().signal)
      .catch((error: unknown) => error)
}

test('all connections to one target share their failure count and are blocked together', async () => {
  const reached: string[] = []
  const [pool, listener, feed] = await Promise.all([
    client(URL, reached),
    client(URL.replace('/d?', '/other?'), reached),
    client(URL.replace('app@', 'reader@'), reached),
  ])
  for (let round = 0; round < 4; round++) for (const attempt of [pool, listener, feed]) await attempt?.()
  expect(reached).toHaveLength(THRESHOLD)
  for (const attempt of [pool, listener, feed]) expect(await attempt?.()).toBeInstanceOf(BlockedError)
})

test('another server, port or service has a separate circuit', async () => {
  const reached: string[] = []
  for (const url of [
    URL.replace('db.example.com', 'other.example.com'),
    URL.replace('5432', '5433'),
    `${URL}&gss_target=sales@db.example.com`,
  ]) {
    const attempt = await client(url, reached)
    expect(await attempt()).not.toBeInstanceOf(BlockedError)
  }
  expect(reached).toHaveLength(3)
})
