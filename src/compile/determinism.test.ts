import { expect, test } from 'vitest'
import { hasClockLiteral, hasClockWord } from './determinism.ts'

test.each(['now', 'today', 'Tomorrow 10:00', '{yesterday,2024-01-01}', '[today,)', '{"at": "NOW"}'])(
  '%s is a different moment tomorrow',
  value => {
    expect(hasClockWord(value)).toBe(true)
    expect(hasClockWord(Buffer.from(value))).toBe(true)
  },
)

test.each(['2024-01-01', 'infinity', 'epoch', 'snowfall', 'nowhere', '', '12', null])(
  '%s is always the same',
  value => {
    expect(hasClockWord(value)).toBe(false)
  },
)

test('in SQL text only literals are considered, not names', () => {
  expect(hasClockLiteral(`SELECT timestamp 'today' - orders.placed FROM orders`)).toBe(true)
  expect(hasClockLiteral('SELECT offers.today FROM offers')).toBe(false)
  expect(hasClockLiteral(`SELECT 'a' FROM offers`)).toBe(false)
})
