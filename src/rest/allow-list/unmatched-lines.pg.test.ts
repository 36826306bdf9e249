/**
 * An allow-list line that the access check accepts is never reported as unmatched, in any form, and every
 * name in a line is looked up.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { openSession } from '../../../test/support/catalog.ts'
import { CORPUS } from '../../../test/support/corpus.ts'
import { databaseFixture, fixture } from '../../../test/support/fixtures.ts'
import { checkRead, checkWrite } from '../../access/check.ts'
import { shapeOfQuery } from '../../access/list/query-shape.ts'
import { EVERYTHING } from '../../access/rights.ts'
import { introspect } from '../../catalog/introspect.ts'
import type { Catalog } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import { parse } from '../../language/syntax/parse.ts'
import type { Statement } from '../../language/tree/ast.ts'
import { unmatchedFunctions, unmatchedQueries } from './unmatched-lines.ts'

const database = databaseFixture()
let catalog: Catalog
const session = fixture(() => openSession(database.adminUrl))

beforeAll(async () => {
  await session.query(CORPUS.schema, [])
  await session.query(
    'create function total(year int, OUT sum int, OUT "of" text) stable language sql as $$ select 1, null $$',
    [],
  )
  catalog = await introspect(session.query, { schemas: ['public', 'sales'], exposedViews: [] })
})

function unmatchedIn(...lines: readonly string[]): Promise<readonly string[]> {
  return unmatchedQueries({ file: 'f', text: lines.join('\n') }, { catalog, qualified: false, maxExpandDepth: 3 })
}

function isAccepted(statement: Statement): boolean {
  const context = { catalog, rights: EVERYTHING, searchLanguage: 'english', isCallable: () => true }
  try {
    if (statement.kind === 'get') checkRead(statement, context)
    else if (statement.kind === 'add' || statement.kind === 'set' || statement.kind === 'del')
      checkWrite(statement, context)
    else return false
    return true
  } catch (error) {
    if (error instanceof GatewayError) return false
    throw error
  }
}

describe('texts', () => {
  test('every accepted statement matches the schema', async () => {
    const accepted = CORPUS.examples.filter(({ query }) => isAccepted(parse(query)))
    expect(accepted.length).toBeGreaterThan(CORPUS.examples.length / 2)
    expect(await unmatchedIn(...accepted.map(({ query }) => shapeOfQuery(parse(query)).line()))).toEqual([])
  })

  test.each([
    ['get nothing fields id', 'there is no table "nothing"; GET /api/_schema lists the tables'],
    ['get sales.target', 'there is no table "sales.target"; did you mean "sales.targets"?'],
    ['get users where nam = ?', 'table "users" has no column "nam"; did you mean "name"?'],
    ['get users as u fields u.nam', 'table "users" has no column "nam"; did you mean "name"?'],
    [
      'get users as u inner join orders as o on o.user_id = u.id where statu = ?',
      'no table of the query has a column "statu"',
    ],
    ['get users fields id order by nam', 'table "users" has no column "nam"; did you mean "name"?'],
    ['get users where id in (get orders fields userid)', 'no table of the query has a column "userid"'],
    ['with u as (get users fields nam) get u', 'table "users" has no column "nam"; did you mean "name"?'],
    ['add users fields id, nam values ?, ?', 'table "users" has no column "nam"; did you mean "name"?'],
    ['set users values nam = ? where id = ?', 'table "users" has no column "nam"; did you mean "name"?'],
    [
      'add users fields id values ? conflict (mail) update id = excluded.id',
      'table "users" has no column "mail"; did you mean "email"?',
    ],
    ['del users where id = ? returning nam', 'table "users" has no column "nam"; did you mean "name"?'],
    ['get users fields lowr(name) as l', 'function "lowr" cannot be called; did you mean "lower"?'],
    [
      'get users fields sales.commision(age) as c',
      'function "sales.commision" cannot be called; only functions that compute a value can be called here',
    ],
  ])('the names in a query text are looked up: %s', async (line, message) => {
    expect(await unmatchedIn(line)).toEqual([`f:1: ${message}`])
  })
})

describe('requests', () => {
  test.each([
    'GET /api/orders?select=id,state:status,user_id&sort=-placed_at,total:asc.nullslast&distinct=status',
    'GET /api/users?or=(name.eq,and(age.gt,not.or(meta->>theme.eq,"n".is_null)))&search&search_columns=name,email',
    'GET /api/orders?expand=user,nested:order_items.product.category',
    'GET /api/users?expand=boss:users!manager_id',
    'GET /api/orders?expand=user(name),nested:order_items(quantity,product)&order_items.quantity.gt&user.sort=name',
    'GET /api/sales.targets?amount.gt',
    'GET /api/orders/{id}/order_items?quantity.gt&expand=product',
    'GET /api/orders/aggregate?fn=sum&column=total&group_by=status,user_id&sort=-sum,status',
    'GET /api/orders/_explain?status.eq&sort=id',
    'POST /api/users?returning=id,name&X-Upsert=true&X-On-Conflict=email',
    'DELETE /api/users?returning=*&id.eq',
    'GET /api/rpc/total?year&sum.gt&select=sum,of&sort=-sum',
    'GET /api/rpc/public.total?year',
    'POST /api/rpc/total?sum.gt',
    'GET /api/Order%20Details?"unit%20price".gt&select="unit%20price"',
  ])('%s matches the schema', async line => {
    expect(await unmatchedIn(line)).toEqual([])
  })

  test.each([
    ['GET /api/ordrs', 'there is no table "ordrs"; did you mean "orders"?'],
    ['GET /api/orders?or=(statu.eq,id.gt)', 'table "orders" has no column "statu"; did you mean "status"?'],
    [
      'GET /api/orders?or=(id.gt,and(id.lt,not.and(statu.eq,id.gt)))',
      'table "orders" has no column "statu"; did you mean "status"?',
    ],
    ['GET /api/orders?not.and=(statu.eq,id.gt)', 'table "orders" has no column "statu"; did you mean "status"?'],
    ['GET /api/orders?select=id,statu', 'table "orders" has no column "statu"; did you mean "status"?'],
    ['GET /api/orders?select=status:statu', 'table "orders" has no column "statu"; did you mean "status"?'],
    ['GET /api/users?select=met->>theme', 'table "users" has no column "met"; did you mean "meta"?'],
    ['GET /api/orders?sort=-statu', 'table "orders" has no column "statu"; did you mean "status"?'],
    ['GET /api/orders?sort=statu:desc', 'table "orders" has no column "statu"; did you mean "status"?'],
    ['GET /api/orders?distinct=statu', 'table "orders" has no column "statu"; did you mean "status"?'],
    ['GET /api/users?search&search_columns=name,mail', 'table "users" has no column "mail"; did you mean "email"?'],
    ['GET /api/orders?expand=usr', '"orders" has no relation "usr"; did you mean "user"?'],
    ['GET /api/orders?expand=user(nam)', 'table "users" has no column "nam"; did you mean "name"?'],
    ['GET /api/orders?expand=user&user.nam.eq', 'table "users" has no column "nam"; did you mean "name"?'],
    ['GET /api/orders?expand=user&user.sort=nam', 'table "users" has no column "nam"; did you mean "name"?'],
    [
      'GET /api/orders?expand=nested:order_items.prodct',
      '"order_items" has no relation "prodct"; did you mean "product"?',
    ],
    [
      'GET /api/orders?expand=order_items',
      '"order_items" can be many rows for each of "orders"; write nested:order_items',
    ],
    ['GET /api/users?expand=users!boss_id', 'relation "users" of "users" is not identified by the hint "boss_id"'],
    ['GET /api/users?expand=users.users.users.users', 'expand goes deeper than 3 levels (max_expand_depth)'],
    ['GET /api/orders/{id}?expand=usr', '"orders" has no relation "usr"; did you mean "user"?'],
    ['GET /api/orders/{id}/customers', '"customers" is not a child of "orders"'],
    [
      'GET /api/orders/{id}/order_items?quantty.gt',
      'table "order_items" has no column "quantty"; did you mean "quantity"?',
    ],
    ['GET /api/arrivals/{id}', '"arrivals" has no primary key'],
    ['GET /api/orders/aggregate?fn=sum&column=totl', 'table "orders" has no column "totl"; did you mean "total"?'],
    [
      'GET /api/orders/aggregate?fn=count&group_by=status,usr_id',
      'table "orders" has no column "usr_id"; did you mean "user_id"?',
    ],
    ['POST /api/users?returning=nam', 'table "users" has no column "nam"; did you mean "name"?'],
    ['POST /api/users?X-Upsert=true&X-On-Conflict=mail', 'table "users" has no column "mail"; did you mean "email"?'],
    ['POST /api/rpc/totl', 'there is no function "totl"; did you mean "total"?'],
    ['GET /api/rpc/total?yer', '"yer" is neither an argument nor a column of the result of function "total"'],
    ['POST /api/rpc/total?summ.gt', '"summ" is neither an argument nor a column of the result of function "total"'],
  ])('%s does not match the schema', async (line, message) => {
    const [found, ...more] = await unmatchedIn('# a comment', line)
    expect(found).toMatch(/^f:2: /)
    expect(found).toContain(message)
    expect(more).toEqual([])
  })

  test('functions need a schema name where rpc_require_schema_qualified demands it', async () => {
    const strict = { catalog, qualified: true, maxExpandDepth: 3 }
    const text = 'POST /api/rpc/total\nPOST /api/rpc/public.total'
    expect(await unmatchedQueries({ file: 'f', text }, strict)).toEqual([
      expect.stringContaining('f:1: function names must include the schema (rpc_require_schema_qualified)'),
    ])
  })
})

test('names on the function list are looked up case-insensitively', async () => {
  const text = '# functions\ntotal\npublic.TOTAL\nsales."commission"\n\ntotl\nsales.comission # gone\n(malformed'
  expect(await unmatchedFunctions({ file: 'f', text }, catalog)).toEqual([
    'f:6: there is no function "totl"; did you mean "total"?',
    'f:7: there is no function "sales.comission"; did you mean "sales.commission"?',
  ])
})
