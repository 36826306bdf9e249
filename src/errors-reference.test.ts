import { expect, test } from 'vitest'
import { pageWithParts } from '../test/support/page.ts'
import { printErrors } from './errors-reference.ts'

const PAGE = 'docs/reference/errors.md'

/** Out of date? `npx vitest run src/errors-reference.test.ts -u` writes it anew. */
test(`${PAGE} has every code, with its status`, async () => {
  await expect(pageWithParts(PAGE, { errors: printErrors() })).toMatchFileSnapshot(`../${PAGE}`)
})
