import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { EDITS_MAX, NAME_LENGTH_MAX, nearest } from './nearest.ts'

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
  ])('%s → %s: %s', (written, meant) => {
    expect(nearest(written, ['id', 'customer_address', '__proto__', 'status', 'تست', 'total'])).toBe(meant)
  })

  test.each([
    ['xyz', ['status', 'total'], 'nothing is like it'],
    ['ab', ['cd'], 'a short name admits one edit only'],
    ['status', [], 'there is nothing to suggest'],
    ['', ['id'], 'nothing was written'],
  ])('%s among %j: none, because %s', (written, candidates) => {
    expect(nearest(written, candidates)).toBeNull()
  })

  test('of two candidates the one with fewer edits, of equals the first', () => {
    expect(nearest('orderz', ['order_z', 'borders', 'orders'])).toBe('order_z')
    expect(nearest('orders', ['border', 'order', 'orderz'])).toBe('order')
  })

  test('candidates may be any iterable, such as the keys of a map', () => {
    expect(nearest('ordrs', new Map([['orders', 1]]).keys())).toBe('orders')
  })

  test('agrees with the textbook on which candidate is nearest', () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 14 })
    fc.assert(
      fc.property(word, fc.array(word, { maxLength: 6 }), (name, candidates) => {
        const bound = Math.min(EDITS_MAX, Math.max(1, Math.floor(name.length / 3)))
        const distances = candidates.map(candidate => distance(name, candidate))
        const least = Math.min(...distances)
        const expected = least <= bound ? candidates[distances.indexOf(least)] : null
        expect(nearest(name, candidates)).toBe(expected)
      }),
      { numRuns: 2_000 },
    )
  })

  test('a hostile name costs next to nothing: too long is not looked at, the longest is looked at in a band', () => {
    const candidates = Array.from({ length: 5_000 }, (_, n) => `a`.repeat(100) + n)
    expect(nearest('a'.repeat(2 ** 20), candidates)).toBeNull()
    expect(nearest('a'.repeat(NAME_LENGTH_MAX + 1), ['a'.repeat(NAME_LENGTH_MAX)])).toBeNull()
    const started = performance.now()
    nearest('a'.repeat(102), candidates)
    expect(performance.now() - started).toBeLessThan(1_000)
  })
})

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
