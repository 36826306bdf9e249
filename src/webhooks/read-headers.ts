/** The headers that a trigger adds to its requests. */
import type { DocumentProblems, Path } from '../config/document.ts'
import { shorten } from '../text/shorten.ts'

export const HEADERS_MAX = 32
const VALUE_LENGTH_MAX = 4_096

/** RFC 9110, 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]{1,128}$/i

/** RFC 9110, 5.5; one line, and in Latin-1 because nothing says otherwise. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** The request's own: another value would make it another request, or a lie about its body. */
const OURS: ReadonlySet<string> = new Set([
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

/** By their names in lower case. `expanded` follows references to the environment, and reports those that it cannot. */
export function readHeaders(
  value: unknown,
  path: Path,
  problems: DocumentProblems,
  expanded: (text: string, at: Path) => string,
): Readonly<Record<string, string>> {
  const entries = problems.table(value, path, null)
  if (entries === null) return {}
  if (entries.size > HEADERS_MAX) problems.add(path, `has ${entries.size} headers; at most ${HEADERS_MAX} are possible`)
  const headers = new Map<string, string>()
  for (const [written, given] of [...entries].slice(0, HEADERS_MAX)) {
    const at = [...path, written]
    const name = written.toLowerCase()
    if (!TOKEN.test(written)) problems.add(path, `"${shorten(written)}" is no name of a header`)
    else if (OURS.has(name)) problems.add(at, 'is set by the gateway; leave it out')
    else if (headers.has(name)) problems.add(at, 'is there twice; names of headers have no case')
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
    problems.add(path, 'expected a text; put numbers in quotes')
    return ''
  }
  const text = expanded(value, path).trim()
  if (text.length > VALUE_LENGTH_MAX || !VALUE.test(text)) {
    problems.add(path, `expected one line of at most ${VALUE_LENGTH_MAX} characters of Latin-1`)
    return ''
  }
  return text
}
