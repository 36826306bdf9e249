/** Request headers as text. */
import { isUtf8 } from 'node:buffer'
import type { Incoming } from '../exchange.ts'

/** Given several times, a list (RFC 9110, 5.3). Node reads header bytes as latin1; names that are sent in UTF-8 are names all the same. */
export function headerOf(headers: Incoming['headers'], name: string): string | undefined {
  const header = headers[name]
  if (header === undefined) return undefined
  const text = Array.isArray(header) ? header.join(',') : header
  const bytes = Buffer.from(text, 'latin1')
  return isUtf8(bytes) ? bytes.toString() : text
}
