/** A refusal where there is no reply object, only the socket: the same headers and the same envelope as every other. */
import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { errorBody } from '../envelope.ts'
import type { GatewayError } from '../errors.ts'

export const SECURITY_HEADERS: readonly string[] = ['X-Content-Type-Options', 'nosniff', 'X-Frame-Options', 'DENY']

/** `further`: names and values in turn. The socket ends behind it. */
export function refuseRaw(socket: Duplex, refusal: GatewayError, requestId: string, further: readonly string[]): void {
  if (socket.writable) socket.end(printRefusal(refusal, requestId, further), 'latin1', () => socket.destroy())
  else socket.destroy()
}

/** The whole response, a character for each byte. */
export function printRefusal(refusal: GatewayError, requestId: string, further: readonly string[]): string {
  const body = errorBody(refusal, requestId)
  const head = [
    ...SECURITY_HEADERS,
    ...['X-Request-Id', requestId, 'X-Response-Time', '0ms'],
    ...further,
    ...Object.entries(refusal.headers).flat(),
    ...['Content-Type', 'application/json; charset=utf-8', 'Content-Length', String(body.length)],
    ...['Connection', 'close'],
  ]
  const lines = pairs(head).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n${lines.join('')}\r\n${body.toString('latin1')}`
}

export function pairs(list: readonly string[]): readonly (readonly [string, string])[] {
  return list.flatMap((name, index) => (index % 2 === 0 ? [[name, list[index + 1] ?? ''] as const] : []))
}
