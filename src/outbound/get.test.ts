/** Fetches of servers that are slow, silent or endless: each ends in time, with a reason. */
import { createServer, type Server } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { createAddressGuard } from './address-guard.ts'
import { fetchDocument, type GetRequest } from './get.ts'

const TIMEOUT_MS = 100
const guard = createAddressGuard({ allow: [], loopback: 'allowed' })

const opened: Server[] = []
const timers: NodeJS.Timeout[] = []
afterEach(() => {
  for (const timer of timers.splice(0)) clearInterval(timer)
  for (const server of opened.splice(0)) server.close()
})

/** Says `first` to each connection, and then `more`, again and again. */
async function server(first: string, more: string | null): Promise<URL> {
  const listening = createServer(socket => {
    socket.on('error', () => {})
    if (first !== '') socket.write(first)
    if (more !== null) timers.push(setInterval(() => socket.write(more), 5))
  })
  opened.push(listening)
  await new Promise<void>(resolve => listening.listen(0, '127.0.0.1', resolve))
  const { port } = listening.address() as { readonly port: number }
  return new URL(`http://127.0.0.1:${port}/jwks`)
}

async function failure(request: Pick<GetRequest, 'url'> & Partial<GetRequest>): Promise<string> {
  const asked = fetchDocument({
    ...{ accept: '*/*', userAgent: 'test', timeoutMs: TIMEOUT_MS, redirectsMax: 3, bodyBytesMax: 1_000 },
    ...{ guardOf: () => guard, ...request },
  })
  return asked.then(
    () => 'fetched',
    error => (error as Error).message,
  )
}

const HEAD = 'HTTP/1.1 200 OK\r\n'

describe('has a deadline', () => {
  test.each<[string, string, string | null]>([
    ['says nothing', '', null],
    ['sends a header in pieces', HEAD, 'x: y\r\n'],
    ['sends informational answers without end', '', 'HTTP/1.1 103 Early Hints\r\n\r\n'],
    ['sends a body in pieces', `${HEAD}content-length: 900\r\n\r\n`, 'x'],
    ['sends chunks in pieces', `${HEAD}transfer-encoding: chunked\r\n\r\n`, '1\r\nx\r\n'],
  ])('a server that %s', async (_, first, more) => {
    const url = await server(first, more)
    // Whichever limit comes first: the time, or the size of a head.
    expect(await failure({ url })).toMatch(
      `${url.href}: ${first === HEAD ? '' : `no complete response after ${TIMEOUT_MS} ms`}`,
    )
  })

  test('a name that is never resolved', async () => {
    const url = new URL('https://id.example/jwks')
    expect(await failure({ url, resolve: () => {} })).toBe(`${url.href}: no complete response after ${TIMEOUT_MS} ms`)
  })
})

test('a body without end is cut off at its limit', async () => {
  const url = await server(`${HEAD}\r\n`, 'x'.repeat(400))
  expect(await failure({ url, timeoutMs: 60_000 })).toBe(`${url.href}: the response has more than 1000 bytes`)
})

test('a redirect with a body without end is left at once', async () => {
  const url = await server('HTTP/1.1 302 Found\r\nlocation: https://10.0.0.1/\r\n\r\n', 'x'.repeat(400))
  expect(await failure({ url, timeoutMs: 60_000 })).toMatch(/10\.0\.0\.1 is a private address/)
})
