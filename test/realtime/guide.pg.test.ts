/** The messages and code in docs/guides/realtime.md work as shown. */
import { pathToFileURL } from 'node:url'
import { beforeAll, expect, test, vi } from 'vitest'
import { WebSocket } from 'ws'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { sampleDatabase } from '../support/sample.ts'
import { openSocket } from '../support/socket.ts'
import { ROOT, read } from '../tidy/tree.ts'

const PAGE = read('docs/guides/realtime.md')
const MESSAGES = [...PAGE.matchAll(/^```json\n(.*)\n```/gm)].map(([, text = '']) => JSON.parse(text))
const [CLIENT = ''] = [...PAGE.matchAll(/^```js\n([\s\S]*?)^```/gm)].map(([, text = '']) => text)

let token: string
const database = databaseFixture(sampleDatabase)
const gateway = gatewayFixture(database)

beforeAll(async () => {
  const [tenant] = database.tenants
  token = await gateway.token({ tenantId: tenant?.id, userId: tenant?.userId, role: 'clerk' })
})

test('each message of a client gets the response on the page', async () => {
  const sent = MESSAGES.filter(({ type }) => type !== 'notification')
  expect(sent).toHaveLength(2)
  const socket = await openSocket(gateway.url, { token })
  // The live query is sent last, because its rows arrive at once.
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

test('the client function follows a table as the page shows, and reconnects', { timeout: 60_000 }, async () => {
  const sockets: WebSocket[] = []
  class Watched extends WebSocket {
    constructor(...given: ConstructorParameters<typeof WebSocket>) {
      super(...given)
      sockets.push(this)
    }
  }
  vi.stubGlobal('WebSocket', Watched)
  const { follow } = await import(/* @vite-ignore */ pathToFileURL(`${ROOT}src/client/follow.js`).href)
  const [line = ''] = CLIENT.split('\n')
  expect(line).toBe("import { follow } from './follow.js'")
  const code = CLIENT.replace(line, '').replace('http://127.0.0.1:8080/', `${gateway.url}/`)
  const names = ['follow', 'getToken', 'show', 'showState', 'showError']
  let rows: readonly { id: number; name: string }[] = []
  const states: string[] = []
  const errors: unknown[] = []
  const stop = new Function(...names, `${code}\nreturn stop`)(
    follow,
    () => token,
    (now: typeof rows) => {
      rows = now
    },
    (state: string) => states.push(state),
    (...error: unknown[]) => errors.push(error),
  )
  const rename = async (id: number | undefined, name: string) => {
    const { status } = await fetch(`${gateway.url}/api/customers/${id}`, {
      ...{ method: 'PATCH', headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' } },
      body: JSON.stringify({ name }),
    })
    expect(status).toBe(200)
  }
  await vi.waitFor(() => expect(rows.length).toBeGreaterThan(0), { timeout: 10_000 })
  const [first] = rows
  const nameOf = (id: number | undefined) => rows.find(row => row.id === id)?.name
  await rename(first?.id, 'Renamed')
  await vi.waitFor(() => expect(nameOf(first?.id)).toBe('Renamed'), { timeout: 10_000 })
  sockets[0]?.terminate()
  await rename(first?.id, 'Renamed while away')
  await vi.waitFor(() => expect(nameOf(first?.id)).toBe('Renamed while away'), { timeout: 15_000 })
  expect(sockets).toHaveLength(2)
  expect(states).toEqual(['connecting', 'live', 'waiting', 'connecting', 'live'])
  expect(errors).toEqual([])
  stop()
  await vi.waitFor(() => expect(sockets[1]?.readyState).toBe(WebSocket.CLOSED), { timeout: 10_000 })
  vi.unstubAllGlobals()
})
