/** Reads the headers that a trigger adds to its requests. */
import type { DocumentProblems, Path } from '../config/document.ts'
import { shorten } from '../text/shorten.ts'

/** Limit on the headers of a trigger. */
export const HEADERS_MAX = 32
const VALUE_LENGTH_MAX = 4_096

/** RFC 9110, 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]{1,128}$/i

/** RFC 9110, 5.5: one line. Latin-1, because no other encoding is defined. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Headers set by the gateway: another value would change the request or contradict its body. */
const RESERVED: ReadonlySet<string> = new Set([
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'webhook-id',
  'webhook-signature',
  'webhook-timestamp',
])

/**
 * Reads headers into an object with lower-case names. `expanded` substitutes environment variables and
 * reports the ones it cannot.
 */
export function readHeaders(
  value: unknown,
  path: Path,
  problems: DocumentProblems,
  expanded: (text: string, at: Path) => string,
): Readonly<Record<string, string>> {
  const entries = problems.table(value, path, null)
  if (entries === null) return {}
  if (entries.size > HEADERS_MAX) problems.add(path, `has ${entries.size} headers; the limit is ${HEADERS_MAX}`)
  const headers = new Map<string, string>()
  for (const [written, given] of [...entries].slice(0, HEADERS_MAX)) {
    const at = [...path, written]
    const name = written.toLowerCase()
    if (!TOKEN.test(written)) problems.add(path, `"${shorten(written)}" is not a valid header name`)
    else if (RESERVED.has(name)) problems.add(at, 'is set by the gateway; remove it')
    else if (headers.has(name)) problems.add(at, 'is given twice; header names are case-insensitive')
    headers.set(name, readValue(given, at, problems, expanded))
  }
  return Object.fromEntries(headers)
}

function readValue(
  value: unknown,
  path: Path,
  problems: DocumentProblems,
  expanded: (text: string, at: Path) => string,
): string {
  if (typeof value !== 'string') {
    problems.add(path, 'expected a string; put numbers in quotes')
    return ''
  }
  const text = expanded(value, path).trim()
  if (text.length > VALUE_LENGTH_MAX || !VALUE.test(text)) {
    problems.add(path, `expected one line of at most ${VALUE_LENGTH_MAX} Latin-1 characters`)
    return ''
  }
  return text
}
