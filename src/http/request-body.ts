/** Reads request bodies as a whole, with their limits. */
import { IncomingMessage, type ServerResponse } from 'node:http'
import { GatewayError } from '../errors.ts'
import type { HeldBody, HoldBody } from './bodies.ts'

/** Limit on the body of a request (docs/reference/limits.md#bytes-and-time). */
export const BODY_BYTES_MAX: number = 2 * 1024 * 1024

/**
 * Limit on the part of an oversized body that is read and discarded. If a connection is closed while the body
 * still arrives, it is reset, and a proxy that continues sending loses the response.
 */
export const FORGOTTEN_BYTES_MAX: number = 8 * BODY_BYTES_MAX

/**
 * Reads a body as Fastify's own reader does, but much faster for the usual small body of one chunk. Calls
 * back once. If `hold` is null, the body is read and discarded, and the result is empty.
 */
export function readRequestBody(
  request: HandedRequest,
  hold: HoldBody | null,
  done: (error: Error | null, body?: Buffer) => void,
): void {
  const chunks: Buffer[] = []
  let bytes = 0
  let held: HeldBody | null = null
  let isOver = false
  const end = (error: Error | null, body?: Buffer) => {
    if (isOver) return
    isOver = true
    if (error !== null) chunks.length = 0
    done(error, body)
  }
  /** A body that arrived completely is processed at once. */
  const isWhole = (chunk: Buffer) => bytes === chunk.length && Number(request.headers['content-length']) === bytes
  request.handTo(chunk => {
    if (isOver) return
    if (chunk === null) {
      const [only] = chunks
      if (bytes <= BODY_BYTES_MAX) end(null, chunks.length === 1 ? only : Buffer.concat(chunks))
      else end(requestBodyTooLarge())
      return
    }
    bytes += chunk.length
    if (bytes > BODY_BYTES_MAX) {
      chunks.length = 0
      if (bytes > FORGOTTEN_BYTES_MAX) end(requestBodyTooLarge())
      return
    }
    if (hold === null) return
    try {
      if (!isWhole(chunk) && request.response !== null) {
        held ??= hold(request, request.response)
        held.take(chunk.length)
      }
      chunks.push(chunk)
    } catch (error) {
      end(error as Error)
    }
  })
  // The client disconnected, so the result is not used.
  request.on('error', () => end(new GatewayError('PARSE_ERROR', 'the body was not received completely')))
}

/** The error for a body above the limit. */
export function requestBodyTooLarge(): GatewayError {
  return new GatewayError('PAYLOAD_TOO_LARGE', `the body is larger than ${BODY_BYTES_MAX} bytes`, {
    headers: { Connection: 'close' },
  })
}

/** Receives the chunks of a body; null marks the end. After a disconnect the end is never delivered. */
type TakeChunk = (chunk: Buffer | null) => void

/**
 * A request that delivers its body in the turn of the event loop in which it is parsed. Node's standard
 * request stream passes each chunk through a buffer and several ticks, which costs as much as the gateway's
 * own work on a small body. Node creates requests of the class it is given
 * (https://nodejs.org/docs/latest-v20.x/api/http.html#httpcreateserveroptions-requestlistener) and delivers
 * the body with `push`, as for any readable stream.
 */
export class HandedRequest extends IncomingMessage {
  /** The response, set if the request has a body. */
  response: ServerResponse | null = null
  #take: TakeChunk | null = null

  /** Delivers the rest of the body to `take`. Chunks pushed earlier are read from the stream. */
  handTo(take: TakeChunk): void {
    if (this.readableLength === 0 && !this.complete) {
      this.#take = take
      return
    }
    this.on('data', take)
    this.once('end', () => take(null))
  }

  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    const take = this.#take
    if (take === null) return super.push(chunk, encoding)
    // Node waits for the end of the stream before it closes a connection.
    if (chunk === null) super.push(null)
    take(chunk)
    return true
  }
}
