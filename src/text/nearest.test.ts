import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { NAMES, nearest, WORDS } from './nearest.ts'

describe('nearest', () => {
  test.each([
    ['stauts', 'status', 'two letters swapped'],
    ['statu', 'status', 'a letter missing'],
    ['statuss', 'status', 'a letter too many'],
    ['sxatus', 'status', 'a wrong letter'],
    ['STATUS', 'status', 'letter case'],
    ['costumer_adress', 'customer_address', 'three edits in a long name'],
    ['تسنت', 'تست', 'any script'],
    ['_proto__', '__proto__', 'names that objects have'],
    ['idd', 'id', 'a short name with a letter too many'],
  ])('%s → %s: %s', (written, meant) => {
    expect(nearest(written, ['id', 'customer_address', '__proto__', 'status', 'تست', 'total'])).toBe(meant)
  })

  test.each([
    ['xyz', ['status', 'total'], 'nothing is like it'],
    ['ab', ['cd'], 'a short name admits one edit only'],
    ['status', [], 'there is nothing to suggest'],
    ['', ['id'], 'nothing was written'],
    ['n', ['m', ''], 'a single letter is near everything'],
  ])('%s is near none of %j, because %s', (written, candidates) => {
    expect(nearest(written, candidates)).toBeNull()
  })

  test('prefers fewer edits, then the same beginning, then the first candidate', () => {
    expect(nearest('orderz', ['order_z', 'borders', 'orders'])).toBe('order_z')
    expect(nearest('orders', ['borders', 'sorders', 'orderz'])).toBe('orderz')
    expect(nearest('orders', ['border', 'order', 'orderz'])).toBe('order')
  })

  test('candidates may be any iterable, such as the keys of a map', () => {
    expect(nearest('ordrs', new Map([['orders', 1]]).keys())).toBe('orders')
  })

  test('agrees with the textbook algorithm on the nearest candidate', () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 14 })
    fc.assert(
      fc.property(word, fc.array(word, { maxLength: 6 }), fc.constantFrom(NAMES, WORDS), (name, candidates, bounds) => {
        const most = Math.min(bounds.editsMax, Math.max(1, Math.floor(name.length / 3)))
        const near = candidates
          .map(known => ({ known, edits: distance(name, known), start: commonStart(name, known) }))
          .filter(({ known, edits }) => edits <= most && edits < Math.max(name.length, known.length))
          .sort((one, other) => one.edits - other.edits || (one.edits === 0 ? 0 : other.start - one.start))
        expect(nearest(name, candidates, bounds)).toBe(near[0]?.known ?? null)
      }),
      { numRuns: 2_000 },
    )
  })

  test('a hostile name costs almost nothing: too long a name is skipped, the longest is compared within a band', () => {
    const long = 'a'.repeat(102)
    const candidates = Array.from({ length: 5_000 }, (_, n) => 'a'.repeat(100) + n)
    expect(nearest('a'.repeat(2 ** 20), candidates)).toBeNull()
    expect(nearest('a'.repeat(NAMES.lengthMax + 1), ['a'.repeat(NAMES.lengthMax)])).toBeNull()
    const ours = cpuOf(() => expect(nearest(long, candidates)).toBe(`${'a'.repeat(100)}0`))
    const textbook = cpuOf(() => candidates.slice(0, 500).map(known => distance(long, known)))
    expect(ours).toBeLessThan(textbook)
  })
})

describe('among the words of a language', () => {
  const words = ['where', 'having', 'on', 'or', 'order', 'limit', 'int', 'inet', 'int4', 'timestamp']

  test.each([
    ['wher', 'where'],
    ['WEHRE', 'where'],
    ['limt', 'limit'],
    ['limits', 'limit'],
    ['timestmap', 'timestamp'],
    ['tmestmap', 'timestamp'],
    ['intt', 'int'],
    ['un', 'on'],
    ['int4', 'int4'],
  ])('%s: %s', (word, meant) => {
    expect(nearest(word, words, WORDS)).toBe(meant)
  })

  test.each(['', 'x', 'wxyz', 'whither', 'tistamp_', 'timestamp'.repeat(5)])('%s: nothing is near', word => {
    expect(nearest(word, words, WORDS)).toBeNull()
  })
})

/** Milliseconds of the processor. */
function cpuOf(run: () => void): number {
  const before = process.cpuUsage()
  run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

function commonStart(a: string, b: string): number {
  let length = 0
  while (length < a.length && a[length] === b[length]) length++
  return length
}

/** Optimal string alignment distance, the whole table, straight from the definition. */
function distance(a: string, b: string): number {
  const table = Array.from({ length: a.length + 1 }, (_, i) =>
    Array.from({ length: b.length + 1 }, (_, j) => (i === 0 ? j : j === 0 ? i : 0)),
  )
  const at = (i: number, j: number): number => table[i]?.[j] ?? Number.NaN
  for (let i = 1; i <= a.length; i++) {
    for (let j = 1; j <= b.length; j++) {
      const edits = [at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)]
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) edits.push(at(i - 2, j - 2) + 1)
      const row = table[i]
      if (row !== undefined) row[j] = Math.min(...edits)
    }
  }
  return at(a.length, b.length)
}
