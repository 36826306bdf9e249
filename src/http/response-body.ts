/** Bodies of answers on their way to the socket, at the speed of whoever reads them. */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { GatewayError } from '../errors.ts'
import { onceGone } from './connections.ts'
import type { StreamPace } from './stream-pace.ts'

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

/** Writes as fast as the client reads, and stops when it has gone. Rejects when it reads too slowly; it has been sent an error line then. */
export async function sendStream(
  response: ServerResponse,
  body: AsyncGenerator<Buffer>,
  count: CountUnsent,
  pace: StreamPace,
): Promise<void> {
  for await (const chunk of body) {
    const refusal = await sendChunk(response, chunk, count, pace)
    if (response.req.socket.destroyed) return
    if (refusal === null) continue
    const line = await body.throw(refusal)
    if (line.done !== true) response.write(line.value)
    throw refusal
  }
  response.end()
}

async function sendChunk(
  response: ServerResponse,
  chunk: Buffer,
  count: CountUnsent,
  pace: StreamPace,
): Promise<GatewayError | null> {
  for (let at = 0; at < chunk.length; at += pace.sliceBytes) {
    if (response.req.socket.destroyed) return null
    const slice = chunk.subarray(at, at + pace.sliceBytes)
    if (response.write(slice)) {
      pace.taken(slice.length, 0)
      continue
    }
    const uncount = count(response.writableLength + Math.max(chunk.length - at - pace.sliceBytes, 0))
    const refusal = await drained(response, slice.length, pace)
    uncount()
    if (refusal !== null) return refusal
  }
  return null
}

/** A client that takes not one byte of what is being sent to it for so long loses its connection. */
const READER_IDLE_MS_MAX = 60_000

/** Node ends a connection whose time is over; any byte that goes out begins the time again. Lasts until the answer has been sent. */
export function limitReaderIdle(response: ServerResponse): void {
  // An answer that waits behind others has no socket yet, and nobody who could read it.
  if (response.socket === null) response.once('socket', limitIdle)
  else limitIdle(response.socket)
}

/** The same for an answer that is complete. What is pipelined behind it may take its time in the database. */
export function limitReaderIdleUntilSent(response: ServerResponse): void {
  limitReaderIdle(response)
  // Before Node's own listener, which sets the timeout of a connection that has nothing else to do.
  response.prependOnceListener('finish', () => response.socket?.setTimeout(0))
}

function limitIdle(socket: Socket): void {
  socket.setTimeout(READER_IDLE_MS_MAX)
}

/** Resolves as well when the client has gone, and with an error when it takes too little of these bytes and those before. */
function drained(response: ServerResponse, bytes: number, pace: StreamPace): Promise<GatewayError | null> {
  return new Promise(resolve => {
    let since = performance.now()
    let timer: NodeJS.Timeout | null = null
    const finish = (refusal: GatewayError | null) => {
      if (timer !== null) clearTimeout(timer)
      response.off('socket', limitIdle)
      response.off('socket', watch)
      response.off('drain', settle)
      response.socket?.setTimeout(0)
      forget()
      resolve(refusal)
    }
    const settle = () => {
      pace.taken(bytes, timer === null ? 0 : performance.now() - since)
      finish(null)
    }
    const judge = () => {
      const refusal = pace.judge(bytes)
      if (refusal === null) watch()
      else finish(refusal)
    }
    const watch = () => {
      since = performance.now()
      if (pace.leftMs !== null) timer = setTimeout(judge, pace.leftMs)
    }
    limitReaderIdle(response)
    // An answer that waits behind others of its connection is not read slowly.
    if (response.socket === null) response.once('socket', watch)
    else watch()
    response.once('drain', settle)
    const forget = onceGone(response, settle)
  })
}

/** Ends the connection after what was written and without the last chunk, so the client knows that there should have been more. */
export function breakOff(response: ServerResponse): void {
  const { socket } = response
  limitReaderIdle(response)
  if (socket !== null) socket.destroySoon()
  // It waits behind others. What was written goes out as soon as it has the socket.
  else response.once('socket', (own: Socket) => setImmediate(() => own.destroySoon()))
}
