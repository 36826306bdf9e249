/** The bodies of requests, read whole: their limits, and the way from Node's parser to whoever wants them. */
import { IncomingMessage, type ServerResponse } from 'node:http'
import { GatewayError } from '../errors.ts'
import type { HeldBody, HoldBody } from './bodies.ts'

/** docs/reference/limits.md#bytes-and-time has it for clients. */
export const BODY_BYTES_MAX: number = 2 * 1024 * 1024

/**
 * A body that is too large is read to its end and forgotten, if that is not farther than this. A connection that ends with an answer while the body still
 * comes is reset, and proxies that go on sending have lost the answer by then.
 */
export const FORGOTTEN_BYTES_MAX: number = 8 * BODY_BYTES_MAX

/**
 * As Fastify's own reader does, in a small part of its time: bodies are small, and mostly one chunk. Calls back once. `hold` null: nobody wants the body,
 * which is read to its end and empty then.
 */
export function readBody(
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
    chunks.length = 0
    done(error, body)
  }
  /** What has come whole is worked on at once, and waits for nobody. */
  const isWhole = (chunk: Buffer) => bytes === chunk.length && Number(request.headers['content-length']) === bytes
  request.handTo(chunk => {
    if (isOver) return
    if (chunk === null) {
      const [only] = chunks
      if (bytes <= BODY_BYTES_MAX) end(null, chunks.length === 1 ? only : Buffer.concat(chunks))
      else end(bodyTooLarge())
      return
    }
    bytes += chunk.length
    if (bytes > BODY_BYTES_MAX) {
      chunks.length = 0
      if (bytes > FORGOTTEN_BYTES_MAX) end(bodyTooLarge())
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
  // Nobody will read this: the client went away half-way.
  request.on('error', () => end(new GatewayError('PARSE_ERROR', 'the body did not come whole')))
}

export function bodyTooLarge(): GatewayError {
  return new GatewayError('PAYLOAD_TOO_LARGE', `the body is larger than ${BODY_BYTES_MAX} bytes`, {
    headers: { Connection: 'close' },
  })
}

/** Null: that was all. Nothing comes behind it, and it does not come at all when the client goes away half-way. */
type TakeChunk = (chunk: Buffer | null) => void

/**
 * A request that hands its body over as the parser finds it, in the same turn of the event loop. The stream that a request is by itself passes each chunk
 * through its buffer and several ticks, which costs as much as all that we do with a small body. Node makes requests of the class it is given
 * (https://nodejs.org/docs/latest-v20.x/api/http.html#httpcreateserveroptions-requestlistener), and gives them their body by `push`, as any source does.
 */
export class HandedRequest extends IncomingMessage {
  /** Its answer, where it has a body. */
  response: ServerResponse | null = null
  #take: TakeChunk | null = null

  /** From now on the body goes to `take`. What was pushed before anybody asked for it is read as from any stream. */
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
    // Whoever ends a connection waits for the end of the stream.
    if (chunk === null) super.push(null)
    take(chunk)
    return true
  }
}
