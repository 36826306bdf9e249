/**
 * `/demo/orders`: a page that shows the orders of two callers as they change, with plain HTML and one
 * WebSocket for each. Its files are an example to copy; `client.js` is a bundle of `svc-gateway/client`.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { GatewayError } from '../errors.ts'
import type { Answer } from '../exchange.ts'
import { createHosts } from '../http/hosts.ts'
import { createPages, routesOf } from '../http/pages.ts'
import type { OperatorRoutes } from '../ops/operator-routes.ts'

/** The same path from the sources and from the build. */
const FOLDER = new URL('../../dist/demo/board/', import.meta.url)

export const BOARD_PATH = '/demo/orders'

const FILES = [
  { path: BOARD_PATH, file: 'page.html', type: 'text/html' },
  { path: `${BOARD_PATH}/page.css`, file: 'page.css', type: 'text/css' },
  { path: `${BOARD_PATH}/board.js`, file: 'board.js', type: 'text/javascript' },
  { path: `${BOARD_PATH}/client.js`, file: 'client.js', type: 'text/javascript' },
] as const

/** A caller whom the page shows. */
export interface BoardShop {
  readonly id: string
  readonly name: string
  readonly slug: string
  /** The user of the orders that are inserted. */
  readonly userId: string
  readonly token: () => Promise<string>
}

/** The dependencies of the page. */
export interface BoardOptions {
  /** The callers side by side; none for a page that asks for one token. */
  readonly shops: readonly BoardShop[]
  /** Executes a statement in PostgreSQL, not through the gateway. */
  readonly execute: (statement: string) => Promise<void>
}

/**
 * Creates the page. A page of another site could reach the demo through DNS rebinding, so requests for tokens
 * and writes must name this machine in `Host`, and in `Origin` if they have one.
 */
export function createBoard({ shops, execute }: BoardOptions = { shops: [], execute: async () => {} }): OperatorRoutes {
  const hosts = createHosts([])
  const isOurs = ({ host, origin }: IncomingHttpHeaders): boolean => hosts.isOurs(host, origin, undefined)
  return new Map([
    ...routesOf(createPages(FOLDER, FILES)),
    [
      `${BOARD_PATH}/shops`,
      {
        method: 'GET',
        answer: async ({ headers }) => {
          const shown = isOurs(headers) ? shops : []
          const tokens = await Promise.all(shown.map(({ token }) => token()))
          return answerJson({ shops: shown.map(({ name, slug }, index) => ({ name, slug, token: tokens[index] })) })
        },
      },
    ],
    [
      `${BOARD_PATH}/sql`,
      {
        method: 'POST',
        answer: async ({ headers, query }) => {
          if (!isOurs(headers)) throw new GatewayError('FORBIDDEN', 'only pages of this machine can write with SQL')
          const statement = statementOf(shops, new URLSearchParams(query))
          await execute(statement)
          return answerJson({ statement })
        },
      },
    ],
  ])
}

/** Chooses a statement by the parameters `shop` and `change`. Its text consists of constants. */
function statementOf(shops: readonly BoardShop[], query: URLSearchParams): string {
  const slugs = shops.map(({ slug }) => slug)
  const shop = shops[slugs.indexOf(query.get('shop') ?? '')]
  if (shop === undefined) throw new GatewayError('PARSE_ERROR', `shop must be one of: ${slugs.join(', ')}`)
  const change = query.get('change') ?? ''
  if (!Object.hasOwn(STATEMENTS, change)) {
    throw new GatewayError('PARSE_ERROR', `change must be one of: ${Object.keys(STATEMENTS).join(', ')}`)
  }
  return STATEMENTS[change as keyof typeof STATEMENTS](shop)
}

const STATEMENTS = {
  insert: ({ id, userId }: BoardShop) =>
    'INSERT INTO orders (tenant_id, customer_id, created_by, number, currency, total)\n' +
    `SELECT tenant_id, id, '${userId}', 'SQL-' || upper(left(md5(random()::text), 6)),\n` +
    "  'EUR', round((20 + 480 * random())::numeric, 2)\n" +
    `FROM customers WHERE tenant_id = '${id}'\n` +
    'ORDER BY id LIMIT 1',
  advance: ({ id }: BoardShop) =>
    "UPDATE orders SET status = CASE status WHEN 'draft' THEN 'pending'::order_status\n" +
    "  WHEN 'pending' THEN 'paid' ELSE 'shipped' END\n" +
    `WHERE id = (SELECT id FROM orders WHERE tenant_id = '${id}'\n` +
    "  AND status IN ('draft', 'pending', 'paid') ORDER BY placed_at DESC LIMIT 1)",
} as const

function answerJson(body: unknown): Answer {
  const headers = { 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-store' }
  return { status: 200, headers, body: Buffer.from(JSON.stringify(body)) }
}
