/**
 * docs/guides/access-policies.md#every-mention-counts: every mention of a column requires the right. Policies
 * are combined with every part of a request and of a query text that can mention a column. The expected
 * result comes from an oracle that implements only the documented rules.
 */

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createPolicies } from '../../src/access/policy/policies.ts'
import type { View } from '../../src/access/rights.ts'
import type { Table } from '../../src/catalog/model.ts'
import { relate } from '../../src/catalog/relations.ts'
import type { Identity } from '../../src/identity/identity.ts'
import { catalogWith, functionOf } from '../support/functions.ts'
import { catalogOf, tableOf } from '../support/model.ts'
import { testPipeline } from '../support/pipeline.ts'
import { type Asked, recording, type Sent } from './world.ts'

// ---- the schema ----

const COLUMNS = { orders: ['id', 'buyer_id', 'a', 'b'], buyers: ['id', 'x'] } as const

type TableKey = keyof typeof COLUMNS

const TABLES: readonly Table[] = [
  {
    ...tableOf('orders', { id: 'int8', buyer_id: 'int4', a: 'text', b: 'text' }, { primaryKey: ['id'] }),
    unique: [['a'], ['b'], ['buyer_id']],
    foreignKeys: [{ name: 'orders_buyer_id_fkey', columns: ['buyer_id'], table: 'buyers', referencedColumns: ['id'] }],
  },
  tableOf('buyers', { id: 'int4', x: 'text' }, { primaryKey: ['id'] }),
]

const relations = relate(TABLES)
const related = TABLES.map(table => ({ ...table, relations: relations.get(table.name) ?? [] }))
const result = { kind: 'composite', columns: related[0]?.columns ?? [], table: 'orders', named: true } as const
const catalog = {
  ...catalogOf(...related),
  functions: catalogWith(functionOf('all_orders()', { volatility: 'stable', returnsSet: true, result })).functions,
}

// ---- the policies ----

type Operation = 'read' | 'create' | 'update' | 'delete'

type Rule = 'any' | 'none' | { readonly only: readonly string[] } | { readonly except: readonly string[] }

interface Entry {
  readonly operations: readonly Operation[]
  readonly read_columns: Rule
  readonly write_columns: Rule
  readonly returning_columns?: Rule
}

const OPERATIONS: readonly (readonly Operation[])[] = [
  ['read', 'create', 'update', 'delete'],
  ['read'],
  ['create'],
  ['update'],
  ['delete'],
  ['read', 'update'],
  ['create', 'update'],
  ['read', 'create', 'delete'],
  [],
]
const READ: readonly Rule[] = [
  'any',
  'none',
  { only: ['id', 'a'] },
  { only: ['a'] },
  { except: ['a'] },
  { except: ['id', 'buyer_id'] },
]
const WRITE: readonly Rule[] = ['any', 'none', { only: ['id', 'a'] }, { except: ['b'] }]
const RETURNING: readonly (Rule | undefined)[] = [undefined, 'any', 'none', { only: ['a'] }, { except: ['id'] }]
const BUYERS: readonly Entry[] = [
  { operations: ['read'], read_columns: 'any', write_columns: 'none' },
  { operations: ['read'], read_columns: { only: ['x'] }, write_columns: 'none' },
  { operations: ['create'], read_columns: 'any', write_columns: 'any' },
]

interface Policy {
  readonly orders: Entry
  readonly buyers: Entry
}

/** All operations and readable columns; the other rights alternate. */
function* policies(): Generator<Policy> {
  let turn = 0
  for (const operations of OPERATIONS) {
    for (const read_columns of READ) {
      for (let i = 0; i < 5; i++) {
        turn++
        const returning = RETURNING[turn % RETURNING.length]
        yield {
          orders: {
            operations,
            read_columns,
            write_columns: WRITE[turn % WRITE.length] ?? 'any',
            ...(returning === undefined ? {} : { returning_columns: returning }),
          },
          buyers: BUYERS[turn % BUYERS.length] ?? { operations: [], read_columns: 'none', write_columns: 'none' },
        }
      }
    }
  }
}

// ---- the oracle ----

function names(rule: Rule, column: string): boolean {
  if (rule === 'any' || rule === 'none') return rule === 'any'
  return 'only' in rule ? rule.only.includes(column) : !rule.except.includes(column)
}

class Oracle {
  readonly #policy: Policy
  constructor(policy: Policy) {
    this.#policy = policy
  }
  may(table: TableKey, operation: Operation): boolean {
    return this.#policy[table].operations.includes(operation)
  }
  reads(table: TableKey, ...columns: readonly string[]): boolean {
    return this.may(table, 'read') && columns.every(column => names(this.#policy[table].read_columns, column))
  }
  readsSome(table: TableKey): boolean {
    return COLUMNS[table].some(column => this.reads(table, column))
  }
  writes(operation: 'create' | 'update', ...columns: readonly string[]): boolean {
    return this.may('orders', operation) && columns.every(column => names(this.#policy.orders.write_columns, column))
  }
  answers(column: string, written: readonly string[]): boolean {
    const { returning_columns: rule } = this.#policy.orders
    return rule === undefined ? this.reads('orders', column) || written.includes(column) : names(rule, column)
  }
  knows(column: string): boolean {
    return this.reads('orders', column) || this.writes('create', column) || this.writes('update', column)
  }
}

// ---- the places ----

interface Place {
  readonly sent: (column: string) => Sent | string
  readonly allowed: (may: Oracle, column: string) => boolean
}

const rest = (path: string, needs: Place['allowed']): Place => ({
  sent: column => path.replaceAll('%', column),
  allowed: needs,
})
const send = (
  method: string,
  path: string,
  body: (column: string) => unknown,
  allowed: Place['allowed'],
  headers: Sent['headers'] = {},
): Place => ({
  sent: column => ({ method, path: path.replaceAll('%', column), body: JSON.stringify(body(column)), headers }),
  allowed,
})
const text = (query: string, allowed: Place['allowed']): Place => ({
  sent: column => ({
    method: 'POST',
    path: '/api/_query',
    body: JSON.stringify({ query: query.replaceAll('%', column) }),
  }),
  allowed,
})
const one = (column: string) => ({ [column]: null })
const mentioned: Place['allowed'] = (may, column) => may.reads('orders', column)
const withRows: Place['allowed'] = (may, column) => may.reads('orders', column) && may.readsSome('orders')
const toBuyer = (may: Oracle): boolean => may.reads('orders', 'buyer_id') && may.reads('buyers', 'id')
const UPSERT = { 'x-upsert': 'true', 'x-on-conflict': 'a' }

const PLACES: readonly Place[] = [
  // REST, reads
  rest('/api/orders', may => may.readsSome('orders')),
  rest('/api/orders/1', may => may.readsSome('orders')),
  rest('/api/orders?stream=true', may => may.readsSome('orders')),
  rest('/api/orders/1?select=%', mentioned),
  rest('/api/orders?select=%', mentioned),
  rest('/api/orders?select=z:%', mentioned),
  rest('/api/orders?%=1', withRows),
  rest('/api/orders?%.ne=1', withRows),
  rest('/api/orders?%.is_null=true', withRows),
  rest('/api/orders?%.in=1,2', withRows),
  rest('/api/orders?or=(%.eq.1,not.and(%.is_null,%.gt.2))', withRows),
  rest('/api/orders?sort=-%', withRows),
  rest('/api/orders?distinct=%', mentioned),
  rest('/api/orders?search=x&search_columns=a', (may, _) => may.reads('orders', 'a') && may.readsSome('orders')),
  rest('/api/orders?search=x', may => may.reads('orders', 'a') || may.reads('orders', 'b')),
  rest('/api/orders?stream=true&%=1', withRows),
  rest('/api/orders/aggregate?fn=count', may => may.may('orders', 'read')),
  rest('/api/orders/aggregate?fn=count&column=%', mentioned),
  rest('/api/orders/aggregate?fn=count&group_by=%', mentioned),
  rest('/api/orders/aggregate?fn=count&%=1', mentioned),
  rest('/api/orders/_aggregate?fn=max&column=%', mentioned),
  rest('/api/orders/_explain?%=1', withRows),
  rest('/api/orders?select=%&expand=buyers', (may, column) => may.reads('orders', column) && toBuyer(may)),
  rest('/api/buyers?select=id&expand=nested:orders(%)', (may, column) => toBuyer(may) && may.reads('orders', column)),
  rest('/api/buyers?select=id&expand=nested:orders&orders.%=1', (may, column) => toBuyer(may) && withRows(may, column)),
  rest(
    '/api/buyers?select=id&expand=nested:orders&orders.sort=-%',
    (may, column) => toBuyer(may) && withRows(may, column),
  ),
  rest('/api/orders/1?expand=buyer', may => may.readsSome('orders') && toBuyer(may)),
  rest('/api/buyers?select=id&expand=nested:orders', may => toBuyer(may) && may.readsSome('orders')),
  rest(
    '/api/buyers/1/orders?%=1',
    (may, column) => may.may('buyers', 'read') && may.reads('orders', 'buyer_id') && withRows(may, column),
  ),
  // functions
  rest('/api/rpc/all_orders', may => may.readsSome('orders')),
  rest('/api/rpc/all_orders?select=%', mentioned),
  rest('/api/rpc/all_orders?%=1', withRows),
  rest('/api/rpc/all_orders?sort=%', withRows),
  // REST, writes
  send('POST', '/api/orders', one, (may, column) => may.writes('create', column)),
  send(
    'POST',
    '/api/orders',
    column => [one(column), one(column)],
    (may, column) => may.writes('create', column),
  ),
  send(
    'POST',
    '/api/orders?returning=%',
    () => one('a'),
    (may, column) => may.writes('create', 'a') && may.answers(column, ['a']),
  ),
  send('POST', '/api/orders', one, (may, column) => may.writes('create', column), { prefer: 'return=minimal' }),
  send(
    'POST',
    '/api/orders',
    column => ({ a: 'x', [column]: '1' }),
    (may, column) =>
      may.writes('create', 'a', column) &&
      may.writes('update', ...(column === 'a' ? ['a'] : [column])) &&
      may.knows('a'),
    UPSERT,
  ),
  send(
    'POST',
    '/api/orders',
    () => one('a'),
    (may, column) => may.writes('create', 'a') && (column === 'id' || may.knows(column)) && may.knows(column),
    { 'x-upsert': 'ignore', 'x-on-conflict': '%' },
  ),
  send('PATCH', '/api/orders/1', one, (may, column) => may.writes('update', column)),
  send(
    'PATCH',
    '/api/orders/1?returning=%',
    () => one('a'),
    (may, column) => may.writes('update', 'a') && may.answers(column, ['a']),
  ),
  send(
    'PATCH',
    '/api/orders?%=1',
    () => one('a'),
    (may, column) => may.writes('update', 'a') && may.reads('orders', column),
  ),
  { sent: () => ({ method: 'DELETE', path: '/api/orders/1' }), allowed: may => may.may('orders', 'delete') },
  {
    sent: column => ({ method: 'DELETE', path: `/api/orders/1?returning=${column}` }),
    allowed: (may, column) => may.may('orders', 'delete') && may.answers(column, []),
  },
  {
    sent: column => ({ method: 'DELETE', path: `/api/orders?${column}=1` }),
    allowed: (may, column) => may.may('orders', 'delete') && may.reads('orders', column),
  },
  // query texts
  text('get orders', may => may.readsSome('orders')),
  text('get orders fields %', mentioned),
  text('get orders o fields o.%', mentioned),
  text('get orders fields concat(%, 1) as z', mentioned),
  text('get orders where % is null', withRows),
  text('get orders[% is not null]', withRows),
  text('get orders order by %', withRows),
  text('get orders fields count(%) as n', mentioned),
  text('get orders fields count(*) as n group by %', mentioned),
  text('get orders fields count(*) as n having max(%) is null', mentioned),
  text('get orders fields row_number() over (order by %) as n', mentioned),
  text('get orders fields count(*) filter (where % is null) as n', mentioned),
  text('get orders fields case when % is null then 1 end as z', mentioned),
  text('get distinct orders fields %', mentioned),
  text('count orders where % is null', mentioned),
  text('export orders where % is null', withRows),
  text('explain get orders where % is null', withRows),
  text('with o as (get orders fields %) get o', mentioned),
  text('get (get orders fields %) as o', mentioned),
  text(
    'get buyers fields 1 as one where exists (get orders o where o.% is null)',
    (may, column) => may.may('buyers', 'read') && withRows(may, column),
  ),
  text(
    'get buyers fields 1 as one where 1 in (get orders fields %)',
    (may, column) => may.may('buyers', 'read') && may.reads('orders', column),
  ),
  text(
    'get orders inner join buyers on orders.% is not null fields 1 as one',
    (may, column) => may.may('buyers', 'read') && may.reads('orders', column),
  ),
  text('get orders inner join buyers fields 1 as one', toBuyer),
  text('get orders nest buyers fields orders.%', (may, column) => may.reads('orders', column) && toBuyer(may)),
  text(
    'get buyers nest many orders { fields % } fields buyers.x',
    (may, column) => may.reads('buyers', 'x') && toBuyer(may) && may.reads('orders', column),
  ),
  text('get orders fields 1 as one union all get orders fields %', mentioned),
  text('add orders fields % values null', (may, column) => may.writes('create', column)),
  text(
    'add orders fields a values null returning %',
    (may, column) => may.writes('create', 'a') && may.answers(column, ['a']),
  ),
  text(
    'add orders fields a from (get orders fields %::text as a)',
    (may, column) => may.writes('create', 'a') && may.reads('orders', column),
  ),
  text(
    'add orders fields a values null conflict (%) nothing',
    (may, column) => may.writes('create', 'a') && may.knows(column),
  ),
  text(
    'add orders fields a values null conflict (a) update % = null',
    (may, column) => may.writes('create', 'a') && may.writes('update', column) && may.knows('a'),
  ),
  text(
    'add orders fields a values null conflict (a) update a = orders.%::text',
    (may, column) => may.writes('create', 'a') && may.writes('update', 'a') && may.reads('orders', column),
  ),
  text('set orders values % = null where all', (may, column) => may.writes('update', column)),
  text(
    'set orders values a = %::text where all',
    (may, column) => may.writes('update', 'a') && may.reads('orders', column),
  ),
  text(
    'set orders values a = null where % is null',
    (may, column) => may.writes('update', 'a') && may.reads('orders', column),
  ),
  text(
    'set orders values a = null where all returning %',
    (may, column) => may.writes('update', 'a') && may.answers(column, ['a']),
  ),
  text('del orders where % is null', (may, column) => may.may('orders', 'delete') && may.reads('orders', column)),
  text('del orders where all returning %', (may, column) => may.may('orders', 'delete') && may.answers(column, [])),
]

// ---- the entry points ----

/** The pipeline for callers with these rights. */
function doorsFor(view: (identity: Identity) => View): Asked {
  return recording(runner => testPipeline({ view, runner, signatureCheck: false }))
}

test('each part of a request is allowed exactly when the rules allow it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'matrix-'))
  const wrong: string[] = []
  let allowed = 0
  let refused = 0
  try {
    for (const policy of policies()) {
      const nativeFile = join(folder, 'policy.json')
      await writeFile(nativeFile, JSON.stringify({ default_decision: 'deny', tables: policy }))
      const schema = () => ({ catalog, searchLanguage: 'english' })
      const { rightsOf } = await createPolicies({ nativeFile, routeFile: null, schema, onProblem() {} })
      const ask = doorsFor(identity => ({ catalog, rights: rightsOf(identity) }))
      const may = new Oracle(policy)
      for (const place of PLACES) {
        for (const column of COLUMNS.orders) {
          const sent = place.sent(column)
          const filled = typeof sent === 'string' ? sent : withColumn(sent, column)
          const { error, ran } = await ask(filled)
          const isRefused = error?.code === 'FORBIDDEN'
          const should = place.allowed(may, column)
          if (should) allowed++
          else refused++
          if (isRefused === should || (error !== null && !isRefused) || (isRefused && ran.length > 0)) {
            wrong.push(
              `${JSON.stringify([policy, filled])}: ${should ? 'allowed' : 'denied'}, but ${error?.message ?? 'ran'}`,
            )
          }
        }
      }
    }
  } finally {
    await rm(folder, { recursive: true })
  }
  expect(wrong.slice(0, 5)).toEqual([])
  // Both results occur often; otherwise the matrix would test nothing.
  expect(Math.min(allowed, refused)).toBeGreaterThan(10_000)
}, 300_000)

function withColumn(sent: Sent, column: string): Sent {
  const headers = Object.entries(sent.headers ?? {}).map(([name, value]) => [name, value.replaceAll('%', column)])
  return { ...sent, headers: Object.fromEntries(headers) }
}
