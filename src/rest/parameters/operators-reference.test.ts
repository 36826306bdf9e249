import { expect, test } from 'vitest'
import { pageWithParts } from '../../../test/support/page.ts'
import { OPERAND_OF } from './operators.ts'
import { OPERATOR_EXAMPLES, printOperators } from './operators-reference.ts'

const PAGE = 'docs/reference/reading.md'

/** Out of date? `npx vitest run src/rest/parameters/operators-reference.test.ts -u` writes it anew. */
test(`${PAGE} has the operators that there are`, async () => {
  await expect(pageWithParts(PAGE, { operators: printOperators() })).toMatchFileSnapshot(`../../../${PAGE}`)
})

test('every operator is in it, in the order of the table', () => {
  expect(OPERATOR_EXAMPLES.map(({ operator }) => operator)).toEqual(Object.keys(OPERAND_OF))
})

test('the reference has a row for each operator', () => {
  expect(printOperators()).toContain('| `status=in.(paid,shipped)` | `status.in=paid,shipped` |')
  expect(printOperators()).toContain('| `approved_by=is_null` | `approved_by.is_null=true` |')
})
