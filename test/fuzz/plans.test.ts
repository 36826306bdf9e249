/**
 * Statements are kept by the shape of a request (docs/decisions/0005-one-statement-per-shape.md). A shape that forgot something would run one
 * caller's statement for another's request; so whatever was asked before, a request gets the statement it would have got from a reader that was
 * never asked anything.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Recorded, recordingReader } from './reader.ts'
import { request } from './requests.ts'

/** Each differs from its neighbours in one thing that a statement depends on. */
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

const print = ({ error, ran }: Recorded) => JSON.stringify([String(error), ran])

test('no two requests with different statements share one', async () => {
  const warm = recordingReader()
  let answered = 0
  for (const sent of PARTS.flatMap((part, at) => [
    part,
    ...PARTS.slice(at + 1, at + 12).map(other => `${part}&${other}`),
  ])) {
    const cold = await recordingReader().ask(`/api/customers?${sent}`)
    expect(print(await warm.ask(`/api/customers?${sent}`)), sent).toBe(print(cold))
    if (cold.ran.length > 0) answered += 1
  }
  expect(answered).toBeGreaterThan(400)
})

test('a request gets its own statement, whatever was asked before it', async () => {
  const warm = recordingReader()
  const shapes = new Set<string>()
  let answered = 0
  await fc.assert(
    fc.asyncProperty(request, async sent => {
      const cold = await recordingReader().ask(sent)
      expect(print(await warm.ask(sent))).toBe(print(cold))
      if (cold.ran.length === 0) return
      answered += 1
      shapes.add(cold.ran.map(({ text }) => text).join('\n'))
    }),
    { numRuns: 500 },
  )
  // The property says something only where statements were made, and where they were used again.
  expect(answered).toBeGreaterThan(200)
  expect(shapes.size).toBeLessThan(answered * 0.9)
})

test('a stream and a page of one row less read as many rows, by different statements', async () => {
  const reader = recordingReader()
  await reader.ask('/api/orders?stream=true&limit=51')
  expect(await reader.ask('/api/orders?limit=50')).toMatchObject({
    ran: [{ text: expect.stringContaining('r.id FROM') }],
  })
})
