import { expect, test } from 'vitest'
import { CORPUS } from '../../test/support/corpus.ts'
import { printLanguageReference } from './reference.ts'

const { examples, grammar, invalid } = CORPUS

/** If the page is out of date, `npx vitest run src/corpus/reference.test.ts -u` rewrites it. */
test('docs/reference/language.md is generated from the grammar and the examples', async () => {
  await expect(printLanguageReference(CORPUS)).toMatchFileSnapshot('../../docs/reference/language.md')
})

test('the page has every production, every example and every error', () => {
  const page = printLanguageReference(CORPUS)
  const rows = page.split('\n').filter(line => line.startsWith('| ') && line.includes('`'))
  expect(rows.length).toBeGreaterThanOrEqual(examples.length + invalid.length)
  for (const { name, text } of grammar) expect(page).toContain(`\n${name} = ${text} ;\n`)
})

test('the reference has a row for each example', () => {
  const page = printLanguageReference(CORPUS)
  expect(page).toContain(
    '| `cnt users where a = 1` | `SELECT COUNT(*) FROM users WHERE a = 1` | One row with the column "count". |',
  )
  expect(page).toContain('| `del users limit 5` | "del" has no limit. | del takes no limit | 1:11 |')
  // Pipes would end the cell, even in code; backticks would end the code.
  expect(page).toContain("`SELECT name \\|\\| ' <' \\|\\| email \\|\\| '>' AS address FROM users`")
  expect(page).toContain('| ``get `Order Details` fields id, `unit price` where `unit price` > 10`` |')
})
