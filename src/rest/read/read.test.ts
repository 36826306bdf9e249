/** The errors for misspelt parameters, which are found before any statement runs. */

import { expect, test } from 'vitest'
import { catalogOf, tableOf } from '../../../test/support/model.ts'
import { everything, testPipeline } from '../../../test/support/pipeline.ts'
import type { Incoming } from '../../exchange.ts'
import { Usage } from '../../usage.ts'

const catalog = catalogOf(tableOf('orders', { id: 'int8', status: 'text', total: 'numeric', groups: 'text' }))

const unreached = () => {
  throw new Error('the database was asked')
}

const runner = {
  ...{ read: unreached, write: unreached, call: unreached, parse: unreached, stream: unreached },
  open: unreached,
}
const read = testPipeline({ runner, view: everything(catalog) })

async function refusal(path: string, query: string): Promise<unknown> {
  const incoming: Incoming = {
    ...{ method: 'GET', path, query, headers: {}, body: Buffer.alloc(0), requestId: 'r', connection: {} },
    trace: null,
    usage: new Usage(),
    isLarge: false,
    onAbort: () => {},
  }
  const error = await read(incoming).catch((thrown: unknown) => thrown)
  return error instanceof Error ? error.message : error
}

test.each([
  ['/api/orders', 'limt=5', 'did you mean "limit"?'],
  ['/api/orders', 'statu=open', 'did you mean "status"?'],
  ['/api/orders/aggregate', 'fn=count&grup_by=status', 'did you mean "group_by"?'],
  ['/api/orders/aggregate', 'fn=count&statu=open', 'did you mean "status"?'],
  ['/api/orders/aggregate', 'fn=count&group_by=status&ofset=1', 'did you mean "offset"?'],
])('the correct parameter is suggested: %s?%s: %s', async (path, query, hint) => {
  expect(await refusal(path, query)).toContain(hint)
})

test('only parameters of the route are suggested', async () => {
  expect(await refusal('/api/orders/aggregate', 'fn=count&cursr=x')).toBe('table "orders" has no column "cursr"')
})

test('columns, filters in any notation and groups are not reported as misspelt parameters', async () => {
  const asked = 'the database was asked'
  expect(await refusal('/api/orders/aggregate', 'fn=count&groups=a&total.gt=5&or=(id.eq.1,id.eq.2)')).toBe(asked)
  expect(await refusal('/api/orders', 'groups=a&total.gt=5&not.or=(id.eq.1,id.eq.2)')).toBe(asked)
})
