/**
 * Plans are cached by the shape of a request (decision 0005). A shape that omitted a detail would run one
 * caller's statement for another's request. So whatever was requested before, a request must get the
 * statement that a new reader would have made.
 */
import { expect, test } from 'vitest'
import { summary } from './aggregate-requests.ts'
import { recordingReader } from './reader.ts'
import { request } from './requests.ts'
import { expectOwn, expectOwnAtRandom, pairs, REUSED_MIN } from './sharing.ts'

/** Each request differs from its neighbours in one detail that affects the statement. */
const PARTS = [
  ...['limit=0', 'limit=1', 'limit=50', 'limit=51', 'limit=150', 'limit=151', 'offset=0', 'offset=5'],
  ...['stream=true', 'stream=true&limit=51', 'stream=true&limit=151', 'distinct=name', 'distinct=zip'],
  ...[
    'sort=name',
    'sort=-name',
    'sort=name:asc.nullsfirst',
    'sort=name,zip',
    'sort=zip',
    'sort=meta->0',
    'sort=meta->"0"',
  ],
  ...[
    'sort=meta->>a',
    'select=name',
    'select=zip',
    'select=*',
    'select=*,a:name',
    'select=a:name',
    'select=a:zip',
    'select=b:name',
  ],
  ...[
    'select=name,zip',
    'select=meta->a',
    'select=meta->>a',
    'select=a:meta->x',
    'select=a:meta->0',
    'expand=nested:orders',
  ],
  ...['expand=a:nested:orders', 'expand=nested:orders.nested:order_items', 'expand=nested:orders,a:nested:orders'],
  ...['search=x', 'search=x&search_columns=name', 'search=x&search_columns=zip', 'search=x&search_columns=name,zip'],
  ...[
    'name=x',
    'name=ne.x',
    'name=not.eq.x',
    'name=like.x',
    'name=not_like.x',
    'name=is_null',
    'name=is_null.false',
    'zip=x',
  ],
  ...[
    'name=not.is_null',
    'meta->a=1',
    'meta->>a=1',
    'meta->0=1',
    'meta->"0"=1',
    'meta->a->b=1',
    'id=in.(1,2)',
    'id=in.(1)',
  ],
  ...['or=(name.eq.x,zip.eq.x)', 'and=(name.eq.x,zip.eq.x)', 'not.or=(name.eq.x,zip.eq.x)', 'or=(name.eq.x)&zip=x'],
  ...[
    'or=(name.eq.x,and(zip.eq.x,id.eq.1))',
    'or=(name.eq.x,and(zip.eq.x),id.eq.1)',
    'or=(name.eq.x,not.and(zip.eq.x,id.eq.1))',
  ],
  ...['or=(name.eq.x,zip.eq.x)&id=1', 'or=(name.eq.x,zip.eq.x,id.eq.1)'],
]

test('two lists with different statements never share a plan', { timeout: 60_000 }, async () => {
  const seen = await expectOwn(
    recordingReader,
    pairs(PARTS, 6).map(sent => `/api/customers?${sent}`),
  )
  expect(seen.answered).toBeGreaterThan(500)
})

test('a request gets its own statement, whatever was requested before it', { timeout: 60_000 }, async () => {
  const seen = await expectOwnAtRandom(recordingReader, request, 500)
  // The property is meaningful only if statements were made and reused.
  expect(seen.answered).toBeGreaterThan(200)
  expect(seen.reused).toBeGreaterThan(REUSED_MIN)
})

test('requests with and without a total get their own statements in any order', async () => {
  const seen = await expectOwn(
    recordingReader,
    PARTS.flatMap((part, at) =>
      ['count=exact', 'count="exact";a=b', 'return=minimal', ''].map((prefer, index) => ({
        ...{ method: 'GET', path: `/api/${index === at % 4 ? 'users/1/orders' : 'customers'}?${part}` },
        headers: { prefer },
      })),
    ),
  )
  expect(seen.answered).toBeGreaterThan(150)
})

/** Names that could be confused with the words of a plan key. */
const CHILDREN = ['orders', 'orders!created_by', 'orders!approved_by', 'users', 'orders?limit=7', 'orders?select=id']

test('two lists of children with different statements never share a plan', { timeout: 60_000 }, async () => {
  const seen = await expectOwn(
    recordingReader,
    ['users/1/', 'users/2/', 'customers/1/', '', 'orders/1/', 'products/1/'].flatMap(parent =>
      [...CHILDREN, 'order_items', 'labels', 'labels?sort=name'].map(child => `/api/${parent}${child}`),
    ),
  )
  expect(seen.answered).toBeGreaterThan(15)
})

const AGGREGATES = [
  ...[
    'fn=count',
    'fn=count&column=id',
    'fn=count&column=name',
    'fn=min&column=id',
    'fn=max&column=id',
    'fn=max&column=name',
  ],
  ...['group_by=name', 'group_by=zip', 'group_by=name,zip', 'group_by=zip,name', 'group_by="name"'],
  ...['sort=name', 'sort=-name', 'sort=count', 'sort=-count', 'sort=min', 'sort=name,zip', 'sort=zip', 'sort='],
  ...['limit=0', 'limit=1', 'limit=100', 'limit=101', 'limit=102', 'limit=1000', 'limit=2000', 'offset=0', 'offset=5'],
  ...['name=x', 'name=ne.x', 'zip=x', 'name.eq=x', 'meta->a=1', 'meta->>a=1', 'or=(name.eq.x,zip.eq.x)'],
  ...[
    'search=x',
    'search=y',
    'search=x&search_columns=name',
    'search=x&search_columns=zip',
    'search=x&search_columns=name,zip',
  ],
]

test('two aggregates with different statements never share a plan', { timeout: 60_000 }, async () => {
  const seen = await expectOwn(
    recordingReader,
    ['fn=count', 'fn=count&group_by=name', 'fn=min&column=id&group_by=zip,name'].flatMap(start =>
      pairs(AGGREGATES, 9).map(sent => `/api/customers/aggregate?${start}&${sent}`),
    ),
  )
  expect(seen.answered).toBeGreaterThan(600)
})

test('an aggregate or a plan gets its own statement, whatever was requested before it', {
  timeout: 60_000,
}, async () => {
  const seen = await expectOwnAtRandom(recordingReader, summary, 1_000)
  expect(seen.answered).toBeGreaterThan(300)
  expect(seen.reused).toBeGreaterThan(REUSED_MIN)
})

test('a list and its explanation have the same statement, in either order', async () => {
  const reader = recordingReader()
  for (const [first, second] of [
    ['/api/orders?status=paid&sort=-total', '/api/orders/_explain?status=draft&sort=-total'],
    ['/api/orders/_explain?note=x', '/api/orders?note=y'],
  ] as const) {
    const texts = [await reader(first), await reader(second)].map(({ ran }) => ran[0]?.text)
    expect(texts.filter(text => text?.startsWith('EXPLAIN'))).toHaveLength(1)
    expect(new Set(texts.map(text => text?.replace(/^EXPLAIN \(.*?\) /, ''))).size).toBe(1)
  }
})

test('a stream and a page of one row less read the same number of rows with different statements', async () => {
  const reader = recordingReader()
  await reader('/api/orders?stream=true&limit=51')
  expect(await reader('/api/orders?limit=50')).toMatchObject({
    ran: [{ text: expect.stringContaining('r.id FROM') }],
  })
})
