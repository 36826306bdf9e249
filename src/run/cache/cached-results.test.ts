import { expect, test } from 'vitest'
import { createCachedResults, ONE_WEIGHT_MAX, WEIGHT_MAX } from './cached-results.ts'

const ABOUT = { moment: 0, changes: [], until: 1 }
const rowsOf = (...texts: readonly string[]) => [texts.map(text => [Buffer.from(text), null])]

test('a cached result is found in the form in which it is returned', async () => {
  const answers = createCachedResults(10)
  expect(answers.get('k')).toBeUndefined()
  expect(answers.keep('k', rowsOf('a', 'bc'), ABOUT)).toBe(true)
  const { reading } = answers.get('k') ?? {}
  expect(reading?.kept).toEqual(rowsOf('a', 'bc'))
  expect(await reading?.result).toEqual(rowsOf('a', 'bc'))
  answers.remove('k')
  expect(answers.get('k')).toBeUndefined()
})

test('a cached result does not retain the buffer that its cells were read into', async () => {
  const answers = createCachedResults(10)
  const chunk = Buffer.alloc(65_536, 'x')
  answers.keep('k', [[[chunk.subarray(0, 3)]]], ABOUT)
  chunk.fill('y')
  const cell = (await answers.get('k')?.reading.result)?.[0]?.[0]?.[0]
  expect(cell?.toString()).toBe('xxx')
  expect(cell?.buffer.byteLength).toBe(3)
})

test('the least recently used entry is evicted if there are too many', () => {
  const answers = createCachedResults(2)
  for (const key of ['a', 'b']) answers.keep(key, rowsOf(key), ABOUT)
  answers.get('a')
  answers.keep('c', rowsOf('c'), ABOUT)
  expect(['a', 'b', 'c'].map(key => answers.get(key) !== undefined)).toEqual([true, false, true])
  expect(answers.entries).toBe(2)
})

test('the least recently used entry is evicted if there are too many bytes', () => {
  const answers = createCachedResults(1_000_000)
  const large = rowsOf('x'.repeat(ONE_WEIGHT_MAX - 2_000), '')
  const count = Math.ceil(WEIGHT_MAX / ONE_WEIGHT_MAX) + 5
  for (let n = 0; n < count; n++) expect(answers.keep(`k${n}`, large, ABOUT)).toBe(true)
  expect(answers.weight).toBeLessThanOrEqual(WEIGHT_MAX)
  expect(answers.weight).toBeGreaterThan(WEIGHT_MAX - 2 * ONE_WEIGHT_MAX)
  expect(answers.get('k0')).toBeUndefined()
  expect(answers.get(`k${count - 1}`)).toBeDefined()
  answers.clear()
  expect([answers.entries, answers.weight]).toEqual([0, 0])
})

test('a result that is too large or has too many rows is not cached and evicts nothing', () => {
  const answers = createCachedResults(10)
  answers.keep('small', rowsOf('a'), ABOUT)
  expect(answers.keep('giant', rowsOf('x'.repeat(ONE_WEIGHT_MAX)), ABOUT)).toBe(false)
  expect(answers.keep('many', rowsOf(...Array.from({ length: 10_000 }, () => '1')), ABOUT)).toBe(false)
  expect(answers.keep('k'.repeat(ONE_WEIGHT_MAX), rowsOf('a'), ABOUT)).toBe(false)
  expect(answers.entries).toBe(1)
})

test('the bytes of a single row count twice, because its response is cached too', () => {
  const weightOf = (...texts: readonly string[]) => {
    const answers = createCachedResults(10)
    answers.keep('k', rowsOf(...texts), ABOUT)
    return answers.weight
  }
  expect(weightOf('x'.repeat(1_000)) - weightOf('')).toBe(2_000)
  expect(weightOf('x'.repeat(1_000), 'y') - weightOf('', 'y')).toBe(1_000)
})
