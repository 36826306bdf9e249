/** The output of `svc demo` works as printed, and nothing is left when it closes. */
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Demo, startDemo } from './demo.ts'
import { describeProcess } from './process.ts'

const cache = mkdtempSync(join(tmpdir(), 'svc-demo-'))
chmodSync(cache, 0o755)
const occupied = createServer()
const printed: string[] = []
let port: number
let demo: Demo

beforeAll(async () => {
  occupied.listen(0, '127.0.0.1')
  await once(occupied, 'listening')
  port = (occupied.address() as AddressInfo).port
  demo = await startDemo({ port, cache, print: line => printed.push(line) })
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

test('the printed read commands succeed', async () => {
  const lines = printed.filter(line => line.startsWith('curl ') && !line.includes(' -d '))
  expect(lines).toHaveLength(5)
  const [list, filtered, one, nested, stream] = await Promise.all(lines.map(pasted))

  expect(JSON.parse(list ?? '')).toMatchObject({ data: [{ id: 1 }, { id: 2 }, { id: 3 }], count: 3, limit: 3 })
  const products = (JSON.parse(filtered ?? '') as { data: { name: string; price: number; stock: number }[] }).data
  expect(products).toHaveLength(5)
  expect(products.map(product => product.price)).toEqual(products.map(product => product.price).sort((a, b) => b - a))
  expect(products.every(product => product.price < 100 && Object.keys(product).join() === 'name,price,stock')).toBe(
    true,
  )
  expect(JSON.parse(one ?? '')).toMatchObject({
    data: { id: 1, number: 'SO-000001', customer: { country: expect.any(String) } },
  })
  const { data } = JSON.parse(nested ?? '') as {
    data: { id: number; order_items: { line: number; product: { sku: string } }[] }
  }
  expect(data.id).toBe(13_001)
  expect(data.order_items.map(item => [item.line, item.product.sku.slice(0, 4)])).toEqual([
    [1, 'HAR-'],
    [2, 'HAR-'],
  ])
  const first = (stream ?? '').split('\n').slice(0, 3)
  expect(first.map(text => JSON.parse(text) as { order_id: number; line: number })).toMatchObject([
    { order_id: 1, line: 1 },
    { order_id: 1, line: 2 },
    { order_id: 2, line: 1 },
  ])
})

test('the printed address shows the live orders, and the printed write command creates an order', async () => {
  const address = printed.find(line => line.includes('/demo/orders#token=')) ?? ''
  const [token] = printed.filter(line => line.startsWith('eyJ'))
  expect(address).toBe(`${demo.url}/demo/orders#token=${token}`)
  expect(await (await fetch(address)).text()).toContain('<h1>Open orders</h1>')
  const line = printed.find(line => line.includes(' -d ')) ?? ''
  const [, url, type, body = ''] =
    /^curl -s -w '\\n' -H '@[^']+' '([^']+)' -H 'Content-Type: ([^']+)' -d '(.*)'$/.exec(
      line.replace("'$(date +%s)'", '1'),
    ) ?? []
  const response = await fetch(url ?? '', {
    ...{ method: 'POST', body, headers: { authorization: `Bearer ${token}`, 'content-type': type ?? '' } },
  })
  expect(await response.json()).toMatchObject({ data: { number: 'NEW-1', status: 'pending' } })
  expect(response.status).toBe(201)
})

test('the printed address shows the interactive reference', async () => {
  const address = printed.find(line => line.endsWith('/docs')) ?? ''
  expect(address).toBe(`${demo.url}/docs`)
  expect(await (await fetch(address)).text()).toContain('<title>API reference</title>')
})

test('the printed address shows the console, which either clerk can enter', async () => {
  const address = printed.find(line => line.endsWith('/console')) ?? ''
  expect(address).toBe(`${demo.url}/console`)
  expect(await (await fetch(address)).text()).toContain('<title>Console</title>')
  const state = await (await fetch(`${demo.url}/front/state`)).json()
  expect(state).toMatchObject({ hasConsole: true, callers: [{}, {}] })
})

test('a tenant gets no rows of the other, and requests without a token are rejected', async () => {
  const [bikes, coffee] = printed.filter(line => line.startsWith('eyJ'))
  const status = async (path: string, token?: string): Promise<number> =>
    (await fetch(demo.url + path, token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } })).status
  expect(await status('/api/orders/1', bikes)).toBe(200)
  expect(await status('/api/orders/1', coffee)).toBe(404)
  expect(await status('/api/orders/1')).toBe(401)
})

test('closing ends the server and frees the port', async () => {
  const pidFile = printed.join('\n').match(/-H '@(.*)\/northlight\.header'/)?.[1]
  const postmaster = Number.parseInt(readFileSync(join(pidFile ?? '', 'data', 'postmaster.pid'), 'utf8'), 10)
  expect(await describeProcess(postmaster)).not.toBe(null)
  await demo.close()
  expect(await describeProcess(postmaster)).toBe(null)
  await expect(fetch(demo.url)).rejects.toThrow('fetch failed')
})

/** Does what the shell and curl would do; the test machine may lack curl. */
async function pasted(line: string): Promise<string> {
  const [, file, url] = /^curl -s -w '\\n' -H '@([^']+)' '([^']+)'(?: \| head -n 3)?$/.exec(line) ?? []
  const [name, value] = readFileSync(file ?? '', 'utf8')
    .trim()
    .split(': ')
  const response = await fetch(url ?? '', { headers: { [name ?? '']: value ?? '' } })
  expect(response.status, url).toBe(200)
  return response.text()
}
