/**
 * As plans.test.ts, for function calls: the statement depends on the arguments and on how they are passed.
 */
import { expect, test } from 'vitest'
import { call } from './call-requests.ts'
import { recordingCaller } from './reader.ts'
import { expectOwn, expectOwnAtRandom, REUSED_MIN } from './sharing.ts'
import type { Sent } from './world.ts'

const get = (path: string): Sent => ({ method: 'GET', path: `/api/rpc/${path}` })
const post = (path: string, body = ''): Sent => ({ method: 'POST', path: `/api/rpc/${path}`, body })

/** One function, or arguments that look the same, in every way of passing them. */
const ALIKE: readonly (readonly Sent[])[] = [
  [get('middle'), post('middle'), post('middle', '{}'), post('middle', '[]')],
  [get('middle?a=1'), post('middle', '{"a":1}'), post('middle', '[1]'), post('middle', '1'), get('middle?a=2')],
  [get('middle?b=1'), post('middle', '{"b":1}'), get('middle?c=1'), post('middle', '{"c":1}')],
  [get('middle?a=1&b=2'), get('middle?b=2&a=1'), post('middle', '{"b":1,"a":2}'), post('middle', '[1,2]')],
  [post('over', '1'), post('over', '"x"'), post('over', '1.5'), post('over', '[[1]]'), post('over', '{"a":[1]}')],
  [
    post('over', '[1,2]'),
    post('over', '[1,"x"]'),
    post('over', '{"a":1,"c":"x"}'),
    get('over?a=1&b=2'),
    get('over?a=1&c=2'),
  ],
  [post('unnamed', '1'), post('unnamed', '[1,2]'), post('half_named', '[1,2]'), post('half_named', '1')],
  [post('tagged', '["x"]'), post('tagged', '["x",1]'), post('tagged', '["x",1,2]'), post('tagged', '["x",[1,2]]')],
  [post('tagged', '{"a":"x"}'), post('tagged', '{"a":"x","b":[1]}'), get('tagged?a=x'), get('tagged?a=x&b=1&b=2')],
  [post('docs', '[[1]]'), post('docs', '[1,[2]]'), post('docs', '{"b":[[1]]}'), get('docs?b={}'), post('docs', '[]')],
  ['1', '"x"', '1.5', 'true', 'null', '[1]', '["x"]', '[[1]]', '{}', '4000000000'].flatMap(value => [
    ...[post('like_a', `{"a":${value}}`), post('like_a', `[${value}]`), post('like_a', `[${value},${value}]`)],
    ...[post('common', `[${value},1]`), post('spread', `[${value}]`), post('spread', `[${value},${value}]`)],
    ...[post('first_of', `[[${value}]]`), post('each_of', `[[${value}]]`), post('each_of?limit=1', `{"a":[${value}]}`)],
  ]),
  [get('each_of?a=1&sort='), get('each_of?a=1'), get('each_of?a=1&sort='), post('each_of?sort=', '[[1]]')],
  [get('none'), post('none'), get('nothings'), post('nothing'), post('nothing', '[1]'), post('nothing', '{"x":1}')],
  [get('words'), get('sales.words'), post('words'), post('changed'), get('words?a=1'), get('sales.words?a=1')],
  [
    post('words', '{"a":1,"b":"x"}'),
    post('words', '{"a":1,"b":"x","c":1}'),
    get('words?a=1&b=x'),
    get('words?a=1&b=x&c=1'),
  ],
  [get('one_row?a=1'), post('one_row', '[1]'), post('one_row', '{"a":1,"b":[1]}'), get('one_row?a=1&b=1')],
]

const RESULTS = [
  ...['', 'select=id', 'select=word', 'select=*', 'select=word:id', 'select=doc->a', 'select=doc->>a', 'select=doc->0'],
  ...[
    'sort=',
    'sort=id',
    'sort=-id',
    'sort=word',
    'sort=id:asc.nullsfirst',
    'limit=0',
    'limit=1',
    'limit=101',
    'limit=102',
  ],
  ...[
    'limit=1000',
    'limit=2000',
    'offset=0',
    'offset=5',
    'id=1',
    'id=ne.1',
    'size=1',
    'word=x',
    'doc->a=1',
    'doc->>a=1',
  ],
  ...['or=(id.eq.1,size.eq.1)', 'and=(id.eq.1,size.eq.1)', 'id=in.(1,2)', 'limit 1=x', 'as word=x', 'select="as word"'],
]

test('a call gets its own statement, however the arguments are passed', { timeout: 60_000 }, async () => {
  const create = () => recordingCaller()
  let answered = 0
  for (const alike of ALIKE) {
    for (const format of ['text', 'binary']) {
      const sent = alike.map(one => ({ ...one, headers: { 'x-svc-result-format': format } }))
      // The first request creates the plan.
      for (const order of [sent, sent.toReversed()]) answered += (await expectOwn(create, order)).answered
    }
  }
  const all = ALIKE.flat()
  const seen = await expectOwn(create, [...all, ...all.toReversed()])
  expect(answered).toBeGreaterThan(400)
  expect(seen.answered).toBeGreaterThan(200)
})

test.each([1_000, 0])(
  'no two sets with different statements share one (max_result_rows = %i)',
  { timeout: 60_000 },
  async cap => {
    const parts = RESULTS.flatMap((part, at) => [
      part,
      ...RESULTS.slice(at + 1, at + 8).map(other => `${part}&${other}`),
    ])
    const seen = await expectOwn(
      () => recordingCaller(cap),
      parts.flatMap(part => [get(`words?a=1&${part}`), post(`words?${part}`, '[1]'), get(`words?${part}`)]),
    )
    expect(seen.answered).toBeGreaterThan(400)
    expect(seen.texts.size).toBeGreaterThan(250)
  },
)

test('a call by query string and the same call by a body get their own statements in either order', async () => {
  for (const sent of [
    [get('middle?a=1&b=2'), post('middle', '{"a":1,"b":2}')],
    [post('middle', '{"a":1,"b":2}'), get('middle?a=1&b=2')],
  ]) {
    const caller = recordingCaller()
    const ran = []
    for (const one of sent) ran.push(...(await caller(one)).ran)
    const byText = ran.toSorted((a, b) => a.values.length - b.values.length)
    expect(byText).toEqual([
      expect.objectContaining({ text: expect.stringContaining('json_to_record($1)'), values: ['{"a":1,"b":2}'] }),
      expect.objectContaining({ text: expect.stringContaining('$2'), values: ['1', '2'] }),
    ])
  }
})

test('a call gets its own statement, whatever was called before it', { timeout: 60_000 }, async () => {
  const seen = await expectOwnAtRandom(() => recordingCaller(), call, 2_500)
  expect(seen.answered).toBeGreaterThan(700)
  expect(seen.reused).toBeGreaterThan(REUSED_MIN)
})
