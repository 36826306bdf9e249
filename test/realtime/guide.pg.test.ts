/** What docs/guides/realtime.md shows works as it stands. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { WebSocket } from 'ws'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { type SampleDatabase, sampleDatabase } from '../support/sample.ts'
import { openSocket } from '../support/socket.ts'
import { read } from '../tidy/tree.ts'

const PAGE = read('docs/guides/realtime.md')
const MESSAGES = [...PAGE.matchAll(/^```json\n(.*)\n```/gm)].map(([, text = '']) => JSON.parse(text))
const [CLIENT = ''] = [...PAGE.matchAll(/^```js\n([\s\S]*?)^```/gm)].map(([, text = '']) => text)

let database: SampleDatabase
let gateway: TestGateway
let token: string

beforeAll(async () => {
  database = await sampleDatabase()
  gateway = await testGateway(database.url)
  const [tenant] = database.tenants
  token = await gateway.token({ tenantId: tenant?.id, userId: tenant?.userId, role: 'clerk' })
})

afterAll(async () => {
  await gateway?.close()
  await database?.drop()
})

test('each message that a client sends is answered as the page says', async () => {
  const sent = MESSAGES.filter(({ type }) => type !== 'notification')
  expect(sent).toHaveLength(2)
  const socket = await openSocket(gateway.url, { token })
  // The live query last: its rows come at once.
  for (const message of sent.toReversed()) {
    socket.say(message)
    expect(await socket.nextOf('subscribed')).toMatchObject({ id: message.id })
  }
  const shown = MESSAGES.find(({ type }) => type === 'notification')
  const answer = await socket.nextOf('notification')
  expect(Object.keys(answer)).toEqual(Object.keys(shown))
  expect(Object.keys(answer.rows[0])).toEqual(Object.keys(shown.rows[0]))
  await socket.close()
})

test('the client follows a table, and comes back', async () => {
  const sockets: WebSocket[] = []
  class Watched extends WebSocket {
    constructor(...given: ConstructorParameters<typeof WebSocket>) {
      super(...given)
      sockets.push(this)
    }
  }
  const follow = new Function('WebSocket', `${CLIENT}\nreturn follow`)(Watched)
  const ask = async (method: string, path: string, body?: unknown) => {
    const response = await fetch(gateway.url + path, {
      ...{ method, headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' } },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    // biome-ignore lint/suspicious/noExplicitAny: rows of a table that the page names
    return (response.status === 204 ? null : await response.json()) as any
  }
  let rows: readonly { id: number; name: string }[] = []
  const table = 'customers'
  follow({
    ...{ url: `${gateway.url.replace('http', 'ws')}/ws`, token: () => token, table },
    read: async () => (await ask('GET', `/api/${table}?limit=10000`)).data,
    onRows: (now: typeof rows) => {
      rows = now
    },
  })
  await vi.waitFor(() => expect(rows.length).toBeGreaterThan(0), { timeout: 10_000 })
  const [first] = rows
  const nameOf = (id: number | undefined) => rows.find(row => row.id === id)?.name
  await ask('PATCH', `/api/${table}/${first?.id}`, { name: 'Renamed' })
  await vi.waitFor(() => expect(nameOf(first?.id)).toBe('Renamed'), { timeout: 10_000 })
  sockets[0]?.terminate()
  await ask('PATCH', `/api/${table}/${first?.id}`, { name: 'Renamed while away' })
  await vi.waitFor(() => expect(nameOf(first?.id)).toBe('Renamed while away'), { timeout: 15_000 })
  const [, second] = sockets
  expect(sockets).toHaveLength(2)
  second?.close(1000)
  // Before the gateway ends, which the client would take for a reason to come back.
  await vi.waitFor(() => expect(second?.readyState).toBe(WebSocket.CLOSED), { timeout: 10_000 })
})
