/**
 * Sends responses: the budget of unsent bytes, compression, headers, and the event that reports the end of
 * the request.
 */
import type { OutgoingHttpHeader, ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import type { Emit, Event } from '../events.ts'
import type { Answer, Incoming } from '../exchange.ts'
import type { Identity } from '../identity/identity.ts'
import { type CodingChoice, compress, compressStream, createCompression } from './compression.ts'
import type { Connections, Disconnect } from './connections.ts'
import { isNotModified, isOfBody, notModified, tagIn } from './entity-tags.ts'
import type { RequestProgress } from './pipeline.ts'
import { codeOf, type Reports } from './reports.ts'
import { breakOff, endWith, endWithText, limitReaderIdleUntilSent, sendStream } from './response-body.ts'
import type { ResponseHeaders } from './response-headers.ts'
import type { StreamPaces } from './stream-pace.ts'
import { SMALL_ANSWER_BYTES, type Unsent } from './unsent.ts'

/** A request that waits for its response. */
export interface Exchange {
  readonly reply: FastifyReply
  readonly incoming: Incoming
  /** The start time, by the clock of the server. */
  readonly started: number
  readonly progress: RequestProgress
  readonly disconnect: Pick<Disconnect, 'answered'>
}

/** The dependencies of the responder. */
export interface ResponderParts {
  readonly headers: ResponseHeaders
  readonly connections: Connections
  readonly unsent: Unsent
  readonly paces: StreamPaces
  /** The minimum size of compressed responses in bytes; 0 disables compression. */
  readonly compressMinBytes: number
  /** True if the reply object has headers of the CORS plugin. */
  readonly hasCors: boolean
  readonly reports: Reports
  readonly isDraining: () => boolean
  readonly answerError: AnswerError
  readonly emit: Emit
  /** The time in milliseconds of a monotonic clock. */
  readonly now: () => number
}

/** The response to an error for requests in another dialect; null for the gateway's own form. */
export type AnswerError = (error: unknown, incoming: Incoming, caller: Identity | null) => Answer | null

/** Sends responses and reports the requests. */
export class Responder {
  readonly #parts: ResponderParts
  readonly #choose: ReturnType<typeof createCompression>['choose']

  constructor(parts: ResponderParts) {
    this.#parts = parts
    this.#choose = createCompression(parts.compressMinBytes).choose
  }

  /** Responds to a failed request, whatever the error is. */
  fail(exchange: Exchange, error: unknown): void {
    const { incoming, progress } = exchange
    const { reports, answerError } = this.#parts
    const answer = reports.errorAnswer(error, incoming.requestId, progress)
    this.send(exchange, answerError(error, incoming, progress.caller) ?? answer)
  }

  send(exchange: Exchange, answer: Answer): void {
    const { reply, incoming, progress } = exchange
    const { body } = answer
    if (lengthOf(body) > SMALL_ANSWER_BYTES && isRead(incoming, answer)) {
      const refusal = this.#parts.unsent.refusal(progress.caller)
      if (refusal !== null) {
        this.fail(exchange, refusal)
        return
      }
    }
    reply.hijack()
    const hasLength = answer.status !== 304 && !isStreamed(answer)
    const choice = this.#choose(incoming.headers, answer, hasLength ? lengthOf(body) : null)
    if (isNotModified(incoming, answer)) {
      this.#transmit(exchange, notModified(answer, choice), choice === 'none' ? 'none' : 'identity')
      return
    }
    // Also for HEAD, which has the headers of GET, including the length.
    if (choice === 'none' || choice === 'identity' || body === null || isStream(body)) {
      this.#transmit(exchange, answer, choice)
    } else {
      this.#encode(exchange, answer, Buffer.isBuffer(body) ? body : Buffer.from(body.latin1, 'latin1'), choice)
    }
  }

  #encode(exchange: Exchange, answer: Answer, plain: Buffer, choice: 'br' | 'gzip'): void {
    const encoded = compress(plain, choice)
    if (!(encoded instanceof Promise)) {
      this.#transmit(exchange, { ...answer, body: encoded }, choice)
      return
    }
    const { reply, progress } = exchange
    const release = this.#parts.unsent.hold(progress.caller, plain.length)
    void encoded
      .then(
        bytes => this.#transmit(exchange, { ...answer, body: bytes }, choice),
        () => this.#transmit(exchange, answer, 'identity'),
      )
      .catch(error => {
        this.#parts.emit(failed(exchange, error))
        breakOff(reply.raw)
      })
      .finally(release)
  }

  /** Sends the response. `choice` is the coding that the body has or that a stream will get. */
  #transmit(exchange: Exchange, answer: Answer, choice: CodingChoice): void {
    const { body, status, reason } = answer
    const response = exchange.reply.raw
    const headers = this.#headersOf(exchange, answer, choice)
    if (isStream(body)) {
      response.writeHead(status, reason, headers)
      this.#stream(exchange, answer, choice === 'br' || choice === 'gzip' ? compressStream(body, choice) : body)
      return
    }
    const isHead = exchange.incoming.method === 'HEAD'
    // Without the header, Node would send an empty body in chunks.
    if (body !== null || (status !== 204 && status !== 304 && !isHead)) headers.push('Content-Length', lengthOf(body))
    response.writeHead(status, reason, headers)
    if (body === null || isHead) response.end()
    else if ('latin1' in body) endWithText(response, body.latin1)
    else endWith(response, body)
    this.#holdUnsent(response, exchange.progress)
    this.#reportOf(exchange, answer)
  }

  #headersOf(
    { reply, incoming, started, progress }: Exchange,
    answer: Answer,
    choice: CodingChoice,
  ): OutgoingHttpHeader[] {
    const { now, hasCors, isDraining, connections } = this.#parts
    const headers: OutgoingHttpHeader[] = this.#parts.headers(incoming.requestId, now() - started, progress.timing)
    for (const name in answer.headers) {
      const value = answer.headers[name] ?? ''
      headers.push(name, name === 'ETag' && isOfBody(incoming, answer) ? tagIn(choice, value) : value)
    }
    for (const cookie of answer.cookies ?? []) headers.push('Set-Cookie', cookie)
    const { wrote } = incoming.usage.worked
    if (wrote !== undefined) headers.push('X-Svc-LSN', wrote)
    if (choice !== 'none') {
      headers.push('Vary', 'Accept-Encoding')
      if (choice !== 'identity') headers.push('Content-Encoding', choice)
    }
    // Copies the headers of the CORS plugin. The connection headers that Fastify sets are set by the response
    // itself.
    if (hasCors) {
      for (const [name, value] of Object.entries(reply.getHeaders()))
        if (name !== 'connection') headers.push(name, value ?? '')
    }
    if (isDraining() && connections.isLast(reply.raw)) headers.push('Connection', 'close')
    return headers
  }

  #stream(exchange: Exchange, answer: Answer, chunks: AsyncGenerator<Buffer>): void {
    const { unsent, paces, emit } = this.#parts
    const { reply, progress } = exchange
    const response = reply.raw
    void sendStream(response, chunks, bytes => unsent.count(progress.caller, bytes), paces.start())
      .then(() => this.#holdUnsent(response, progress))
      .catch(error => {
        progress.code = codeOf(error)
        emit(failed(exchange, error))
        breakOff(response)
      })
      .finally(() => this.#reportOf(exchange, answer))
  }

  /** Bytes that the kernel did not accept at once are counted until the client reads them. */
  #holdUnsent(response: ServerResponse, { caller }: RequestProgress): void {
    const bytes = response.writableLength
    if (bytes === 0) return
    const { connections, unsent } = this.#parts
    connections.whenSent(response, bytes, unsent.hold(caller, bytes))
    limitReaderIdleUntilSent(response)
  }

  #reportOf({ incoming, started, progress, disconnect }: Exchange, answer: Answer): void {
    const { method, requestId } = incoming
    disconnect.answered()
    const durationMs = this.#parts.now() - started
    this.#parts.reports.ended({ method, requestId, status: answer.status, durationMs, progress, incoming, answer })
  }
}

function failed({ incoming, progress }: Exchange, error: unknown): Event {
  return { kind: 'request failed', requestId: incoming.requestId, trace: progress.trace, error }
}

function isStream(body: Answer['body']): body is AsyncGenerator<Buffer> {
  return body !== null && !('latin1' in body) && !Buffer.isBuffer(body)
}

/** Reports whether the response is a stream, also if a HEAD request removed its body. */
function isStreamed({ headers, body }: Answer): boolean {
  if (body !== null) return isStream(body)
  const type = headers['Content-Type'] ?? ''
  return type.startsWith('application/x-ndjson') || type.startsWith('text/csv')
}

/** The length of a body; 0 for a stream. */
function lengthOf(body: Answer['body']): number {
  if (body === null) return 0
  if (Buffer.isBuffer(body)) return body.length
  return 'latin1' in body ? body.latin1.length : 0
}

/**
 * Reports whether the request changed nothing, so the client can repeat it. A read has `X-Cache`, whatever
 * its method.
 */
function isRead({ method }: Incoming, { headers }: Answer): boolean {
  return method === 'GET' || method === 'HEAD' || 'X-Cache' in headers
}
