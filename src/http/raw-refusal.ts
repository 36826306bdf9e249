/**
 * Sends an error over a bare socket when there is no reply object, with the same headers and envelope as
 * every other response.
 */
import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { errorBody } from '../envelope.ts'
import type { GatewayError } from '../errors.ts'
import { headerPairs } from './response-headers.ts'

/**
 * Sends the error and closes the socket. `headers` are those of every response, as alternating names and
 * values.
 */
export function refuseRaw(socket: Duplex, refusal: GatewayError, requestId: string, headers: readonly string[]): void {
  if (socket.writable) socket.end(printRefusal(refusal, requestId, headers), 'latin1', () => socket.destroy())
  else socket.destroy()
}

/** Prints the whole response, one character for each byte. */
export function printRefusal(refusal: GatewayError, requestId: string, headers: readonly string[]): string {
  const body = errorBody(refusal, requestId)
  const head = [
    ...headers,
    ...Object.entries(refusal.headers).flat(),
    ...['Content-Type', 'application/json; charset=utf-8', 'Content-Length', String(body.length)],
    ...['Connection', 'close'],
  ]
  const lines = headerPairs(head).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n${lines.join('')}\r\n${body.toString('latin1')}`
}
