import { expect, test } from 'vitest'
import type { BoundStatement, CompiledStatement, StatementParameter } from '../compile/statement.ts'
import { rebind } from './rebind.ts'

const use = { typeName: 'int4', type: null, subject: 'a', list: false } as const
const key = (name: string): StatementParameter => ({ key: name, use })
const printed = (...parameters: readonly StatementParameter[]) =>
  ({ text: '', parameters }) as unknown as CompiledStatement
const bound: BoundStatement = { statement: printed(key('a'), key('b'), { literal: '1' }), values: ['A', null, '1'] }

test('values are bound to the positions of their parameters, also repeatedly', () => {
  const other = printed({ literal: '2' }, key('b'), key('a'), key('b'), key('a'))
  expect(rebind(bound, other)).toEqual({ statement: other, values: ['2', null, 'A', null, 'A'] })
})

test('the same values are returned if no position changes', () => {
  expect(rebind(bound, printed(key('a'), key('b'), { literal: '1' })).values).toBe(bound.values)
  expect(rebind(bound, printed(key('a'), key('b'), { literal: '2' })).values).toEqual(['A', null, '2'])
  expect(rebind(bound, printed(key('b'), key('a'), { literal: '1' })).values).toEqual([null, 'A', '1'])
})
