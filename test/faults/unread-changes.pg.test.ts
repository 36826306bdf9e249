/** Subscribers that read nothing: the changes that wait for them count as unread responses. */
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'
import { clientFixture, databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { installed, logged } from '../support/install.ts'
import { connectTo } from '../support/raw-http.ts'
import { figuresOf, NOTES, openWitness } from '../support/slow-readers.ts'
import { openSocket } from '../support/socket.ts'

const UNREAD_MAX = 4 * 1024 * 1024
const READERS = 12
const ROW = 100_000

const database = databaseFixture(NOTES)
const admin = clientFixture(() => database.adminUrl)
beforeAll(() => installed(database))
const gateway = gatewayFixture(database, { toml: `tenant_max_unsent_bytes = ${UNREAD_MAX}` })

const closing: (() => unknown)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

async function figure(name: string, limit?: string): Promise<number> {
  return (await figuresOf(gateway))(name, limit)
}

/** A stream of events whose client reads nothing after the first bytes. */
async function stream(tenantId: string, filter: string): Promise<void> {
  const socket: Socket = connectTo(gateway.url)
  closing.push(() => socket.destroy())
  const head = [
    `GET /api/notes?live=true&${filter} HTTP/1.1`,
    `Host: ${new URL(gateway.url).host}`,
    'Accept: text/event-stream',
    `Authorization: Bearer ${await gateway.token({ tenantId })}`,
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n`)
  await once(socket, 'readable')
}

/** A WebSocket whose client reads nothing after the first message. */
async function socket(tenantId: string, filter: string): Promise<void> {
  const { socket, say, nextOf } = await openSocket(gateway.url, { token: await gateway.token({ tenantId }) })
  closing.push(() => socket.terminate())
  say({ type: 'subscribe', channel: 'svc_table_notes', filter })
  await nextOf('subscribed')
  socket.pause()
}

test.each([
  { what: 'server-sent events', open: stream, tenant: 't1', id: 1_000 },
  { what: 'WebSockets', open: socket, tenant: 't2', id: 2_000 },
])(
  'the changes that wait for slow readers of $what are limited',
  { timeout: 120_000 },
  async ({ open, tenant, id }) => {
    for (let reader = 0; reader < READERS; reader++) await open(tenant, `id.neq=${reader}`)
    const witness = await openWitness(gateway, tenant, 'tenant_max_unsent_bytes')
    closing.push(witness.close)
    const refusals = () => figure('svc_http_limit_refusals_total', 'tenant_max_unsent_bytes')
    const before = await refusals()
    let most = 0
    // The first rows fill the buffers of both kernels.
    for (let n = 0; n < 500 && (await refusals()) === before; n++) {
      await admin.query(`insert into notes values ($1, $2, repeat('x', $3))`, [id + n, tenant, ROW])
      await logged(database)
      await witness.settled(id + n)
      most = Math.max(most, await figure('svc_http_result_bytes'))
    }
    expect(await refusals()).toBeGreaterThan(before)
    expect(most).toBeGreaterThan(UNREAD_MAX / 4)
    expect(most).toBeLessThan(UNREAD_MAX + READERS * ROW)
    // Other tenants are not affected.
    const other = await openSocket(gateway.url, { token: await gateway.token({ tenantId: 'other' }) })
    closing.push(() => other.socket.terminate())
    other.say({ type: 'subscribe', channel: 'svc_table_notes' })
    await other.nextOf('subscribed')
    await admin.query(`insert into notes values ($1, 'other', 'x')`, [id + 900])
    expect(await other.nextOf('notification')).toMatchObject({ operation: 'INSERT', new: { id: id + 900 } })
    for (const close of closing.splice(0)) close()
    await vi.waitFor(async () => expect(await figure('svc_http_result_bytes')).toBe(0), { timeout: 20_000 })
  },
)
