import { expect, test } from 'vitest'
import { parseSharedMessage, printSharedMessage } from './messages.ts'

test.each([
  { kind: 'changed', from: 'a', relations: [16_384, 16_390] },
  { kind: 'changed', from: 'a', relations: null },
  { kind: 'revoked', from: 'b' },
] as const)('%o is parsed as it was printed', message => {
  expect(parseSharedMessage(printSharedMessage(message))).toEqual(message)
})

test('more relations than fit into a message mean all of them', () => {
  const relations = Array.from({ length: 10_000 }, (_, index) => 100_000 + index)
  expect(parseSharedMessage(printSharedMessage({ kind: 'changed', from: 'a', relations }))).toEqual({
    ...{ kind: 'changed', from: 'a', relations: null },
  })
})

test.each([
  '',
  'null',
  '[]',
  '{}',
  '{"kind":"changed","from":"a"}',
  '{"kind":"changed","from":"a","relations":["1"]}',
  '{"kind":"changed","from":"a","relations":[1.5]}',
  '{"kind":"changed","from":7,"relations":null}',
  '{"kind":"other","from":"a"}',
  `{"kind":"revoked","from":"${'a'.repeat(20_000)}"}`,
])('%j is ignored', text => {
  expect(parseSharedMessage(text)).toBeNull()
})
