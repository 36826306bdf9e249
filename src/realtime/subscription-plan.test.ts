import { expect, test } from 'vitest'
import { catalogOf, tableOf } from '../../test/support/model.ts'
import { everything, PIPELINE_LIMITS } from '../../test/support/pipeline.ts'
import { createPlanCache } from '../compile/plans.ts'
import { ANONYMOUS } from '../identity/authenticate.ts'
import { parseSqlCondition } from '../shapes/sql-condition.ts'
import { planSubscription } from './subscription-plan.ts'

const catalog = catalogOf(tableOf('notes', { id: 'int4', owner: 'text', size: 'numeric' }, { primaryKey: ['id'] }))
const plans = createPlanCache()

function planned(where: string) {
  const condition: Parameters<typeof planSubscription>[0]['texts'] = {
    key: where,
    columns: null,
    condition: (values, alias) =>
      parseSqlCondition(where, { table: 'notes', alias, values, params: new Map(), maxInValues: 100, queryable: null }),
  }
  const view = everything(catalog)()
  return planSubscription(
    { table: 'notes', filter: '', select: undefined, texts: condition },
    { view, searchLanguage: 'english', limits: PIPELINE_LIMITS, approvals: null, plans, owner: ANONYMOUS },
  )
}

test.each([
  ['(id / 10) % 3 = 1', '(id / 10) % 3 = 2'],
  [`owner = 'ann' and size > 1.5`, `owner = 'bob' and size > 2.75`],
  ['id between 1 and 5', 'id between 6 and 9'],
])('%s and %s have the same statements with other values', (one, other) => {
  const [first, second] = [planned(one), planned(other)]
  expect(second.name).toBe(first.name)
  expect(second.stream().statement.text).toBe(first.stream().statement.text)
  expect(second.variant.name).not.toBe(first.variant.name)
})

test('conditions with numbers of different types have different statements', () => {
  expect(planned('id = 1').name).not.toBe(planned('id = 3000000000').name)
})
