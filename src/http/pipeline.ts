/** What happens to a request, in the order of specification 4.7. Limits on the bytes of a request and CORS come before, in `server.ts`. */
import { GatewayError } from '../errors.ts'
import type { Identity } from '../identity/identity.ts'
import type { Health } from '../ops/health.ts'
import { parsePath, ROUTE_PATTERN } from '../rest/path.ts'
import type { Reader } from '../rest/read.ts'
import type { Answer, Incoming } from './types.ts'

export interface PipelineParts {
  /** 3. Who calls. Synchronous for a token that was verified before. */
  readonly authenticate: (headers: Incoming['headers']) => Identity | Promise<Identity>
  /** 4 to 9 for reads: check, transaction with the caller's settings, release. */
  readonly read: Reader
  readonly schemaDocument: () => Buffer
  readonly health: Health
}

/** The request as far as it got: what is known of it when it fails. */
export interface Progress {
  route: string
  tenantId: string
}

export type Pipeline = (incoming: Incoming, progress: Progress) => Promise<Answer>

const READING = 'GET, HEAD'

export function createPipeline(parts: PipelineParts): Pipeline {
  return async (incoming, progress) => {
    if (incoming.path === '/health') {
      progress.route = '/health'
      assertReading(incoming)
      return parts.health.answer()
    }
    if (!incoming.path.startsWith('/api/')) throw noRoute(incoming)
    const identity = await parts.authenticate(incoming.headers)
    progress.tenantId = identity.tenantId
    const route = parsePath(incoming.path)
    if (route === null) throw noRoute(incoming)
    progress.route = ROUTE_PATTERN[route.kind]
    assertReading(incoming)
    if (route.kind === 'schema') {
      return {
        status: 200,
        headers: { 'Content-Type': 'application/json; charset=utf-8' },
        body: parts.schemaDocument(),
      }
    }
    return parts.read(incoming, route, identity)
  }
}

function assertReading({ method, path }: Incoming): void {
  if (method === 'GET' || method === 'HEAD') return
  throw new GatewayError('METHOD_NOT_ALLOWED', `${method} is not possible on ${path.slice(0, 200)}; use ${READING}`, {
    headers: { Allow: READING },
  })
}

function noRoute({ method, path }: Incoming): GatewayError {
  return new GatewayError(
    'NOT_FOUND',
    `nothing answers ${method} ${path.slice(0, 200)}; tables are below /api/, and GET /api/_schema lists them`,
  )
}
