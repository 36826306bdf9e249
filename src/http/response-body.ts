/** Bodies of answers on their way to the socket, at the speed of whoever reads them. */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { onceGone } from './connections.ts'

/** Larger bodies are not copied once more to save a write. */
const ONE_WRITE_BYTES_MAX = 64 * 1024

/**
 * Node joins headers and body only if the body is a string; a Buffer goes out beside the headers, which costs more than this copy. Latin-1 maps each
 * byte to one character and back, whatever the bytes mean.
 */
export function endWith(response: ServerResponse, body: Buffer): void {
  if (body.length <= ONE_WRITE_BYTES_MAX) {
    endWithText(response, body.toString('latin1'))
    return
  }
  response.end(body)
}

/**
 * One write to the socket of headers and body. `end(body)` would be two, the second of them empty, which Node gathers into a vectored write: that costs
 * as much again as all of our own work on an answer from the cache.
 */
export function endWithText(response: ServerResponse, body: string): void {
  response.cork()
  response.write(body, 'latin1')
  response.uncork()
  response.end()
}

/** Counts bytes that wait to be sent. Returns what takes them back. */
export type CountUnsent = (bytes: number) => () => void

/** Writes as fast as the client reads, and stops when it has gone. */
export async function sendStream(
  response: ServerResponse,
  body: AsyncIterable<Buffer>,
  count: CountUnsent,
): Promise<void> {
  const { socket } = response.req
  for await (const chunk of body) {
    if (socket.destroyed) return
    if (response.write(chunk)) continue
    const uncount = count(response.writableLength)
    await drained(response)
    uncount()
  }
  response.end()
}

/** A client that takes not one byte of what is being sent to it for so long loses its connection. */
const READER_IDLE_MS_MAX = 60_000

/** Node ends a connection whose time is over; any byte that goes out begins the time again. Lasts until the answer has been sent. */
export function limitReaderIdle(response: ServerResponse): void {
  // An answer that waits behind others has no socket yet, and nobody who could read it.
  if (response.socket === null) response.once('socket', limitIdle)
  else limitIdle(response.socket)
}

function limitIdle(socket: Socket): void {
  socket.setTimeout(READER_IDLE_MS_MAX)
}

/** Resolves as well when the client has gone. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise(resolve => {
    const settle = () => {
      response.off('socket', limitIdle)
      response.off('drain', settle)
      response.socket?.setTimeout(0)
      forget()
      resolve()
    }
    limitReaderIdle(response)
    response.once('drain', settle)
    const forget = onceGone(response, settle)
  })
}

/** Ends the connection after what was written and without the last chunk, so the client knows that there should have been more. */
export function breakOff(response: ServerResponse): void {
  const { socket } = response
  if (socket !== null) socket.destroySoon()
  // It waits behind others. What was written goes out as soon as it has the socket.
  else response.once('socket', (own: Socket) => setImmediate(() => own.destroySoon()))
}
