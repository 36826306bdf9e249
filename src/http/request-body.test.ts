/** Requests of the class that the server uses, sent over real sockets. */
import { once } from 'node:events'
import { createServer, request, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { HandedRequest } from './request-body.ts'

let server: Server
let handle: (request: HandedRequest) => void

beforeEach(async () => {
  server = createServer({ IncomingMessage: HandedRequest }, (incoming, response) => {
    handle(incoming as HandedRequest)
    incoming.on('close', () => response.end())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})

afterEach(() => void server.close())

function port(): number {
  return (server.address() as AddressInfo).port
}

/** Resolves with the whole body, as the chunks received. */
function bodyOf(incoming: HandedRequest): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    const words: string[] = []
    incoming.handTo(chunk => {
      if (chunk === null) resolve(words)
      else words.push(chunk.toString())
    })
    incoming.on('error', reject)
  })
}

function post(...words: readonly string[]): void {
  const sent = request({ port: port(), method: 'POST' })
  for (const word of words) sent.write(word)
  sent.end()
}

function received(read: (incoming: HandedRequest) => Promise<readonly string[]>): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    handle = incoming => {
      read(incoming).then(resolve, reject)
      // Without a reader the stream would never end, and the connection waits for its end.
      incoming.resume()
    }
  })
}

test('the body is delivered, followed by its end', async () => {
  const body = received(bodyOf)
  post('one', 'two')
  expect((await body).join('')).toBe('onetwo')
})

test('a body that arrives with its headers is delivered in the same turn of the event loop', async () => {
  const order = new Promise<readonly string[]>(resolve => {
    const seen: string[] = []
    handle = incoming => {
      incoming.handTo(chunk => seen.push(chunk === null ? 'all' : chunk.toString()))
      setImmediate(() => resolve(seen))
    }
  })
  const socket = connect(port(), '127.0.0.1')
  socket.end('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\none')
  expect(await order).toEqual(['one', 'all'])
})

test('data that arrives before a reader is attached is not lost', async () => {
  const body = received(async incoming => {
    if (!incoming.complete) await once(incoming, 'readable')
    return bodyOf(incoming)
  })
  post('one', 'two')
  expect((await body).join('')).toBe('onetwo')
})

test('a request without a body delivers only the end', async () => {
  const body = received(bodyOf)
  post()
  expect(await body).toEqual([])
})

test('an incomplete body causes an error and has no end', async () => {
  const body = received(bodyOf)
  const socket = connect(port(), '127.0.0.1')
  socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\none')
  await once(server, 'request')
  socket.destroy()
  await expect(body).rejects.toMatchObject({ code: 'ECONNRESET' })
})

test('a connection carries several requests in a row', async () => {
  const bodies: string[] = []
  const all = new Promise<void>(resolve => {
    handle = incoming => {
      void bodyOf(incoming).then(words => {
        bodies.push(words.join(''))
        incoming.resume()
        if (bodies.length === 3) resolve()
      })
    }
  })
  const socket = connect(port(), '127.0.0.1')
  for (const word of ['one', 'two', 'six']) {
    socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n${word}`)
  }
  await all
  expect(bodies).toEqual(['one', 'two', 'six'])
  socket.destroy()
})
