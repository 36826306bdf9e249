import { expect, test } from 'vitest'
import { textForRole } from './role-text.ts'

const session = { settings: [], timeoutMs: null, before: null, rollsBack: false, replied() {} }
const text = (role: string) => textForRole('SELECT 1', { role, session })

test('each database role has its own text, the same each time', () => {
  expect(text('anon')).toBe('SELECT 1 /* role anon */')
  expect(text('anon')).toBe(text('anon'))
  expect(text('author')).not.toBe(text('anon'))
  expect(textForRole('SELECT 2', { role: 'anon', session })).toBe('SELECT 2 /* role anon */')
})

test('without a database role, the text is unchanged', () => {
  expect(textForRole('SELECT 1', { role: 'anon' })).toBe('SELECT 1')
})

test.each(['*/ DROP TABLE x; /*', '/*', "a'b\n--", '\ud800', 'ä'])('the name %j ends no comment', role => {
  expect(text(role)).toMatch(/^SELECT 1 \/\* role [^/\s]+ \*\/$/)
})
