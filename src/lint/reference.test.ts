import { expect, test } from 'vitest'
import { LINTS } from './lints.ts'
import { printChecksReference } from './reference.ts'

/** Out of date? `npx vitest run src/lint/reference.test.ts -u` writes it anew. */
test('docs/reference/checks.md says what the tables of lints say', async () => {
  await expect(printChecksReference()).toMatchFileSnapshot('../../docs/reference/checks.md')
})

test('every lint is in it, once', () => {
  const headings = [...printChecksReference().matchAll(/^### `(.*)`$/gm)].map(([, name]) => name)
  expect(headings).toEqual(LINTS.map(({ name }) => name))
  expect(new Set(headings).size).toBe(headings.length)
})

test('every text is a sentence, and names fit a configuration', () => {
  for (const { name, what, why, remedy } of LINTS) {
    expect(name).toMatch(/^[a-z]+(-[a-z]+)+$/)
    expect(what('tenant_id')).toMatch(/^[A-Z].*[^.]$/)
    expect(why).toMatch(/^[A-Z].*\.$/)
    expect(remedy).toMatch(/^[A-Z].*\.$/)
  }
})
