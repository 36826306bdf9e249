import { expect, test } from 'vitest'
import { createDeadLetters, type DeadLetter, LETTERS_BYTES_MAX, LETTERS_MAX } from './dead-letters.ts'

function letter(id: string, bytes = 1): DeadLetter {
  const delivery = {
    id,
    trigger: 't',
    endpoint: 'e',
    table: 'x',
    happened: 'INSERT',
    createdAtMs: 0,
    tries: 1,
  } as const
  return { delivery: { ...delivery, body: Buffer.alloc(bytes) }, reason: 'r', outcome: null, atMs: 0 }
}

test('the oldest goes when there are too many', () => {
  const letters = createDeadLetters()
  for (let at = 0; at <= LETTERS_MAX; at++) letters.add(letter(String(at)))
  expect(letters.all()).toHaveLength(LETTERS_MAX)
  expect([letters.get('0'), letters.get('1')?.delivery.id, letters.forgotten()]).toEqual([undefined, '1', 1])
})

test('or when they are too large; one that is thrown away makes room', () => {
  const letters = createDeadLetters()
  for (const id of ['a', 'b']) letters.add(letter(id, LETTERS_BYTES_MAX / 2))
  letters.remove('a')
  letters.add(letter('c', LETTERS_BYTES_MAX / 2))
  expect(letters.all().map(({ delivery }) => delivery.id)).toEqual(['b', 'c'])
  letters.add(letter('d'))
  expect(letters.all().map(({ delivery }) => delivery.id)).toEqual(['c', 'd'])
  expect(letters.forgotten()).toBe(1)
})

test('the same delivery is there once', () => {
  const letters = createDeadLetters()
  letters.add(letter('a'))
  letters.add(letter('a', 5))
  expect(letters.all().map(({ delivery }) => delivery.body.length)).toEqual([5])
})
