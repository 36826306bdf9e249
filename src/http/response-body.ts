/** Writes response bodies to the socket at the speed at which the client reads. */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { GatewayError } from '../errors.ts'
import { onceGone } from './connections.ts'
import type { StreamPace } from './stream-pace.ts'

/** Limit on bodies that are copied to save a write. */
const ONE_WRITE_BYTES_MAX = 64 * 1024

/**
 * Sends a body. Node joins headers and body only if the body is a string; a Buffer is written separately,
 * which costs more than the copy. Latin-1 maps every byte to one character and back.
 */
export function endWith(response: ServerResponse, body: Buffer): void {
  if (body.length <= ONE_WRITE_BYTES_MAX) {
    endWithText(response, body.toString('latin1'))
    return
  }
  response.end(body)
}

/**
 * Writes headers and body with one write to the socket. `end(body)` would be two writes, the second of them
 * empty, which Node combines into a vectored write. That costs as much as all other work on a cached
 * response.
 */
export function endWithText(response: ServerResponse, body: string): void {
  response.cork()
  response.write(body, 'latin1')
  response.uncork()
  response.end()
}

/** Counts bytes that wait to be sent. Returns a function that subtracts them again. */
export type CountUnsent = (bytes: number) => () => void

/**
 * Writes as fast as the client reads, and stops when it disconnects. Rejects if the client reads too slowly;
 * an error line has then been sent.
 */
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

/** Time limit for a client that stops reading; it is then disconnected. */
const READER_IDLE_MS_MAX = 60_000

/**
 * Applies the time limit until the response has been sent. Node closes a connection when its timeout expires;
 * any byte sent restarts it.
 */
export function limitReaderIdle(response: ServerResponse): void {
  // A response that waits behind others has no socket yet.
  if (response.socket === null) response.once('socket', limitIdle)
  else limitIdle(response.socket)
}

/** The same for a complete response. A request pipelined behind it can take its time in the database. */
export function limitReaderIdleUntilSent(response: ServerResponse): void {
  limitReaderIdle(response)
  // Registered before Node's own listener, which sets the keep-alive timeout.
  response.prependOnceListener('finish', () => response.socket?.setTimeout(0))
}

function limitIdle(socket: Socket): void {
  socket.setTimeout(READER_IDLE_MS_MAX)
}

/**
 * Resolves when the socket has drained or closed, or with an error if the client reads too little of these
 * and earlier bytes.
 */
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
    // A response that waits behind others is not considered slow.
    if (response.socket === null) response.once('socket', watch)
    else watch()
    response.once('drain', settle)
    const forget = onceGone(response, settle)
  })
}

/**
 * Closes the connection after the data written so far, without the last chunk, so the client detects the
 * incomplete response.
 */
export function breakOff(response: ServerResponse): void {
  const { socket } = response
  limitReaderIdle(response)
  if (socket !== null) socket.destroySoon()
  // The response waits behind others; its data is sent once it has the socket.
  else response.once('socket', (own: Socket) => setImmediate(() => own.destroySoon()))
}
