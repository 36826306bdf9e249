import { expect, test } from 'vitest'
import { pageWithParts } from '../test/support/page.ts'
import { printErrors } from './errors-reference.ts'

const PAGE = 'docs/reference/errors.md'

/** Update the page with `npx vitest run src/errors-reference.test.ts -u`. */
test(`${PAGE} has every code, with its status`, async () => {
  await expect(pageWithParts(PAGE, { errors: printErrors() })).toMatchFileSnapshot(`../${PAGE}`)
})
