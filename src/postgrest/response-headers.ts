/** Headers of every response below the prefix: CORS, `Vary` and the trace header. */
import type { Answer, Incoming } from '../exchange.ts'
import { headerOf } from '../rest/header.ts'
import { isHeaderName, isHeaderValue } from './error-response.ts'

/** The request headers that a page of any origin can send, in addition to those that it announces. */
const ALWAYS_ALLOWED = ['Accept', 'Accept-Language', 'Content-Language']

const EXPOSED =
  'Content-Encoding, Content-Location, Content-Range, Content-Type, Date, Location, Server, ' +
  'Transfer-Encoding, Range-Unit'

/** Limit on the announced headers of a preflight. */
const ANNOUNCED_MAX = 100

/**
 * The response to a preflight (Fetch Standard, CORS-preflight request), which browsers send without a token;
 * null for any other request. Any origin is allowed: a page can send its own token, but no cookies.
 */
export function respondPreflight({ method, headers }: Incoming): Answer | null {
  const isPreflight = method === 'OPTIONS' && headers.origin !== undefined
  if (!isPreflight || headers['access-control-request-method'] === undefined) return null
  const announced = (headers['access-control-request-headers'] ?? '').split(',', ANNOUNCED_MAX).map(name => name.trim())
  const allowed = ['Authorization', ...announced.filter(isHeaderName), ...ALWAYS_ALLOWED]
  return {
    status: 200,
    headers: {
      'Access-Control-Allow-Origin': '*',
      'Access-Control-Allow-Methods': 'GET, POST, PATCH, PUT, DELETE, OPTIONS, HEAD',
      'Access-Control-Allow-Headers': allowed.join(', '),
      'Access-Control-Max-Age': '86400',
    },
    body: null,
  }
}

/** The rules for the headers of responses. */
export interface HeaderRules {
  /** True if pages of any origin can read responses. */
  readonly allowsAnyOrigin: boolean
  /** The name of a request header that is copied to the response; null for none. */
  readonly traceHeader: string | null
}

/** Adds the headers that the response does not have. */
export function withCommonHeaders(answer: Answer, { headers }: Incoming, rules: HeaderRules): Answer {
  const { allowsAnyOrigin, traceHeader } = rules
  const trace = traceHeader === null ? undefined : headerOf(headers, traceHeader.toLowerCase())
  const added = allowsAnyOrigin && headers.origin !== undefined ? FOR_PAGES : FOR_ALL
  const traced = traceHeader !== null && isHeaderValue(trace) ? { ...added, [traceHeader]: trace } : added
  // Loops take a tenth of the time of spreading objects whose keys differ from response to response.
  const complete: Record<string, string> = {}
  for (const name in traced) if (!hasHeader(answer.headers, name)) complete[name] = traced[name] ?? ''
  for (const name in answer.headers) complete[name] = answer.headers[name] ?? ''
  return { ...answer, headers: complete }
}

/** A function of the database can set a header in any case. */
function hasHeader(headers: Answer['headers'], wanted: string): boolean {
  for (const name in headers) {
    if (name.length === wanted.length && name.toLowerCase() === wanted.toLowerCase()) return true
  }
  return false
}

const FOR_ALL: Readonly<Record<string, string>> = { Vary: 'Accept, Prefer, Range' }
const FOR_PAGES: Readonly<Record<string, string>> = {
  ...FOR_ALL,
  ...{ 'Access-Control-Allow-Origin': '*', 'Access-Control-Expose-Headers': EXPOSED },
}
