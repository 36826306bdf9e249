/**
 * In development mode headers identify the caller, so pages of other sites must not reach the gateway, not
 * even under another host name (DNS rebinding).
 */
import { describe, expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { openRaw } from '../support/raw-http.ts'
import { openSocket } from '../support/socket.ts'

const database = databaseFixture(`
  create table notes (id int primary key, body text not null);
  insert into notes values (1, 'one');
  grant select on notes to app
`)
const toml = 'cors_allowed_origins = ["https://app.example"]\nallowed_hosts = ["dev.example"]'
const development = gatewayFixture(database, { toml, environment: { SVC_DEV_MODE: 'true' } })
const production = gatewayFixture(database, { toml })

async function get(
  gateway: TestGateway,
  host: string | null,
  headers: readonly string[] = [],
  path = '/api/notes/1',
): Promise<string> {
  const connection = await openRaw(gateway.url)
  const lines = [
    `GET ${path} HTTP/1.${host === null ? 0 : 1}`,
    ...(host === null ? [] : [`Host: ${host}`]),
    ...['x-tenant-id: t1', 'Connection: close', ...headers],
  ]
  connection.socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  await connection.closed
  return connection.received()
}

const statusOf = (received: string) => Number(received.slice('HTTP/1.1 '.length).slice(0, 3))

const upgrade = (gateway: TestGateway, headers: Readonly<Record<string, string>>) =>
  openSocket(gateway.url, { headers: { 'x-tenant-id': 't1', ...headers } })

describe('Host', () => {
  test.each(['localhost', 'LOCALHOST:3000', '127.0.0.1', '127.0.0.1:1', '[::1]:8080', 'dev.example', 'dev.example:80'])(
    '%s is a name of the gateway',
    async host => {
      expect(statusOf(await get(development, host))).toBe(200)
    },
  )

  test.each(['evil.example', 'localhost.evil.example', '192.0.2.1', 'app.example'])(
    '%s is rejected, and the response says how to allow it',
    async host => {
      const received = await get(development, host)
      expect(statusOf(received)).toBe(403)
      const { error } = JSON.parse(received.slice(received.indexOf('{')))
      expect(error).toMatchObject({ code: 'FORBIDDEN', status: 403, request_id: expect.any(String) })
      expect(error.message).toContain(`"${host}"`)
      expect(error.message).toContain('allowed_hosts')
      await expect(upgrade(development, { Host: host })).rejects.toThrow('403')
    },
  )

  test.each([
    ...['/', '/console', '/console/app.js', '/health', '/metrics', '/health/internal', '/internal/checks', '/nothing'],
    ...['/api/_schema', '/api/_openapi.json', '/v1/shape?table=notes&offset=-1', '/rest/v1/notes', '/realtime/v1'],
  ])('of another site is rejected for %s, and so is its Origin', async path => {
    expect(statusOf(await get(development, 'evil.example', [], path))).toBe(403)
    expect(statusOf(await get(development, 'localhost', ['Origin: https://evil.example'], path))).toBe(403)
  })

  test('is required, also in HTTP/1.0', async () => {
    expect(statusOf(await get(development, null))).toBe(403)
  })

  test('can be anything outside development mode', async () => {
    expect(statusOf(await get(production, 'evil.example'))).toBe(401)
    expect(statusOf(await get(production, null))).toBe(401)
  })
})

describe('Origin', () => {
  test.each(['http://localhost:3000', 'http://127.0.0.1', 'https://app.example', 'https://dev.example'])(
    '%s is allowed',
    async origin => {
      expect(statusOf(await get(development, 'localhost', [`Origin: ${origin}`]))).toBe(200)
    },
  )

  test.each(['https://evil.example', 'null', 'http://app.example', 'https://app.example.evil.example'])(
    '%s is rejected, and the response says how to allow it',
    async origin => {
      const received = await get(development, 'localhost', [`Origin: ${origin}`])
      expect(statusOf(received)).toBe(403)
      expect(received).toContain('cors_allowed_origins')
      await expect(upgrade(development, { Origin: origin })).rejects.toThrow('403')
    },
  )

  test('can open a WebSocket if it is allowed', async () => {
    const socket = await upgrade(development, { Origin: 'https://app.example' })
    await socket.close()
  })

  test('can be anything if all origins are allowed', async () => {
    const open = await testGateway(database.url, {
      toml: 'cors_allowed_origins = ["*"]',
      environment: { SVC_DEV_MODE: 'true' },
    })
    try {
      expect(statusOf(await get(open, 'localhost', ['Origin: https://evil.example']))).toBe(200)
      expect(statusOf(await get(open, 'evil.example', ['Origin: https://evil.example']))).toBe(403)
    } finally {
      await open.close()
    }
  })
})
