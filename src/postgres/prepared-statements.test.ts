/** The cache of prepared statements. */
import { expect, test } from 'vitest'
import { PreparedStatements } from './prepared-statements.ts'

function used(statements: PreparedStatements, text: string) {
  const statement = statements.use(text)
  statement.sent = true
  statement.parsed = true
  statement.described = true
  return statement
}

test('the same text is the same statement', () => {
  const statements = new PreparedStatements(2)
  expect(used(statements, 'a')).toBe(statements.use('a'))
  expect(statements.use('b').name).toBe('s2')
})

test('while a statement’s Parse is in progress, an unnamed statement is used', () => {
  const statements = new PreparedStatements(2)
  const named = statements.use('a')
  named.sent = true
  expect(statements.use('a').name).toBe('')
  named.parsed = true
  expect(statements.use('a').name).toBe('')
  named.described = true
  expect(statements.use('a')).toBe(named)
})

test('the least recently used one is evicted and closed once', () => {
  const statements = new PreparedStatements(2)
  for (const text of ['a', 'b', 'a', 'c']) used(statements, text)
  expect(statements.size).toBe(2)
  expect(statements.takeToClose()).toEqual(['s2'])
  expect(statements.takeToClose()).toEqual([])
  expect(used(statements, 'a').name).toBe('s1')
  expect(used(statements, 'b').name).toBe('s4')
})

test('a dropped statement gets a new name and is closed only if the server has it', () => {
  const statements = new PreparedStatements(10)
  const known = used(statements, 'a')
  const refused = statements.use('b')
  refused.sent = true
  statements.forget(known)
  statements.forget(refused)
  statements.forget(known)
  expect(statements.takeToClose()).toEqual(['s1'])
  expect(statements.use('a').name).toBe('s3')
})

test('with size 0 every use is a new unnamed statement', () => {
  const statements = new PreparedStatements(0)
  const statement = used(statements, 'a')
  expect(statement.name).toBe('')
  expect(statements.use('a')).not.toBe(statement)
  expect(statements.use('a').sent).toBe(false)
})

test('a text that is too long to cache is parsed at each use', () => {
  const statements = new PreparedStatements(4)
  expect(statements.use('x'.repeat(16_385)).name).toBe('')
  expect(statements.use('x'.repeat(16_384)).name).not.toBe('')
  expect(statements.size).toBe(1)
})
