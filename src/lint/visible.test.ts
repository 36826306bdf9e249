import { expect, test } from 'vitest'
import { printableName, printableSql } from './printable-names.ts'

test.each([
  ['orders', 'orders'],
  ['esc\u001b[2J', 'esc\\u{1b}[2J'],
  ['a\nb', 'a\\u{a}b'],
  ['\u202etxt', '\\u{202e}txt'],
  ['Zoë 🙂', 'Zoë 🙂'],
])('%j is shown as %s', (name, shown) => {
  expect(printableName(name)).toBe(shown)
})

test.each([
  ['drop table "a";', 'drop table "a";'],
  ['drop table "a\nb";', 'drop table U&"a\\+00000ab";'],
  ['drop table "a\\\n""b";', 'drop table U&"a\\\\\\+00000a""b";'],
  ["x = 'a\u001bb\\'", "x = U&'a\\+00001bb\\\\'"],
  ["x = E'a\nb\\\\c'", "x = U&'a\\+00000ab\\\\c'"],
  ['( SELECT 1\n   FROM b)', '( SELECT 1    FROM b)'],
  ['\'"\' || "\'\n"', '\'"\' || U&"\'\\+00000a"'],
])('%j is printed as %s', (sql, printed) => {
  expect(printableSql(sql)).toBe(printed)
})
