/** One tenant cannot use up what all tenants share with requests for shapes (docs/reference/shapes.md). */
import type { Socket } from 'node:net'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'
import { clientFixture, databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import type { TestGateway } from '../support/gateway.ts'
import { installed, logged } from '../support/install.ts'
import { connectTo } from '../support/raw-http.ts'
import { figuresOf, NOTES, openWitness } from '../support/slow-readers.ts'

const database = databaseFixture(NOTES)
const admin = clientFixture(() => database.adminUrl)
beforeAll(() => installed(database))

const SHAPES = '\n[shapes]\nenabled = true\nlong_poll_ms = 60000'
const gateway = gatewayFixture(database, { toml: `tenant_max_waiting_shapes = 3${SHAPES}` })
const small = gatewayFixture(database, { toml: `tenant_max_unsent_bytes = 1048576${SHAPES}` })
const UNREAD_MAX = 8 * 1024 * 1024
const ofTenant = gatewayFixture(database, { toml: `tenant_max_unsent_bytes = ${UNREAD_MAX}${SHAPES}` })
const ofAll = gatewayFixture(database, { toml: `max_unsent_bytes = ${UNREAD_MAX}${SHAPES}` })
const grouped = gatewayFixture(database, { toml: `tenant_max_subscription_groups = 2${SHAPES}` })

const PATIENT = { timeout: 10_000 }
const running: AbortController[] = []
const sockets: Socket[] = []
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
  for (const aborter of running.splice(0)) aborter.abort()
})

/** A request that waits for changes. Its response to a long poll comes with the next change. */
async function waiting(of: TestGateway, tenantId: string, { where = '', events = false } = {}) {
  const query = `table=notes${where === '' ? '' : `&where=${encodeURIComponent(where)}`}`
  const first = await of.get(`/v1/shape?${query}&offset=now`, { as: { tenantId } })
  if (first.status !== 200)
    return { response: Promise.resolve(new Response(first.text, first)), again: async () => first, end() {} }
  const at = ['handle', 'offset'].map(name => `${name}=${first.headers.get(`electric-${name}`)}`).join('&')
  const aborter = new AbortController()
  running.push(aborter)
  const headers = { Authorization: `Bearer ${await of.token({ tenantId })}` }
  const url = `${of.url}/v1/shape?${query}&${at}&live=true${events ? '&live_sse=true' : ''}`
  const response = fetch(url, { headers, signal: aborter.signal })
  response.catch(() => {})
  const again = () => of.get(`/v1/shape?${query}&${at}`, { as: { tenantId } })
  return { response, again, end: () => aborter.abort() }
}

async function figure(name: string, limit?: string, of: TestGateway = gateway): Promise<number> {
  return (await figuresOf(of))(name, limit)
}

test('waiting requests of one tenant are limited, and no others', { timeout: 60_000 }, async () => {
  const isWaiting = (count: number) =>
    vi.waitFor(async () => expect(await figure('svc_shapes_waiting')).toBe(count), PATIENT)
  const polls = [await waiting(gateway, 't1'), await waiting(gateway, 't1', { where: 'id > 5' })]
  const events = await waiting(gateway, 't1', { events: true })
  expect((await events.response).status).toBe(200)
  await isWaiting(3)
  for (const more of [{}, { events: true }]) {
    const refused = await (await waiting(gateway, 't1', more)).response
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '5'])
    expect(await refused.json()).toEqual({
      code: 'concurrency_limit',
      message:
        'the tenant already has 3 requests for shapes that wait for changes, the limit (tenant_max_waiting_shapes); ' +
        'close some, or try again later',
    })
  }
  expect(await figure('svc_http_limit_refusals_total', 'tenant_max_waiting_shapes')).toBe(2)
  // A request that does not wait is answered, and so are those of another tenant.
  expect((await gateway.get('/v1/shape?table=notes&offset=-1', { as: { tenantId: 't1' } })).status).toBe(200)
  const other = await waiting(gateway, 't2')
  await isWaiting(4)
  await admin.query(`insert into notes values (1, 't2', 'theirs')`)
  expect((await other.response).status).toBe(200)
  await isWaiting(3)
  // Each end of a request frees a place: of the client's connection, and with a response.
  events.end()
  await isWaiting(2)
  const again = await waiting(gateway, 't1')
  await isWaiting(3)
  await admin.query(`insert into notes values (9, 't1', 'mine')`)
  for (const { response } of [...polls, again]) expect((await response).status).toBe(200)
  await isWaiting(0)
  for (let n = 0; n < 3; n++) expect((await (await waiting(gateway, 't1', { events: true })).response).status).toBe(200)
})

test('different shapes of one tenant are limited, and equal ones count once', { timeout: 60_000 }, async () => {
  const statusOf = async (tenantId: string, where: string) =>
    (await (await waiting(grouped, tenantId, { where, events: true })).response).status
  for (const where of ['id = 1', 'id = 2', 'id = 1']) expect(await statusOf('t3', where)).toBe(200)
  const refused = await (await waiting(grouped, 't3', { where: 'id = 3', events: true })).response
  expect([refused.status, await refused.text()]).toEqual([
    429,
    expect.stringContaining('tenant_max_subscription_groups'),
  ])
  expect(await statusOf('t4', 'id = 3')).toBe(200)
})

test.each([
  { events: false, id: 20 },
  { events: true, id: 21 },
])(
  'a large change is not printed for all clients at once (events: $events)',
  { timeout: 60_000 },
  async ({ events, id }) => {
    const clients = await Promise.all(Array.from({ length: 12 }, () => waiting(small, 't5', { events })))
    const others = await waiting(small, 't6')
    const answered = events ? await Promise.all(clients.map(({ response }) => response)) : []
    await vi.waitFor(async () => {
      expect(await figure('svc_shapes_waiting', undefined, small)).toBe(13)
    }, PATIENT)
    await admin.query(`insert into notes values (${id + 10}, 't6', 'theirs'), (${id}, 't5', repeat('x', 700000))`)
    const received = events
      ? await Promise.all(answered.map(response => untilInsert(response)))
      : (await Promise.all(clients.map(({ response }) => response))).map(({ status }) => status === 200)
    expect(received).toContain(true)
    expect(received).toContain(false)
    expect((await others.response).status).toBe(200)
    // Their next requests have the change.
    for (const { again } of clients) {
      await vi.waitFor(
        async () => expect((await again()).json[0]).toMatchObject({ value: { id: String(id) } }),
        PATIENT,
      )
    }
  },
)

/** True if a stream has the change; false if it ends without it. */
async function untilInsert(response: Response): Promise<boolean> {
  for await (const text of response.body?.pipeThrough(new TextDecoderStream()) ?? [])
    if (text.includes('"operation":"insert"')) return true
  return false
}

/** A stream of events whose client reads nothing. */
async function unread(of: TestGateway, tenantId: string, where: string): Promise<Socket> {
  const query = `table=notes&where=${encodeURIComponent(where)}`
  const { headers } = await of.get(`/v1/shape?${query}&offset=now`, { as: { tenantId } })
  const at = ['handle', 'offset'].map(name => `${name}=${headers.get(`electric-${name}`)}`).join('&')
  const socket = connectTo(of.url)
  sockets.push(socket)
  const head = [`Host: ${new URL(of.url).host}`, `Authorization: Bearer ${await of.token({ tenantId })}`, '', '']
  socket.write(`GET /v1/shape?${query}&${at}&live=true&live_sse=true HTTP/1.1\r\n${head.join('\r\n')}`)
  return socket
}

test.each([
  { limit: 'tenant_max_unsent_bytes', of: ofTenant, tenant: 't7', id: 1_000 },
  { limit: 'max_unsent_bytes', of: ofAll, tenant: 't8', id: 2_000 },
])(
  'the changes that wait for slow readers of different shapes count towards $limit',
  { timeout: 60_000 },
  async ({ limit, of, tenant, id }) => {
    const readers = 6
    for (let reader = 0; reader < readers; reader++) await unread(of, tenant, `id <> ${reader}`)
    const other = await waiting(of, 'another', { events: true })
    expect((await other.response).status).toBe(200)
    await vi.waitFor(async () => expect(await figure('svc_shapes_waiting', undefined, of)).toBe(readers + 1), PATIENT)
    const witness = await openWitness(of, tenant, limit)
    const row = 100_000
    let waitingMost = 0
    let most = 0
    // The first rows fill the buffers of both kernels.
    for (let n = 0; n < 400 && (await figure('svc_http_limit_refusals_total', limit, of)) === 0; n++) {
      await admin.query(`insert into notes values ($1, $2, repeat('x', $3))`, [id + n, tenant, row])
      await logged(database)
      await witness.settled(id + n)
      const figures = await figuresOf(of)
      const waits = figures('svc_http_result_bytes')
      waitingMost = Math.max(waitingMost, waits)
      most = Math.max(most, waits + figures('svc_http_unsent_bytes'))
    }
    witness.close()
    expect(await figure('svc_http_limit_refusals_total', limit, of)).toBeGreaterThan(0)
    expect(waitingMost).toBeGreaterThan(UNREAD_MAX / 2)
    // The last delivery that was accepted can exceed the limit.
    expect(most).toBeLessThan(UNREAD_MAX + readers * row)
    // Another tenant receives its change.
    await admin.query(`insert into notes values ($1, 'another', 'small')`, [id + 900])
    expect(await untilInsert(await other.response)).toBe(true)
    // The changes of a connection are dropped with it.
    for (const socket of sockets.splice(0)) socket.destroy()
    other.end()
    await vi.waitFor(async () => expect(await figure('svc_http_result_bytes', undefined, of)).toBe(0), PATIENT)
  },
)
