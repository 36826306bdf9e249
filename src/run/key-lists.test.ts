import { expect, test } from 'vitest'
import type { BoundStatement, ReadStatement, StatementValue } from '../compile/statement.ts'
import { toCommand } from './key-lists.ts'

const statementOf = (keyLists: readonly number[]) =>
  ({ kind: 'read', text: 'SELECT 1', parameters: [], keyLists }) as unknown as ReadStatement
const commandOf = (...values: readonly StatementValue[]) => toCommand({ statement: statementOf([0]), values })
const numbers = (count: number) => `{${Array.from({ length: count }, (_, index) => index).join()}}`

test.each([
  ['{7}', '{7,7,7,7,7,7,7,7,7,7}'],
  ['{1,2,3}', '{1,2,3,3,3,3,3,3,3,3}'],
  ['{1,NULL}', '{1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL}'],
  ['{0,1,2,3,4,5,6,7,8}', '{0,1,2,3,4,5,6,7,8,8}'],
  [String.raw`{a,b,c,d,e,f,g,"x,\"y\\,z"}`, String.raw`{a,b,c,d,e,f,g,"x,\"y\\,z","x,\"y\\,z","x,\"y\\,z"}`],
])('a short list is filled to ten keys with its last one: %s', (list, filled) => {
  expect(commandOf(list, 'other')).toEqual({ text: 'SELECT 1', parameters: [filled, 'other'] })
})

test.each(['{}', numbers(10), numbers(100), null])('other lists are sent as they are: %s', list => {
  expect(commandOf(list)).toEqual({ text: 'SELECT 1', parameters: [list] })
})

test('a long list has a separate statement', () => {
  const list = numbers(101)
  expect(commandOf(list)).toEqual({ text: '/* many keys */ SELECT 1', parameters: [list] })
})

test('with a long list beside a short one, neither is filled', () => {
  const values = ['{1}', numbers(101)]
  const { text, parameters } = toCommand({ statement: statementOf([0, 1]), values })
  expect([text, parameters]).toEqual(['/* many keys */ SELECT 1', values])
})

test('statements without a list of keys, and those that are not read, are sent as they are', () => {
  const call = { statement: { kind: 'call', text: 'SELECT f($1)' }, values: ['{1}'] } as unknown as BoundStatement
  expect(toCommand(call)).toEqual({ text: 'SELECT f($1)', parameters: ['{1}'] })
  const read = { statement: statementOf([]), values: ['{1}'] }
  expect(toCommand(read)).toEqual({ text: 'SELECT 1', parameters: ['{1}'] })
})
