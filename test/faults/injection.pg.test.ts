/**
 * SQL text in any part of a request is treated as a name or a value, never as SQL.
 * Any payload that ran would leave an advisory lock of its session behind, even in a transaction that failed
 * or was read-only. In addition, no response may contain a row of the other tenant.
 */
import pg from 'pg'
import { expect, test } from 'vitest'
import { introspect } from '../../src/catalog/introspect.ts'
import { shopDatabase } from '../features/shop.ts'
import { openSession } from '../support/catalog.ts'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import type { AskOptions, Reply } from '../support/gateway.ts'
import { execute } from '../support/postgres.ts'

const database = databaseFixture(shopDatabase)
const gateway = gatewayFixture(database)

const RUN = 'select pg_advisory_lock(4711)'

/** Payloads that break out of every kind of quote, comment and bracket in a printed statement. */
const BREAKOUTS = [
  `'; ${RUN}; --`,
  `"; ${RUN}; --`,
  `"); ${RUN}; --`,
  `\\'; ${RUN}; --`,
  `\\"; ${RUN}; --`,
  `1); ${RUN}; --`,
  `' || (${RUN}) || '`,
  `id" = "id" or (${RUN}) is null or "id`,
  `x" from users; ${RUN}; --`,
  `$$; ${RUN}; $$`,
  `*/ ${RUN} /*`,
  `{"'; ${RUN}; --"}`,
  `(1,"'; ${RUN}; --")`,
]

const PAYLOADS = [
  ...BREAKOUTS,
  ...[`(${RUN})`, `id, (${RUN}) as x`, 'pg_advisory_lock(4711)', `users; ${RUN}`, `asc; ${RUN}`, `\n; ${RUN}; --`],
  ...[`E'\\''; ${RUN}; --`, `U&"\\0022; ${RUN}; --`, `\u02bc; ${RUN}; --`, `\uff07; ${RUN}; --`, `%2527; ${RUN}; --`],
  ...["'", '"', '\\', '--', '/*', ';', '$1', '%s', ':name', '?', '\u0001', '\u{1f600}', ''],
  ...['xmin', 'ctid', 'current_user', 't', 't.id', 'r.*', 'p', 't1', 'orders', 'pg_shadow', 'pg_catalog.pg_class'],
  ...['plain_view', '../users', 'public.users', '1 or 1=1', 'null', 'row(1,2)'],
]

type Place = (payload: string, quoted: string) => string | readonly [path: string, options: AskOptions]

const PLACES: Readonly<Record<string, Place>> = {
  table: p => `/api/${e(p)}`,
  id: p => `/api/customers/${e(p)}`,
  'id of a text key': p => `/api/codes/${e(p)},${e(p)}`,
  child: p => `/api/customers/1/${e(p)}`,
  'child hint': p => `/api/users/1/${e(`orders!${p}`)}`,
  'parent id': p => `/api/customers/${e(p)}/orders`,
  'filter column': p => `/api/orders?${e(p)}=1`,
  'filter column, key-style': p => `/api/orders?${e(p)}.eq=1`,
  'filter column, quoted': (_, q) => `/api/orders?${e(q)}.eq=1`,
  'filter operator': p => `/api/orders?note.${e(p)}=1`,
  'value operator': p => `/api/orders?note=${e(`${p}.x`)}`,
  'list element': (_, q) => `/api/orders?note=${e(`in.(${q})`)}`,
  'json key': p => `/api/customers?${e(`meta->${p}`)}=1`,
  'json key as text': p => `/api/customers?${e(`meta->>${p}`)}=x`,
  'json key, quoted': (_, q) => `/api/customers?${e(`meta->>${q}`)}.eq=x`,
  group: p => `/api/orders?or=${e(`(${p})`)}`,
  'group column': (_, q) => `/api/orders?or=${e(`(${q}.eq.1)`)}`,
  'group value': (_, q) => `/api/orders?or=${e(`(note.eq.${q},id.gt.0)`)}`,
  'group name': p => `/api/orders?or=${e(`(${p}(id.eq.1))`)}`,
  select: p => `/api/orders?select=${e(p)}`,
  'select, quoted': (_, q) => `/api/orders?select=${e(q)}`,
  'select alias': p => `/api/orders?select=${e(`${p}:id`)}`,
  'select alias, quoted': (_, q) => `/api/orders?select=${e(`${q}:id`)}&sort=-id&limit=2`,
  'select json key': (_, q) => `/api/customers?select=${e(`a:meta->>${q}`)}`,
  'select json key as name': (_, q) => `/api/customers?select=${e(`meta->${q}`)}`,
  sort: p => `/api/orders?sort=${e(p)}`,
  'sort, quoted': (_, q) => `/api/orders?sort=${e(`-${q}`)}`,
  'sort direction': p => `/api/orders?sort=${e(`id:${p}`)}`,
  'sort nulls': p => `/api/orders?sort=${e(`id:asc.${p}`)}`,
  'sort json key': (_, q) => `/api/customers?sort=${e(`meta->>${q}:desc`)}&limit=1`,
  distinct: p => `/api/orders?distinct=${e(p)}`,
  search: p => `/api/products?search=${e(p)}`,
  'search columns': p => `/api/products?search=x&search_columns=${e(p)}`,
  expand: p => `/api/orders?expand=${e(p)}`,
  'expand, quoted': (_, q) => `/api/orders?expand=${e(q)}`,
  'expand alias': (_, q) => `/api/orders?expand=${e(`${q}:customers`)}`,
  'expand alias, nested': (_, q) => `/api/customers?expand=${e(`${q}:nested:orders.nested:order_items`)}`,
  'expand hint': p => `/api/orders?expand=${e(`users!${p}`)}`,
  'expand below': p => `/api/orders?expand=${e(`customers.${p}`)}`,
  limit: p => `/api/orders?limit=${e(p)}`,
  offset: p => `/api/orders?offset=${e(p)}`,
  stream: p => `/api/orders?stream=${e(p)}`,
  cursor: p => `/api/orders?cursor=${e(p)}`,
  'cursor value': p => `/api/orders?cursor=${Buffer.from(JSON.stringify(['digest', p])).toString('base64url')}`,
  parameter: p => `/api/orders/1?${e(p)}=1`,
  prefer: p => ['/api/orders', { headers: { prefer: `count=${latin1(p)}` } }],
  'request id': p => ['/api/orders', { headers: { 'x-request-id': latin1(p) || 'x' } }],
  'tenant claim': p => ['/api/orders', { as: { tenantId: p } }],
  'user claim': p => ['/api/orders', { as: { tenantId: 't1', userId: p, role: p, agentId: p } }],
}

const OPERATORS = [
  'eq',
  'ne',
  'gt',
  'in',
  'like',
  'ilike',
  'is_distinct',
  'contains',
  'overlaps',
  'match',
  'fts',
  'is_null',
]

/** Columns of types text, number, enum, array, JSON and range. */
const TYPED = ['orders?note', 'orders?id', 'orders?status', 'customers?tags', 'customers?meta', 'orders?open']

function e(text: string): string {
  return encodeURIComponent(text)
}

/** In the quotes of the notation: the content is one name or value. */
function quotedName(text: string): string {
  return `"${text.replaceAll('"', '""')}"`
}

/** Payloads that a header can contain. */
function latin1(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '')
}

/** Names and values that occur only in rows of tenant t2. */
const FOREIGN = /Zinc|Zoe|zinc\.io|"secret"|"hidden"|"foreign"|"other"|"tenant_id":"t2"/

function assertOrdinary(reply: Reply, sent: string): void {
  expect([200, 400, 404], `${sent}\n${reply.status} ${reply.text}`).toContain(reply.status)
  expect(reply.text, sent).not.toMatch(FOREIGN)
  if (reply.status === 200) return
  const { error } = reply.json
  expect(error, sent).toMatchObject({
    status: reply.status,
    message: expect.any(String),
    request_id: expect.any(String),
  })
  expect(['PARSE_ERROR', 'QUERY_ERROR', 'NOT_FOUND'], sent).toContain(error.code)
}

test('no payload in any part of a request is executed', { timeout: 60_000 }, async () => {
  const authorization = `Bearer ${await gateway.token({ tenantId: 't1' })}`
  const jobs = [
    ...Object.entries(PLACES).flatMap(([place, write]) =>
      PAYLOADS.map(payload => ({ place, payload, written: write(payload, quotedName(payload)) })),
    ),
    ...TYPED.flatMap(column =>
      OPERATORS.flatMap(operator =>
        BREAKOUTS.map(payload => {
          return { place: `${column}.${operator}`, payload, written: `/api/${column}.${operator}=${e(payload)}` }
        }),
      ),
    ),
  ]
  const statuses = new Map<number, number>()
  const worker = async () => {
    for (let job = jobs.pop(); job !== undefined; job = jobs.pop()) {
      const [path, options] = typeof job.written === 'string' ? [job.written, {}] : job.written
      const headers = options.as === undefined ? { authorization, ...options.headers } : options.headers
      const reply = await gateway.get(path, { as: null, ...options, ...(headers && { headers }) })
      assertOrdinary(reply, `${job.place}: ${JSON.stringify(job.payload)} ${path}`)
      statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: 16 }, worker))
  expect(await locks()).toBe(0)
  // Not every payload was rejected by the parser: many reached the database as values and aliases.
  expect(statuses.get(200)).toBeGreaterThan(800)
  expect(await execute(database.adminUrl, 'select count(*)::int from users')).toEqual([{ count: 4 }])
})

test('the tables of this file need no reset of the session, which would release a lock before it is seen', async () => {
  const session = await openSession(database.url)
  try {
    const { functionReach } = await introspect(session.query, { schemas: ['public'], exposedViews: [] })
    expect([[...functionReach.leaving.relations], functionReach.leaving.everywhere]).toEqual([[], false])
  } finally {
    await session.close()
  }
})

test('the check detects a lock that a session holds', async () => {
  const holder = new pg.Client({ connectionString: database.url })
  await holder.connect()
  try {
    await holder.query('select pg_advisory_lock(4711)')
    expect(await locks()).toBe(1)
  } finally {
    await holder.end()
  }
})

async function locks(): Promise<unknown> {
  const [row] = await execute(
    database.adminUrl,
    `select count(*)::int as held from pg_locks where locktype = 'advisory' and objid = 4711
       and database = (select oid from pg_database where datname = current_database())`,
  )
  return row?.held
}
