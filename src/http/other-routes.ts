/** Routes without rows: health, operators' routes, pages for browsers, and the documents of the API. */
import type { View } from '../access/rights.ts'
import { GatewayError } from '../errors.ts'
import type { Answer, Incoming } from '../exchange.ts'
import type { Health } from '../ops/health.ts'
import type { OperatorRoutes } from '../ops/operator-routes.ts'
import { methodNotAllowed, READING } from '../rest/method.ts'
import { isVisit } from './front.ts'

/** The dependencies of routes without rows. */
export interface PageParts {
  readonly health: Pick<Health, 'answer'>
  /** Operators' routes and pages for browsers, by path. */
  readonly internal: OperatorRoutes
}

/** JSON documents, by the kind of their route. */
export type Documents = Readonly<Record<'schema' | 'contracts' | 'openapi', (view: View) => Buffer | Promise<Buffer>>>

/** Throws NOT_FOUND for an unknown path, METHOD_NOT_ALLOWED for another method. */
export function answerPage(
  incoming: Incoming,
  progress: { route: string },
  { health, internal }: PageParts,
): Answer | Promise<Answer> {
  if (incoming.path === '/health') {
    progress.route = '/health'
    assertReading(incoming)
    return health.answer()
  }
  const page = incoming.path === '/' && !isVisit(incoming) ? undefined : internal.get(incoming.path)
  if (page === undefined) throw noRoute(incoming)
  progress.route = incoming.path
  if (page.method === 'GET') assertReading(incoming)
  else if (incoming.method !== page.method) throw methodNotAllowed(incoming, [page.method])
  return page.answer(incoming)
}

/** Throws METHOD_NOT_ALLOWED for a method that does not read. */
export function answerDocument(incoming: Incoming, make: () => Buffer | Promise<Buffer>): Answer | Promise<Answer> {
  assertReading(incoming)
  const body = make()
  return body instanceof Promise ? body.then(answerJson) : answerJson(body)
}

/** Creates the error for a path without a route. */
export function noRoute({ method, path }: Pick<Incoming, 'method' | 'path'>): GatewayError {
  return new GatewayError(
    'NOT_FOUND',
    `there is no route ${method} ${path.slice(0, 200)}; tables are under /api/, and GET /api/_schema lists them`,
  )
}

function assertReading(incoming: Incoming): void {
  if (!READING.includes(incoming.method)) throw methodNotAllowed(incoming, READING)
}

function answerJson(body: Buffer): Answer {
  return { status: 200, headers: { 'Content-Type': 'application/json; charset=utf-8' }, body }
}
