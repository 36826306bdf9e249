import { expect, test } from 'vitest'
import { LINTS } from './lints.ts'
import { POSTGREST_LINTS } from './postgrest.ts'
import { printChecksReference } from './reference.ts'

/** To regenerate the page, run `npx vitest run src/lint/reference.test.ts -u`. */
test('docs/reference/checks.md is generated from the tables of lints', async () => {
  await expect(printChecksReference()).toMatchFileSnapshot('../../docs/reference/checks.md')
})

test('every lint is in the reference once', () => {
  const headings = [...printChecksReference().matchAll(/^### `(.*)`$/gm)].map(([, name]) => name)
  expect(headings).toEqual([...LINTS, ...POSTGREST_LINTS].map(({ name }) => name))
  expect(new Set(headings).size).toBe(headings.length)
})

test('every text is a sentence, and names can be used in a configuration', () => {
  for (const { name, what, why, remedy } of [...LINTS, ...POSTGREST_LINTS]) {
    expect(name).toMatch(/^[a-z]+(-[a-z]+)+$/)
    expect(what('tenant_id')).toMatch(/^[A-Z].*[^.]$/)
    expect(why).toMatch(/^[A-Z].*\.$/)
    expect(remedy).toMatch(/^[A-Z].*\.$/)
  }
})
