/** `/demo/orders` shows the current open orders of one shop, whichever client changes them. */
import { execFileSync } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { WebSocket } from 'ws'
import { createBoard } from '../../src/demo/board.ts'
import { BROWSER_MISSING, openBrowser, type Page } from '../support/browser.ts'
import { databaseFixture } from '../support/fixtures.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { sampleDatabase } from '../support/sample.ts'
import { ROOT, read } from '../tidy/tree.ts'

const FILTER = 'status=in.(draft,pending,paid)'
const SELECT = 'id,number,status,total,currency,placed_at'
const PATIENT = { timeout: 60_000 }

let gateway: TestGateway

const claimsOf = (shop: number) => ({
  tenantId: database.tenants[shop]?.id,
  userId: database.tenants[shop]?.userId,
  role: 'clerk',
})

async function ask(method: string, path: string, body?: unknown, shop = 0) {
  const answer = await gateway.get(path, {
    ...{ as: claimsOf(shop), method, headers: { 'Content-Type': 'application/json' } },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  if (answer.status >= 400) throw new Error(answer.text)
  return answer.text === '' ? null : answer.json.data
}

let numbered = 0
async function create(shop = 0): Promise<number> {
  numbered += 1
  const [customer] = await ask('GET', '/api/customers?select=id&limit=1', undefined, shop)
  const order = { customer_id: customer.id, created_by: claimsOf(shop).userId, currency: 'EUR', total: 12.5 }
  const { id } = await ask('POST', '/api/orders', { ...order, status: 'pending', number: `NEW-${numbered}` }, shop)
  return id
}

async function openOrders(): Promise<readonly { readonly id: number; readonly status: string }[]> {
  const orders = await ask('GET', `/api/orders?${FILTER}&select=${SELECT}&sort=id&limit=10000`)
  expect(orders.length).toBeGreaterThan(100)
  expect(orders.length).toBeLessThan(10_000)
  return orders
}

function start(port = 0): Promise<TestGateway> {
  return testGateway(database.url, { routes: createBoard(), environment: { SVC_BIND: `127.0.0.1:${port}` } })
}

async function restart(): Promise<void> {
  const port = Number(new URL(gateway.url).port)
  await gateway.close()
  gateway = await start(port)
}

const database = databaseFixture(sampleDatabase)

beforeAll(async () => {
  gateway = await start()
})
afterAll(() => gateway?.close())

test('the files of the page are served with the content security policy of /docs, and only in the demo', async () => {
  const page = await gateway.get('/demo/orders', { as: null })
  expect(page.text).toBe(read('src/demo/board/page.html'))
  const docs = await gateway.get('/docs', { as: null })
  expect(page.headers.get('content-security-policy')).toBe(docs.headers.get('content-security-policy'))
  for (const [, name] of page.text.matchAll(/(?:src|href)="(orders\/[^"]+)"/g)) {
    expect((await gateway.get(`/demo/${name}`, { as: null })).status).toBe(200)
  }
  const other = await testGateway(database.url)
  expect((await other.get('/demo/orders', { as: null })).status).toBe(404)
  await other.close()
})

test('client.js is the client library, bundled', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-board-'))
  try {
    execFileSync(process.execPath, [`${ROOT}scripts/board-client.js`, folder])
    const bundle = await readFile(join(folder, 'client.js'), 'utf8')
    expect(bundle.length).toBeGreaterThan(10_000)
    expect((await gateway.get('/demo/orders/client.js', { as: null })).text).toBe(bundle)
    expect((await gateway.get('/demo/orders/board.js', { as: null })).text).toContain("from './client.js'")
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('a route passed to the gateway cannot replace one of the gateway’s paths', async () => {
  const page = {
    method: 'GET',
    answer: async () => ({ status: 200, headers: {}, body: Buffer.from('a page') }),
  } as const
  const paths = ['/metrics', '/docs', '/health', '/elsewhere']
  const other = await testGateway(database.url, { routes: new Map(paths.map(path => [path, page])) })
  const answers = await Promise.all(paths.map(async path => (await other.get(path, { as: null })).text === 'a page'))
  expect(answers).toEqual([false, false, false, true])
  await other.close()
})

// biome-ignore lint/suspicious/noExplicitAny: rows of a table that the test names
type Rows = ReadonlyMap<string, any>

/** The example client in this process: its behaviour when connections break and tokens expire. */
describe('follow.js', { timeout: 120_000 }, () => {
  const sockets: WebSocket[] = []
  const asked: (string | null)[] = []
  const told: string[] = []
  let rows: Rows = new Map()
  let end = () => {}

  async function begin(token: (why: string | null) => Promise<string>): Promise<void> {
    const { follow } = await import(/* @vite-ignore */ pathToFileURL(`${ROOT}src/client/follow.js`).href)
    end = follow({
      ...{ base: `${gateway.url}/`, table: 'orders', filter: FILTER, select: SELECT, onState() {} },
      token: (why: string | null) => {
        asked.push(why)
        return token(why)
      },
      onChange: (now: Rows) => {
        rows = now
      },
    })
  }

  /** Resolves when it shows the result of a SELECT. */
  const isRight = () =>
    vi.waitFor(async () => {
      expect([...rows.values()].sort((a, b) => a.id - b.id)).toEqual(await openOrders())
    }, PATIENT)

  beforeEach(() => {
    class Watched extends WebSocket {
      constructor(url: string) {
        super(url)
        sockets.push(this)
        this.on('message', data => told.push(String(data)))
        // Without a listener on the port, a page sees a closed connection.
        this.on('error', () => {})
      }
    }
    vi.stubGlobal('WebSocket', Watched)
    sockets.length = 0
    asked.length = 0
    told.length = 0
    rows = new Map()
  })
  afterEach(() => {
    end()
    vi.useRealTimers()
    vi.unstubAllGlobals()
  })

  test('ends with the result of a SELECT, whatever happens in between', async () => {
    await begin(() => gateway.token(claimsOf(0)))
    // The first changes arrive while the rows are still being read.
    for (const [index, { id }] of (await openOrders()).slice(0, 40).entries()) {
      if (index % 4 === 0) await ask('PATCH', `/api/orders/${id}`, { status: 'shipped' })
      else if (index % 4 === 1) await ask('PATCH', `/api/orders/${id}`, { total: index })
      else if (index % 4 === 2) await ask('DELETE', `/api/orders/${await create()}`)
      else await create(index % 3)
      if (index === 15 || index === 25) sockets.at(-1)?.terminate()
      if (index === 30) await restart()
    }
    await isRight()
    expect(sockets.length).toBeGreaterThan(1)
    expect(asked.every(why => why === null)).toBe(true)
  })

  test('applies events received during the read to the rows that it read', async () => {
    const { fetch } = globalThis
    let created = 0
    vi.stubGlobal('fetch', async (...given: Parameters<typeof fetch>) => {
      const response = await fetch(...given)
      if (!(given[0] instanceof URL) || created > 0) return response
      // The client's own read has been answered, so it cannot contain later changes.
      created = await create()
      await vi.waitFor(() => expect(told.map(text => JSON.parse(text).key?.id)).toContain(created), PATIENT)
      return response
    })
    await begin(() => gateway.token(claimsOf(0)))
    await vi.waitFor(() => expect(rows.size).toBeGreaterThan(0), PATIENT)
    expect([...rows.values()].map(row => row.id)).toContain(created)
  })

  test('receives the events missed while the connection was broken, without reading all rows again', async () => {
    await begin(() => gateway.token(claimsOf(0)))
    await isRight()
    const { fetch } = globalThis
    let reads = 0
    vi.stubGlobal('fetch', (...given: Parameters<typeof fetch>) => {
      if (given[0] instanceof URL) reads += 1
      return fetch(...given)
    })
    sockets[0]?.terminate()
    await ask('DELETE', `/api/orders/${await create()}`)
    await create()
    await isRight()
    expect([sockets.length, reads]).toEqual([2, 0])
  })

  test('treats a connection as broken if a ping is not answered', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    await begin(() => gateway.token(claimsOf(0)))
    await isRight()
    sockets[0]?.pause()
    vi.advanceTimersByTime(40_000)
    await create()
    await isRight()
    expect(sockets).toHaveLength(2)
  })

  test('continues with a new token before the current one expires', async () => {
    await begin(why => gateway.token({ ...claimsOf(0), expiresInSeconds: why === null ? 20 : 600 }))
    await isRight()
    expect(asked).toEqual([null, 'expires'])
    await create()
    await isRight()
    expect(sockets).toHaveLength(1)
  })

  test('discards its rows and requests a new token when the current one is rejected', async () => {
    let good = 'not.a.token'
    await begin(async why => (why === 'refused' ? await gateway.token(claimsOf(1)) : good))
    await vi.waitFor(() => expect(asked).toEqual([null, 'refused']), PATIENT)
    end()
    good = await gateway.token(claimsOf(0))
    asked.length = 0
    await begin(async why => (why === 'refused' ? new Promise(() => {}) : good))
    await isRight()
    good = 'not.a.token'
    sockets.at(-1)?.terminate()
    await vi.waitFor(() => expect(asked).toEqual([null, null, 'refused']), PATIENT)
    expect(rows.size).toBe(0)
  })
})

if (BROWSER_MISSING !== null) process.stderr.write(`board.pg.test.ts: the page is not opened: ${BROWSER_MISSING}\n`)

// Without a browser these tests are skipped; the message above says so.
describe.skipIf(BROWSER_MISSING !== null)('in a browser', () => {
  let page: Page
  const isLive = () => page.until(`document.querySelector('.shop').dataset.state === 'live'`)
  const card = (id: number, status: string) =>
    `document.querySelector('[data-status="${status}"] article[data-id="${id}"]')`
  const shown = async () =>
    page.evaluate(`[...document.querySelectorAll('article')].map(card =>
      ({ id: Number(card.dataset.id), status: card.closest('section').dataset.status })).sort((a, b) => a.id - b.id)`)
  const expected = async () => (await openOrders()).map(({ id, status }) => ({ id, status }))

  beforeAll(async () => {
    page = await openBrowser()
    const token = await gateway.token(claimsOf(0))
    await page.open(`${gateway.url}/demo/orders#token=${token}`)
    await page.until(`document.querySelectorAll('article').length > 0`)
  }, 120_000)
  afterAll(() => page?.close())

  test('shows the orders of the token in the address, and removes the token from it', async () => {
    expect(await page.evaluate('window.location.hash')).toBe('')
    expect(await shown()).toEqual(await expected())
    expect(await page.evaluate(`document.querySelector('[data-status=pending] h3').textContent`)).toBe(
      `Pending ${(await expected()).filter(({ status }) => status === 'pending').length}`,
    )
  })

  test('an order appears, moves and disappears as other users create, change and delete it', {
    timeout: 60_000,
  }, async () => {
    const id = await create()
    await page.until(`${card(id, 'pending')} !== null`)
    await ask('PATCH', `/api/orders/${id}`, { status: 'paid', total: 4321.5 })
    await page.until(`${card(id, 'paid')} !== null`)
    expect(await page.evaluate(`${card(id, 'paid')}.textContent.replace(/\\D/g, '')`)).toContain('432150')
    expect(await page.evaluate(`${card(id, 'pending')}`)).toBeNull()
    await ask('DELETE', `/api/orders/${id}`)
    await page.until(`${card(id, 'paid')} === null`)
    expect(await shown()).toEqual(await expected())
  })

  test('text written by users is displayed as text', { timeout: 60_000 }, async () => {
    const id = await create()
    await ask('PATCH', `/api/orders/${id}`, { number: '<img src=x onerror="document.title=1">' })
    await page.until(`${card(id, 'pending')}?.textContent.includes('onerror') === true`)
    expect(await page.evaluate(`document.querySelector('article img')`)).toBeNull()
  })

  test('reconnects after the gateway was stopped, and shows the current state', { timeout: 120_000 }, async () => {
    await restart()
    const id = await create()
    await page.until(`${card(id, 'pending')} !== null`)
    await isLive()
    expect(await shown()).toEqual(await expected())
    // The browser logs an error for each attempt while the gateway is stopped.
    expect(
      page.complaints.splice(0).filter(text => !text.includes('WebSocket') && !text.includes('Failed to')),
    ).toEqual([])
  })

  test('never receives orders of another shop', { timeout: 60_000 }, async () => {
    const theirs = await create(1)
    await ask('PATCH', `/api/orders/${theirs}`, { status: 'paid' }, 1)
    await ask('DELETE', `/api/orders/${theirs}`, undefined, 1)
    const other = await create(1)
    const mine = await create()
    await page.until(`${card(mine, 'pending')} !== null`)
    expect(page.heard.length).toBeGreaterThan(5)
    const ids = page.heard.flatMap(text => JSON.parse(text).key?.id ?? [])
    expect(ids).toContain(mine)
    expect(ids.filter(id => id === theirs || id === other)).toEqual([])
    expect(page.requested.filter(url => !url.startsWith(gateway.url) && !url.startsWith('data:'))).toEqual([
      ...page.requested.filter(url => url === `${gateway.url.replace('http', 'ws')}/ws`),
    ])
    expect(page.complaints).toEqual([])
  })

  test('shows the other shop’s orders with that shop’s token', { timeout: 60_000 }, async () => {
    const token = await gateway.token(claimsOf(1))
    const id = await create(1)
    await page.evaluate(`document.getElementById('token').value = ${JSON.stringify(token)}`)
    await page.evaluate(`document.getElementById('caller').requestSubmit()`)
    await page.until(`${card(id, 'pending')} !== null`)
    const theirs = await ask('GET', `/api/orders?${FILTER}&select=id,status&sort=id&limit=10000`, undefined, 1)
    expect(await shown()).toEqual(theirs)
  })
})
