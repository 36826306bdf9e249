import { expect, test } from 'vitest'
import { pageWithParts } from '../../../test/support/page.ts'
import { OPERAND_OF } from './operators.ts'
import { OPERATOR_EXAMPLES, printOperators } from './operators-reference.ts'

const PAGE = 'docs/reference/reading.md'

/** To update the page, run `npx vitest run src/rest/parameters/operators-reference.test.ts -u`. */
test(`${PAGE} documents every operator`, async () => {
  await expect(pageWithParts(PAGE, { operators: printOperators() })).toMatchFileSnapshot(`../../../${PAGE}`)
})

test('the page lists every operator in the order of the table', () => {
  expect(OPERATOR_EXAMPLES.map(({ operator }) => operator)).toEqual(Object.keys(OPERAND_OF))
})

test('the reference has a row for each operator', () => {
  expect(printOperators()).toContain('| `status=in.(paid,shipped)` | `status.in=paid,shipped` |')
  expect(printOperators()).toContain('| `approved_by=is_null` | `approved_by.is_null=true` |')
})
