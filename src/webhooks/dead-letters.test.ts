import { expect, test } from 'vitest'
import { createDeadLetters, DEAD_LETTERS_BYTES_MAX, DEAD_LETTERS_MAX, type DeadLetter } from './dead-letters.ts'

function letter(id: string, bytes = 1): DeadLetter {
  const delivery = {
    id,
    trigger: 't',
    endpoint: 'e',
    table: 'x',
    operation: 'INSERT',
    createdAtMs: 0,
    traceparent: null,
    tries: 1,
  } as const
  return { delivery: { ...delivery, body: Buffer.alloc(bytes) }, reason: 'r', outcome: null, atMs: 0 }
}

test('the oldest dead letter is dropped when there are too many', () => {
  const letters = createDeadLetters()
  for (let at = 0; at <= DEAD_LETTERS_MAX; at++) letters.add(letter(String(at)))
  expect(letters.all()).toHaveLength(DEAD_LETTERS_MAX)
  expect([letters.get('0'), letters.get('1')?.delivery.id, letters.dropped()]).toEqual([undefined, '1', 1])
})

test('the oldest are dropped when they are too large, and removing one makes room', () => {
  const letters = createDeadLetters()
  for (const id of ['a', 'b']) letters.add(letter(id, DEAD_LETTERS_BYTES_MAX / 2))
  letters.remove('a')
  letters.add(letter('c', DEAD_LETTERS_BYTES_MAX / 2))
  expect(letters.all().map(({ delivery }) => delivery.id)).toEqual(['b', 'c'])
  letters.add(letter('d'))
  expect(letters.all().map(({ delivery }) => delivery.id)).toEqual(['c', 'd'])
  expect(letters.dropped()).toBe(1)
})

test('a delivery is stored only once', () => {
  const letters = createDeadLetters()
  letters.add(letter('a'))
  letters.add(letter('a', 5))
  expect(letters.all().map(({ delivery }) => delivery.body.length)).toEqual([5])
})
