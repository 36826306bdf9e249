/** Documents are cached by their sources and the kind of caller, within limits. */
import { expect, test } from 'vitest'
import { documentFor, KEPT_BYTES_MAX } from './document.ts'

function counting(sizes: Readonly<Record<string, number>> = {}) {
  const made: string[] = []
  let sources: readonly unknown[] = ['schema']
  const answer = documentFor<string>({
    sources: () => sources,
    keyOf: key => key,
    make: key => {
      made.push(key)
      return 'x'.repeat(sizes[key] ?? 1)
    },
  })
  return {
    made,
    answer,
    change: () => {
      sources = ['another schema']
    },
  }
}

test('callers of one kind share a document until its sources change', () => {
  const { made, answer, change } = counting()
  expect(answer('clerk')).toBe(answer('clerk'))
  change()
  answer('clerk')
  expect(made).toEqual(['clerk', 'clerk'])
})

test('the oldest document is evicted if there are too many kinds', () => {
  const { made, answer } = counting()
  const kinds = Array.from({ length: 33 }, (_, n) => `kind ${n}`)
  for (const kind of kinds) answer(kind)
  answer('kind 32')
  answer('kind 0')
  expect(made).toEqual([...kinds, 'kind 0'])
})

test('large documents evict others by size, and a document that is too large is not cached', () => {
  const half = KEPT_BYTES_MAX / 2
  const { made, answer } = counting({ a: half, b: half, c: half, huge: KEPT_BYTES_MAX + 1 })
  for (const kind of ['a', 'b', 'c', 'b', 'c', 'a', 'huge', 'a', 'huge']) answer(kind)
  expect(made).toEqual(['a', 'b', 'c', 'a', 'huge', 'huge'])
})
