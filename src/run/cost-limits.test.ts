import { expect, test } from 'vitest'
import { costLimitsByRole, isFarBelow, isWithin } from './cost-limits.ts'

const of = (cost: number, rows: number) => ({ cost, rows })

const limitsOf = costLimitsByRole({
  explainMaxCost: 1_000,
  explainMaxRows: 500,
  roleOverrides: new Map([
    ['analyst', { explainMaxCost: 9_000, explainMaxRows: null }],
    ['robot', { explainMaxCost: null, explainMaxRows: 0 }],
    ['root', { explainMaxCost: 0, explainMaxRows: 0 }],
    ['__proto__', { explainMaxCost: 7, explainMaxRows: 7 }],
  ]),
})

test('a role has its own limits, and otherwise the general ones', () => {
  expect(limitsOf('clerk')).toEqual({ cost: 1_000, rows: 500 })
  expect(limitsOf('analyst')).toEqual({ cost: 9_000, rows: 500 })
  expect(limitsOf('robot')).toEqual({ cost: 1_000, rows: Number.POSITIVE_INFINITY })
  expect(limitsOf('root')).toBeNull()
  expect(limitsOf('__proto__')).toEqual({ cost: 7, rows: 7 })
  expect(limitsOf('constructor')).toEqual({ cost: 1_000, rows: 500 })
})

test('an estimate equal to the limit is accepted', () => {
  const limits = { cost: 1_000, rows: 500 }
  expect(isWithin(of(1_000, 500), limits)).toBe(true)
  expect(isWithin(of(1_000.01, 1), limits)).toBe(false)
  expect(isWithin(of(1, 501), limits)).toBe(false)
})

test('an estimate below a tenth of both limits is far below', () => {
  const limits = { cost: 1_000, rows: 500 }
  expect(isFarBelow(of(99.99, 49), limits)).toBe(true)
  expect(isFarBelow(of(100, 49), limits)).toBe(false)
  expect(isFarBelow(of(99, 50), limits)).toBe(false)
})

test('a disabled limit has no effect', () => {
  const off = { cost: Number.POSITIVE_INFINITY, rows: 500 }
  expect(isWithin(of(Number.MAX_VALUE, 1), off)).toBe(true)
  expect(isFarBelow(of(Number.MAX_VALUE, 1), off)).toBe(true)
})
