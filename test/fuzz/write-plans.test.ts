/**
 * As plans.test.ts, for writes: their plans are cached by shape too, and a shape that omitted a column would
 * write other columns than requested.
 */
import { expect, test } from 'vitest'
import { recordingWriter } from './reader.ts'
import { expectOwn, expectOwnAtRandom, REUSED_MIN } from './sharing.ts'
import type { Sent } from './world.ts'
import { write } from './write-requests.ts'

const ANSWERS = [
  ...[
    '',
    'returning=*',
    'returning=name',
    'returning=zip',
    'returning=a:name',
    'returning=b:name',
    'returning=name,zip',
  ],
  ...['returning=zip,name', 'returning=meta->a', 'returning=meta->>a', 'returning=meta->0', 'returning=meta->"0"'],
  ...['returning=*,a:name', 'returning=x:meta->b'],
]

const BODIES = [
  ...['{}', '{"name":"x"}', '{"zip":"x"}', '{"zip":"x","name":"y"}', '{"name":"y","zip":"x"}', '{"name":null,"id":1}'],
  ...['{"n\\u0061me":"z"}', '{"meta":[1]}', '{"tags":[[1]]}', '{"tags":"{}"}', '{"docs":[[1]],"tags":["a"]}'],
]

const BATCHES = [
  ...['[]', '[{}]', '[{},{}]', '[{"name":"x"}]', '[{"name":"x"},{"name":"y"}]', '[{"name":"x"},{"zip":"y"}]'],
  ...[
    '[{"zip":"y","name":"x"},{"name":"x","zip":"y"},{}]',
    '[{"id":1,"name":"x"},{"id":2}]',
    '[{"id":1},{"id":1,"zip":"1"}]',
  ],
]

const MODES: readonly Sent['headers'][] = [
  {},
  { 'x-upsert': 'true' },
  { 'x-upsert': 'ignore' },
  { 'x-upsert': 'true', 'x-on-conflict': 'mail' },
  { 'x-upsert': 'ignore', 'x-on-conflict': 'mail' },
  { 'x-upsert': 'true', 'x-on-conflict': 'name,zip' },
  { 'x-upsert': 'true', 'x-on-conflict': 'zip,name' },
]

const PREFERENCES: readonly Sent['headers'][] = [{}, { prefer: 'return=minimal' }, { prefer: 'return=representation' }]

const FILTERS = [
  ...[
    'name=x',
    'zip=x',
    'name=ne.x',
    'name=not.eq.x',
    'name=is_null',
    'name=is_null.false',
    'name=in.(a,b)',
    'name=in.(a)',
  ],
  ...['meta->a=1', 'meta->>a=1', 'meta->0=1', 'meta->"0"=1', 'name=x&zip=y', 'zip=y&name=x', 'or=(name.eq.x,zip.eq.x)'],
  ...['and=(name.eq.x,zip.eq.x)', 'or=(name.eq.x)&zip=x', 'not.or=(name.eq.x,zip.eq.x)', 'id.gt=1', 'id.gt=2'],
]

test('two creations with different statements never share a plan', { timeout: 60_000 }, async () => {
  const seen = await expectOwn(
    recordingWriter,
    [...BODIES, ...BATCHES].flatMap(body =>
      MODES.flatMap(mode =>
        PREFERENCES.flatMap(prefer =>
          ['', 'returning=name', 'returning=zip,a:name'].map(
            (parameter): Sent => ({
              ...{ method: 'POST', path: `/api/customers?${parameter}`, body },
              headers: { ...mode, ...prefer },
            }),
          ),
        ),
      ),
    ),
  )
  expect(seen.answered).toBeGreaterThan(800)
  expect(seen.texts.size).toBeGreaterThan(200)
})

test('two changes with different statements never share a plan', { timeout: 60_000 }, async () => {
  const places = [...['1', '2'].map(id => `customers/${id}?`), ...FILTERS.map(filter => `customers?${filter}&`)]
  const seen = await expectOwn(
    recordingWriter,
    places.flatMap(place =>
      ANSWERS.flatMap((answer, at) =>
        ['DELETE', ...BODIES.slice(1)].map((body): Sent => {
          const sent = { path: `/api/${place}${answer}`, headers: PREFERENCES[at % 3] ?? {} }
          return body === 'DELETE' ? { method: 'DELETE', ...sent } : { method: 'PATCH', ...sent, body }
        }),
      ),
    ),
  )
  expect(seen.answered).toBeGreaterThan(2_000)
})

test('written columns and conflict columns are distinguished', async () => {
  const upsert = (body: string, target: string): Sent => ({
    ...{ method: 'POST', path: '/api/tricky', body },
    headers: { 'x-upsert': 'true', 'x-on-conflict': target },
  })
  const asked = [
    upsert('{"1":"x","select":"x"}', 'a'),
    upsert('{"1":"x"}', 'select,a'),
    upsert('{"1":"x"}', 'a,select'),
  ]
  for (const order of [asked, asked.toReversed()]) {
    expect((await expectOwn(recordingWriter, order)).texts.size).toBe(3)
  }
})

test('the maximum number of affected rows is a value', async () => {
  const asked = ['0', '1', '1000'].map(
    (max): Sent => ({ method: 'DELETE', path: '/api/customers?name=x', headers: { 'x-max-affected': max } }),
  )
  expect((await expectOwn(recordingWriter, asked)).texts.size).toBe(1)
})

test('a write gets its own statements, whatever was written before it', { timeout: 60_000 }, async () => {
  const seen = await expectOwnAtRandom(recordingWriter, write, 1_500)
  expect(seen.answered).toBeGreaterThan(700)
  expect(seen.reused).toBeGreaterThan(REUSED_MIN)
})
