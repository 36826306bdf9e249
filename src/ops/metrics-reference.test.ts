import { expect, test } from 'vitest'
import { METRICS } from './metric-table.ts'
import { printMetricsReference } from './metrics-reference.ts'

/** To update the page, run `npx vitest run src/ops/metrics-reference.test.ts -u`. */
test('docs/reference/metrics.md is generated from the table of metrics', async () => {
  await expect(printMetricsReference()).toMatchFileSnapshot('../../docs/reference/metrics.md')
})

test('every metric is in the reference', () => {
  const page = printMetricsReference()
  for (const { name } of Object.values(METRICS)) expect(page).toContain(`| \`${name}\` |`)
})

test('the reference has a row for each metric', () => {
  expect(printMetricsReference()).toContain(
    '| `svc_pool_connections` | gauge | `state` | Connections of the pool: idle, busy, or opening. |',
  )
})
