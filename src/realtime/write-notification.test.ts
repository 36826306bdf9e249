import { expect, test } from 'vitest'
import { decodeNotification } from './write-notification.ts'

test('keys keep all digits', () => {
  const payload =
    '{"txid":"7","origin":"me","before":true,"set":["a"],"by":"tenant","at":"2026-01-01T00:00:00+00:00",' +
    '"rows":[["I",{"id": 9007199254740993},-9007199254740993],["D",{"a": "x\\"]", "b": 1.50},null]]}'
  expect(decodeNotification(payload)).toEqual({
    ...{ txid: '7', origin: 'me', hasBefore: true, assigned: ['a'], at: '2026-01-01T00:00:00+00:00' },
    ...{ by: 'tenant', whom: null },
    rows: [
      { operation: 'INSERT', key: '{"id": 9007199254740993}', route: '-9007199254740993' },
      { operation: 'DELETE', key: '{"a": "x\\"]", "b": 1.50}', route: null },
    ],
  })
})

test('a bulk change lists no rows', () => {
  expect(
    decodeNotification('{"txid":"7","origin":"me","before":false,"set":null,"at":"x","bulk":900}')?.rows,
  ).toBeNull()
})

test.each([
  ['', '[]', 'null', 'hello', '{}', '{"txid":7,"origin":"a","at":"x"}'],
  [
    '{"txid":"7","origin":"a","at":"x","rows":{}}',
    '{"txid":"7","origin":"a","at":"x","rows":[["X",{}]]}',
    '{"txid":"7","origin":"a","at":"x","rows":[["I","k"]]}',
  ],
  ['{"txid":"7","origin":"a","at":"x","set":[1]}', `{"a":${'['.repeat(100)}`],
])('a payload from another sender is rejected: %s', (...payloads) => {
  for (const payload of payloads) expect(decodeNotification(payload)).toBeNull()
})
