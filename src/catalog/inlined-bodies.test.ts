import { expect, test } from 'vitest'
import { buildInlinedBodies } from './inlined-bodies.ts'

const bodies = (functions: Readonly<Record<string, string>>, names: readonly string[] | null = null) =>
  buildInlinedBodies(Object.entries(functions).map(([name, body]) => ({ name, names, body })))

test('an argument counts as often as the body mentions it, by position or name', () => {
  expect(bodies({ f: 'select $1 and ($1 or $2)' }).get('f')).toEqual({ terms: 7, uses: 2 })
  expect(bodies({ f: 'RETURN (x || "Y" || X || f.x || "y")' }, ['x', 'Y']).get('f')?.uses).toBe(3)
})

test('nested calls multiply, and calls next to each other add', () => {
  const found = bodies({ f0: 'select $1 || $1', f1: 'select f0(f0($1))', f2: 'select public.f1 ($1) || f0($1)' })
  expect(found.get('f1')?.uses).toBe(4)
  expect(found.get('f2')?.uses).toBe(6)
})

test('a chain of a hundred doubling functions is counted in one pass', () => {
  const chain = Object.fromEntries(
    Array.from({ length: 100 }, (_, n) => [
      `f${n}`,
      n === 0 ? 'select $1 || $1' : `select f${n - 1}($1) || f${n - 1}($1)`,
    ]),
  )
  expect(bodies(chain).get('f5')?.uses).toBe(64)
  expect(bodies(chain).get('f99')).toEqual({ terms: 1_000_000_000, uses: 1_000_000_000 })
})

test('strings and comments are not mentions, and their parentheses do not nest', () => {
  const text = `select $1 || ' $1 ) '' $1' || e'\\' $1 (' /* $1 ( */ || $a$ $1 ) $a$ || $$ $1 $$ -- $1 (`
  expect(bodies({ f: text }).get('f')?.uses).toBe(1)
})

test('a body that PostgreSQL does not replace is one call', () => {
  const kept = { terms: 1, uses: 1 }
  expect(bodies({ f: 'select $1 || $1 from t' }).get('f')).toEqual(kept)
  expect(bodies({ f: 'select (select $1) || $1' }).get('f')).toEqual(kept)
  expect(bodies({ f: 'select $1 is distinct from $1' }).get('f')?.uses).toBe(2)
  expect(bodies({ f: 'select extract(year from $1) + extract(month from $1)' }).get('f')?.uses).toBe(2)
})

test('recursion ends, and overloads count as the largest', () => {
  expect(bodies({ f: 'select f($1) || f($1)' }).get('f')?.uses).toBe(2)
  const overloads = ['select $1', 'select $1 || $1 || $1'].map(body => ({ name: 'f', names: null, body }))
  expect(buildInlinedBodies(overloads).get('f')?.uses).toBe(3)
})
