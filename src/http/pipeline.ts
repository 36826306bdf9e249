/**
 * What happens to a request, in order (docs/internals/a-request.md). Limits on the bytes of a request, CORS and the rate limit come before, in `server.ts` and
 * `admission.ts`.
 */
import type { Approvals } from '../access/list/approvals.ts'
import { type ErrorCode, GatewayError } from '../errors.ts'
import type { Answer, Incoming } from '../exchange.ts'
import { ANONYMOUS } from '../identity/authenticate.ts'
import type { Identity } from '../identity/identity.ts'
import type { Health } from '../ops/health.ts'
import type { Internal } from '../ops/internal.ts'
import type { Timed } from '../ops/server-timing.ts'
import type { Querier } from '../query/query.ts'
import { type DataRoute, shapeOfRequest } from '../rest/allow-list/request-shape.ts'
import { methodNotAllowed, READING } from '../rest/method.ts'
import { parsePath, ROUTE_PATTERN, type Route } from '../rest/path.ts'
import type { Reader } from '../rest/read/read.ts'
import type { Caller } from '../rest/rpc/call.ts'
import type { Writer } from '../rest/write/write.ts'
import { unreachable } from '../unreachable.ts'

export interface CallerParts {
  /** 3. Who calls. Synchronous for a token that was verified before. */
  readonly authenticate: (headers: Incoming['headers'], connection: object) => Identity | Promise<Identity>
  readonly explainEndpoint: 'on' | 'admin' | 'off'
  /** Whether the request carries the admin token. */
  readonly isAdmin: (headers: Incoming['headers']) => boolean
}

export interface PipelineParts extends CallerParts {
  /** 4. Whether a query may be asked at all; null: any may. Texts of the query language are judged where they are parsed. */
  readonly approvals: Approvals | null
  /** 4 to 9: check, transaction with the caller's settings, release. */
  readonly read: Reader
  readonly write: Writer
  readonly call: Caller
  readonly query: Querier
  readonly schemaDocument: (identity: Identity) => Buffer
  readonly contractsDocument: (identity: Identity) => Buffer
  readonly openApiDocument: (identity: Identity) => Promise<Buffer>
  /** Throws for a caller who reads so little of what was answered that nothing more may be started. */
  readonly assertRoom: (caller: Identity, method: string) => void
  readonly health: Health
  readonly internal: Internal
}

/** The request as far as it got: what is known of it when it fails. */
export interface Progress extends Timed {
  route: string
  /** Below `/api/`, once it is known. */
  at: Route | null
  tenantId: string
  /** Null until it is known. */
  caller: Identity | null
  /** Of the error it ended with. */
  code: ErrorCode | null
}

/** Answers, throws or rejects; at once where nobody has to be waited for. */
export type Pipeline = (incoming: Incoming, progress: Progress) => Answer | Promise<Answer>

type Head = Pick<Incoming, 'path' | 'headers' | 'connection'>

/** Who calls, asked with the head of a request alone. Null: nobody is asked for. Throws or rejects with UNAUTHORIZED. */
export type Identify = (head: Head) => Identity | null | Promise<Identity>

export function createIdentify(parts: CallerParts): Identify {
  return head => (isOfApi(head) ? callerOf(head, parts) : null)
}

function callerOf(head: Head, parts: CallerParts): Identity | Promise<Identity> {
  return isAdminExplaining(head, parts) ? ANONYMOUS : parts.authenticate(head.headers, head.connection)
}

/** The admin token is no caller's: who explains with it explains as nobody. */
function isAdminExplaining({ path, headers }: Head, { explainEndpoint, isAdmin }: CallerParts): boolean {
  return explainEndpoint === 'admin' && isExplain(path) && isAdmin(headers)
}

function isOfApi({ path }: Head): boolean {
  return path.startsWith('/api/')
}

export function createPipeline(parts: PipelineParts): Pipeline {
  function answer(incoming: Incoming, route: Route, identity: Identity): Answer | Promise<Answer> {
    switch (route.kind) {
      case 'schema':
        assertReading(incoming)
        return document(parts.schemaDocument(identity))
      case 'contracts':
        assertReading(incoming)
        return document(parts.contractsDocument(identity))
      case 'openapi':
        assertReading(incoming)
        return parts.openApiDocument(identity).then(document)
      case 'query':
        return parts.query(incoming, identity)
      case 'rpc':
        return parts.call(incoming, route, identity)
      case 'list':
      case 'one':
        return isWrite(incoming.method)
          ? parts.write(incoming, incoming.method, route, identity)
          : parts.read(incoming, route, identity)
      case 'explain':
        assertExplainable(incoming, parts)
        return parts.read(incoming, route, identity)
      case 'aggregate':
      case 'children':
        return parts.read(incoming, route, identity)
      default:
        return unreachable(route)
    }
  }

  /** Before anything is looked up: a query that is not approved says nothing about what there is. */
  async function approved(approvals: Approvals, incoming: Incoming, route: Route, identity: Identity): Promise<Answer> {
    if (isData(route)) approvals.approve(incoming, shapeOfRequest(incoming, route))
    const answered = await answer(incoming, route, identity)
    approvals.answered(incoming)
    return answered
  }

  function answerCaller(incoming: Incoming, progress: Progress, identity: Identity): Answer | Promise<Answer> {
    progress.tenantId = identity.tenantId
    progress.caller = identity
    parts.assertRoom(identity, incoming.method)
    const route = parsePath(incoming.path)
    if (route === null || (route.kind !== 'explain' && isAdminExplaining(incoming, parts))) throw noRoute(incoming)
    progress.route = ROUTE_PATTERN[route.kind]
    progress.at = route
    return parts.approvals === null
      ? answer(incoming, route, identity)
      : approved(parts.approvals, incoming, route, identity)
  }

  return (incoming, progress) => {
    if (incoming.path === '/health') {
      progress.route = '/health'
      assertReading(incoming)
      return parts.health.answer()
    }
    if (!isOfApi(incoming)) {
      const internal = parts.internal.get(incoming.path)
      if (internal === undefined) throw noRoute(incoming)
      progress.route = incoming.path
      if (internal.method === 'GET') assertReading(incoming)
      else if (incoming.method !== internal.method) throw methodNotAllowed(incoming, [internal.method])
      return internal.answer(incoming)
    }
    const identity = callerOf(incoming, parts)
    const known = (caller: Identity) => answerCaller(incoming, progress, caller)
    return identity instanceof Promise ? identity.then(known) : known(identity)
  }
}

function isData(route: Route): route is DataRoute {
  return !['schema', 'contracts', 'openapi', 'query'].includes(route.kind)
}

function isExplain(path: string): boolean {
  return path.endsWith('/_explain')
}

function isWrite(method: string): method is 'POST' | 'PATCH' | 'DELETE' {
  return method === 'POST' || method === 'PATCH' || method === 'DELETE'
}

function assertReading(incoming: Incoming): void {
  if (!READING.includes(incoming.method)) throw methodNotAllowed(incoming, READING)
}

/** With `explain_endpoint = "off"` the route does not exist; with `"admin"` it answers 401 without the token. */
function assertExplainable(incoming: Incoming, { explainEndpoint, isAdmin }: PipelineParts): void {
  if (explainEndpoint === 'off') throw noRoute(incoming)
  if (explainEndpoint === 'on' || isAdmin(incoming.headers)) return
  throw new GatewayError('UNAUTHORIZED', '_explain needs the admin token: Authorization: Bearer <admin_token>', {
    headers: { 'WWW-Authenticate': 'Bearer' },
  })
}

function document(body: Buffer): Answer {
  return { status: 200, headers: { 'Content-Type': 'application/json; charset=utf-8' }, body }
}

function noRoute({ method, path }: Incoming): GatewayError {
  return new GatewayError(
    'NOT_FOUND',
    `nothing answers ${method} ${path.slice(0, 200)}; tables are below /api/, and GET /api/_schema lists them`,
  )
}
