/** The output of `svc demo` works as printed, and nothing is left when it closes. */
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BROWSER_MISSING, openBrowser, type Page } from '../../test/support/browser.ts'
import { auditScreen } from '../../test/support/console.ts'
import { type Demo, startDemo } from './demo.ts'
import { describeProcess } from './process.ts'

const PATIENT = { timeout: 60_000 }

const cache = mkdtempSync(join(tmpdir(), 'svc-demo-'))
chmodSync(cache, 0o755)
const occupied = createServer()
const printed: string[] = []
const emphasized: string[] = []
let port: number
let demo: Demo

beforeAll(async () => {
  occupied.listen(0, '127.0.0.1')
  await once(occupied, 'listening')
  port = (occupied.address() as AddressInfo).port
  const emphasize = (name: string): string => {
    emphasized.push(name.trimEnd())
    return name
  }
  demo = await startDemo({ port, cache, print: line => printed.push(line), emphasize })
}, 120_000)

afterAll(async () => {
  await demo?.close()
  occupied.close()
  rmSync(cache, { recursive: true, force: true, maxRetries: 10 })
})

test('a port in use is reported, and the next free one is used', () => {
  expect(printed).toContainEqual(expect.stringMatching(`^Port ${port} is in use; using \\d+\\.$`))
  expect(Number(new URL(demo.url).port)).toBeGreaterThan(port)
  expect(printed).toContain(`The gateway listens on ${demo.url}`)
})

// Without a browser this test is skipped.
test.skipIf(BROWSER_MISSING !== null)('the start page says so too', PATIENT, async () => {
  const page = await openBrowser()
  try {
    await page.open(demo.url)
    await page.until(`!document.getElementById('notice').hidden`)
    expect(printed).toContain(await page.evaluate(`document.getElementById('notice').textContent`))
  } finally {
    await page.close()
  }
})

test('the text is short: addresses, identities, commands to paste, and how to stop', () => {
  const text = printed.join('\n')
  expect(text.slice(text.indexOf('The gateway listens')).split('\n').length).toBeLessThan(25)
  expect(text).toContain('Ctrl-C stops everything.')
  expect(Object.keys(tokens())).toEqual(['Northlight Bikes', 'Harbour Coffee', 'Operator'])
  // The values of a list are below each other.
  const columns = printed.flatMap(line => /^ {2}(?!curl)(\S.*? {2,})(?=[\w.:/-]{20,}$)/.exec(line)?.[1]?.length ?? [])
  expect(columns).toHaveLength(7)
  expect([new Set(columns.slice(0, 4)).size, new Set(columns.slice(4)).size]).toEqual([1, 1])
  const pages = ['Start page', 'Console', 'Live orders', 'API reference']
  expect(emphasized).toEqual([...pages, ...Object.keys(tokens())])
})

test('the printed read commands succeed', async () => {
  const lines = printed.filter(line => line.startsWith('  curl ') && !line.includes(' -d '))
  expect(lines).toHaveLength(2)
  const [list, nested] = await Promise.all(lines.map(pasted))
  expect(JSON.parse(list ?? '')).toMatchObject({ data: [{ id: 1 }, { id: 2 }, { id: 3 }], count: 3, limit: 3 })
  const { data } = JSON.parse(nested ?? '') as {
    data: { id: number; order_items: { line: number; product: { sku: string } }[] }
  }
  expect(data.id).toBe(13_001)
  expect(data.order_items.map(item => [item.line, item.product.sku.slice(0, 4)])).toEqual([
    [1, 'HAR-'],
    [2, 'HAR-'],
  ])
})

test('the printed write command creates an order', async () => {
  const line = printed.find(line => line.includes(' -d ')) ?? ''
  const [, url, type, body = ''] =
    /^ {2}curl -s -w '\\n' -H '@[^']+' '([^']+)' -H 'Content-Type: ([^']+)' -d '(.*)'$/.exec(
      line.replace("'$(date +%s)'", '1'),
    ) ?? []
  const response = await fetch(url ?? '', {
    ...{ method: 'POST', body, headers: { ...bearer(tokens()['Northlight Bikes']), 'content-type': type ?? '' } },
  })
  expect(await response.json()).toMatchObject({ data: { number: 'NEW-1', status: 'pending' } })
  expect(response.status).toBe(201)
})

test('each printed address shows its page', async () => {
  const addresses = printed.flatMap(line => /^ {2}\S.* {2,}(http:\S+)$/.exec(line)?.[1] ?? [])
  expect(addresses).toEqual(['/', '/console', '/demo/orders', '/docs'].map(path => demo.url + path))
  const titles = addresses.map(async address => {
    const page = await (await fetch(address, { headers: { accept: 'text/html' } })).text()
    return /<title>(.*)<\/title>/.exec(page)?.[1]
  })
  expect(await Promise.all(titles)).toEqual(['svc', 'Console', 'Open orders', 'API reference'])
})

test('visitors can be either clerk', async () => {
  const state = (await (await fetch(`${demo.url}/front/state`)).json()) as {
    hasConsole: boolean
    callers: { title: string; token: string }[]
  }
  expect(state.hasConsole).toBe(true)
  expect(state.callers.map(({ title }) => title)).toEqual(['a clerk of Northlight Bikes', 'a clerk of Harbour Coffee'])
  for (const { token } of state.callers) {
    const { iat, exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    expect(exp - iat).toBe(3_600)
    expect((await fetch(`${demo.url}/api/orders?limit=1`, { headers: bearer(token) })).status).toBe(200)
  }
})

test('the operator’s routes need the printed admin token', async () => {
  const status = async (token?: string): Promise<number> =>
    (await fetch(`${demo.url}/internal/checks`, { headers: bearer(token) })).status
  expect(await status(tokens().Operator)).toBe(200)
  expect(await status(tokens()['Northlight Bikes'])).toBe(401)
  expect(await status()).toBe(401)
})

test('a tenant gets no rows of the other, and requests without a token are rejected', async () => {
  const status = async (path: string, token?: string): Promise<number> =>
    (await fetch(demo.url + path, { headers: bearer(token) })).status
  expect(await status('/api/orders/1', tokens()['Northlight Bikes'])).toBe(200)
  expect(await status('/api/orders/1', tokens()['Harbour Coffee'])).toBe(404)
  expect(await status('/api/orders/1')).toBe(401)
})

describe('the page of open orders', () => {
  const send = (query: string, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${demo.url}/demo/orders/sql?${query}`, { method: 'POST', headers })

  test('offers tokens and writes to this machine only', async () => {
    const shops = await get('/demo/orders/shops', {})
    expect(JSON.parse(shops.body).shops).toMatchObject([{ slug: 'northlight' }, { slug: 'harbour' }])
    const elsewhere = { Host: 'attacker.example' }
    expect(JSON.parse((await get('/demo/orders/shops', elsewhere)).body)).toEqual({ shops: [] })
    expect((await get('/demo/orders/sql?shop=harbour&change=insert', elsewhere, 'POST')).status).toBe(403)
    expect((await send('shop=harbour&change=insert', { Origin: 'https://attacker.example' })).status).toBe(403)
    expect((await fetch(`${demo.url}/demo/orders/sql?shop=harbour&change=insert`)).status).toBe(405)
  })

  test('names the values that a write accepts', async () => {
    const messages = ['', 'shop=harbour', 'shop=harbour&change=constructor'].map(async query => {
      const response = await send(query)
      return [response.status, ((await response.json()) as { error: { message: string } }).error.message]
    })
    expect(await Promise.all(messages)).toEqual([
      [400, 'shop must be one of: northlight, harbour'],
      [400, 'change must be one of: insert, advance'],
      [400, 'change must be one of: insert, advance'],
    ])
  })

  // Without a browser these tests are skipped.
  describe.skipIf(BROWSER_MISSING !== null)('in a browser', () => {
    let page: Page
    beforeAll(async () => {
      page = await openBrowser()
    })
    afterAll(() => page?.close())

    const shop = (index: number) => `document.querySelectorAll('.shop')[${index}]`
    const count = (index: number, status: string): Promise<number> =>
      page.evaluate(`Number(${shop(index)}.querySelector('[data-status=${status}] output').textContent)`)
    const isLive = (index: number) =>
      page.until(`${shop(index)}?.dataset.state === 'live' && ${shop(index)}.querySelector('article') !== null`)
    async function open(): Promise<void> {
      await page.open(`${demo.url}/demo/orders`)
      await isLive(0)
      await isLive(1)
    }

    test('a write through plain SQL reaches its shop only', PATIENT, async () => {
      await open()
      const before = [await count(0, 'draft'), await count(1, 'draft'), await count(1, 'pending')] as const
      const heard = page.heard.length
      await page.evaluate(`${shop(1)}.querySelector('[data-change=insert]').click()`)
      await page.until(`${shop(1)}.querySelector('[data-status=draft] output').textContent === '${before[1] + 1}'`)
      await page.evaluate(`${shop(1)}.querySelector('[data-change=advance]').click()`)
      await page.until(`${shop(1)}.querySelector('[data-status=pending] output').textContent === '${before[2] + 1}'`)
      expect([await count(0, 'draft'), await count(1, 'draft')]).toEqual([before[0], before[1]])
      const received = (index: number) => page.evaluate(`${shop(index)}.querySelector('.heard output').textContent`)
      expect([await received(0), await received(1)]).toEqual(['0', '2'])
      expect(await page.evaluate(`${shop(1)}.querySelector('.statement').innerText`)).toContain('UPDATE orders')
      const changes = page.heard
        .slice(heard)
        .map(text => JSON.parse(text))
        .filter(message => message.key !== undefined)
      expect(changes.map(({ operation }) => operation)).toEqual(['INSERT', 'UPDATE'])
      expect(page.complaints).toEqual([])
    })

    test('with a token in the address, one caller is shown', PATIENT, async () => {
      await page.open('about:blank')
      await page.open(`${demo.url}/demo/orders#token=${tokens()['Harbour Coffee']}`)
      await isLive(0)
      expect(await page.evaluate(`document.querySelectorAll('.shop').length`)).toBe(1)
    })

    test.each([360, 768, 1440].flatMap(width => (['light', 'dark'] as const).map(theme => ({ width, theme }))))(
      'fits $width px, $theme',
      PATIENT,
      async view => {
        await page.show(view.width, view.theme)
        await page.open('about:blank')
        await open()
        await page.evaluate(`${shop(0)}.querySelector('[data-change=insert]').click()`)
        await page.until(`!${shop(0)}.querySelector('.statement').hidden`)
        await auditScreen(page, 'orders', view)
      },
    )
  })
})

test('closing ends the server and frees the port', async () => {
  const pidFile = printed.join('\n').match(/-H '@(.*)\/northlight\.header'/)?.[1]
  const postmaster = Number.parseInt(readFileSync(join(pidFile ?? '', 'data', 'postmaster.pid'), 'utf8'), 10)
  expect(await describeProcess(postmaster)).not.toBe(null)
  await demo.close()
  expect(await describeProcess(postmaster)).toBe(null)
  await expect(fetch(demo.url)).rejects.toThrow('fetch failed')
})

/** The printed tokens by the names before them. */
function tokens(): Readonly<Record<string, string>> {
  const rows = printed.map(line => /^ {2}(\S.*?) {2,}([\w.-]{40,})$/.exec(line))
  return Object.fromEntries(rows.flatMap(row => (row === null ? [] : [[row[1] ?? '', row[2] ?? '']])))
}

function bearer(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` }
}

/** A request with any `Host`, which fetch does not permit. */
async function get(path: string, headers: Record<string, string>, method = 'GET') {
  const response = await new Promise<IncomingMessage>((resolve, reject) =>
    request(demo.url + path, { headers, method }, resolve)
      .on('error', reject)
      .end(),
  )
  return { status: response.statusCode, body: await text(response) }
}

/** Does what the shell and curl would do; the test machine may lack curl. */
async function pasted(line: string): Promise<string> {
  const [, file, url] = /^ {2}curl -s -w '\\n' -H '@([^']+)' '([^']+)'$/.exec(line) ?? []
  const [name, value] = readFileSync(file ?? '', 'utf8')
    .trim()
    .split(': ')
  const response = await fetch(url ?? '', { headers: { [name ?? '']: value ?? '' } })
  expect(response.status, url).toBe(200)
  return response.text()
}
