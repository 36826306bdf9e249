/** Reads request headers as text. */
import { isUtf8 } from 'node:buffer'
import type { Incoming } from '../exchange.ts'

/**
 * The value of a header, or undefined if it was not sent. A repeated header becomes a comma-separated list
 * (RFC 9110, 5.3). Node decodes header bytes as latin1; values that are valid UTF-8 are decoded again.
 */
export function headerOf(headers: Incoming['headers'], name: string): string | undefined {
  const header = headers[name]
  if (header === undefined) return undefined
  const text = Array.isArray(header) ? header.join(',') : header
  if (!BEYOND_ASCII.test(text)) return text
  const bytes = Buffer.from(text, 'latin1')
  return isUtf8(bytes) ? bytes.toString() : text
}

const BEYOND_ASCII = /[\u0080-\uffff]/
