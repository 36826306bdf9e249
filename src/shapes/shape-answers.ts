/** The responses to shape requests: status, headers, and the form of errors that clients of shapes expect. */
import { GatewayError } from '../errors.ts'
import type { Answer, Incoming } from '../exchange.ts'
import { START_OFFSET } from './position.ts'
import { MUST_REFETCH } from './shape-messages.ts'
import { ShapeProblem } from './shape-problem.ts'
import type { ShapeRequest } from './shape-request.ts'

/** The headers of shapes that a page of another origin can read. */
export const SHAPE_HEADERS: readonly string[] = [
  'electric-cursor',
  'electric-handle',
  'electric-offset',
  'electric-schema',
  'electric-snapshot',
  'electric-up-to-date',
]

/** The methods of the route, without and with `shapes.allow_deletion`. */
export function shapeMethods(allowsDeletion: boolean): readonly string[] {
  return ['GET', 'HEAD', 'POST', ...(allowsDeletion ? ['DELETE'] : []), 'OPTIONS']
}

/** The values from which the headers of a successful response are derived. */
export interface ShapeOutcome {
  readonly request: ShapeRequest
  readonly handle: string
  readonly offset: string
  readonly schema: string
  /** The offset of the request; null in the first response of a shape. */
  readonly upToDate: 'with changes' | 'without changes' | null
  /** True if the caller has no token, so that shared caches can store the response. */
  readonly isPublic: boolean
  readonly longPollMs: number
  /** Milliseconds since 1970. */
  readonly now: number
}

/** The headers of a successful response. */
export function shapeHeaders(outcome: ShapeOutcome): Record<string, string> {
  const { request, handle, offset, schema, upToDate, longPollMs, now } = outcome
  const isLive = request.live !== 'no'
  const tag = tagOf(outcome)
  return {
    'Content-Type': request.live === 'events' ? 'text/event-stream' : 'application/json; charset=utf-8',
    'Cache-Control': cacheControl(outcome),
    Vary: 'Authorization',
    // The content of a stream of events is not known yet.
    ...(request.live === 'events' ? {} : { ETag: tag }),
    'electric-handle': handle,
    'electric-offset': offset,
    ...(isLive ? { 'electric-cursor': nextCursor(request.cursor, longPollMs, now) } : { 'electric-schema': schema }),
    ...(upToDate === null ? {} : { 'electric-up-to-date': '' }),
    // Asks proxies not to buffer the events.
    ...(request.live === 'events' ? { 'X-Accel-Buffering': 'no' } : {}),
  }
}

/**
 * The entity tag. The response with the rows keeps its tag as long as its handle is issued, although the rows
 * change: a client with older rows continues from the position that it received with them.
 */
function tagOf({ request, handle, offset, now }: ShapeOutcome): string {
  if (request.offset === '-1') return `W/"${handle}:-1:${request.hasRows ? START_OFFSET : 'changes'}"`
  return `"${[handle, request.offset, offset, ...(request.live === 'no' ? [] : [now])].join(':')}"`
}

/** True if the client has a response with the same tag. */
export function isShapeUnchanged({ ETag: tag }: Readonly<Record<string, string>>, { headers }: Incoming): boolean {
  const condition = headers['if-none-match']?.trim()
  if (condition === undefined || tag === undefined) return false
  const tags: readonly string[] = condition.match(/"[^"]*"/g) ?? []
  return condition === '*' || tags.includes(tag.replace(/^W\//, ''))
}

/** The 304 response to a client that has rows. Their position remains that of the cached response. */
export function notModifiedRows(headers: Record<string, string>): Answer {
  const { 'Content-Type': _, 'electric-offset': __, ...others } = headers
  return { status: 304, headers: others, body: null }
}

/**
 * Responses to a caller with a token are private: a shared cache that ignores `Vary` would serve them to
 * others. The response with the rows can be old, because the client then reads the later changes.
 */
function cacheControl({ request, isPublic }: ShapeOutcome): string {
  const scope = isPublic ? 'public' : 'private'
  if (request.live === 'events') return 'no-cache, no-transform'
  if (request.live === 'long poll') return `${scope}, max-age=5, stale-while-revalidate=5`
  if (request.offset !== '-1') return `${scope}, max-age=60, stale-while-revalidate=300`
  return isPublic
    ? 'public, max-age=604800, s-maxage=3600, stale-while-revalidate=2629746'
    : 'private, max-age=3600, stale-while-revalidate=86400'
}

/** The headers of a subset, which is not cached: the client compares it with later changes. */
export function subsetHeaders(handle: string, offset: string, schema: string): Record<string, string> {
  return {
    ...JSON_HEADERS,
    'Cache-Control': 'no-store',
    Vary: 'Authorization',
    'electric-handle': handle,
    'electric-offset': offset,
    'electric-schema': schema,
    'electric-snapshot': 'true',
  }
}

/** The time from which cursors are counted. */
const CURSOR_EPOCH_MS = Date.UTC(2024, 9, 9)

/**
 * The cursor of the next live request: the end of the current interval of a long poll, so that clients of one
 * interval send the same request. If the client already sent this cursor, the result is a later one.
 */
function nextCursor(used: string | null, longPollMs: number, now: number): string {
  const interval = Math.max(1, Math.round(longPollMs / 1_000))
  const seconds = Math.floor((now - CURSOR_EPOCH_MS) / 1_000)
  const next = (Math.floor(seconds / interval) + 1) * interval
  return String(used !== null && Number(used) >= next ? next + interval : next)
}

/**
 * The response that asks a client to start again with another handle. All clients of a public shape start
 * again at the same time, so a shared cache can answer them for a short time.
 */
export function mustRefetch(handle: string, { isPublic }: Pick<ShapeOutcome, 'isPublic'>): Answer {
  const caching = isPublic ? 'public, max-age=60, must-revalidate' : 'no-store'
  return {
    status: 409,
    headers: { ...JSON_HEADERS, 'Cache-Control': caching, Vary: 'Authorization', 'electric-handle': handle },
    body: Buffer.from(MUST_REFETCH),
  }
}

const JSON_HEADERS = { 'Content-Type': 'application/json; charset=utf-8' }

const RETRY_SOON = { 'Retry-After': '1' }

/** The response to a refused request; null if the error is not one for the client. */
export function shapeRefusal(error: unknown): (Answer & { readonly code: GatewayError['code'] }) | null {
  if (error instanceof ShapeProblem) {
    const body = { message: 'Invalid request', errors: { [error.parameter]: [error.message] } }
    return { ...refusal(400, body, {}), code: 'PARSE_ERROR' }
  }
  if (!(error instanceof GatewayError) || (error.status >= 500 && error.code !== 'UNAVAILABLE')) return null
  const { status, code, message, headers } = error
  const retry = status === 503 ? RETRY_SOON : {}
  return { ...refusal(status, { code: code.toLowerCase(), message }, { ...retry, ...headers }), code }
}

function refusal(status: number, body: object, headers: GatewayError['headers']): Answer {
  return {
    status,
    headers: { ...JSON_HEADERS, 'Cache-Control': 'no-store', ...headers },
    body: Buffer.from(JSON.stringify(body)),
  }
}

/** The response to OPTIONS. */
export function optionsAnswer(methods: readonly string[]): Answer {
  return { status: 204, headers: { Allow: methods.join(', ') }, body: null }
}

/** The response to HEAD: the response to GET without its body. */
export function forMethod({ method }: Pick<Incoming, 'method'>, answer: Answer): Answer {
  return method === 'HEAD' ? { ...answer, body: null } : answer
}
