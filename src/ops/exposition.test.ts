import { expect, test } from 'vitest'
import { type Metric, printMetric } from './exposition.ts'
import { METRICS } from './metric-table.ts'

const metric = (of: Partial<Metric>): Metric => ({ name: 'svc_x', type: 'gauge', labels: [], help: 'X.', ...of })
const head = (type: string) => `# HELP svc_x X.\n# TYPE svc_x ${type}\n`

test('a gauge without labels is printed', () => {
  expect(printMetric(metric({}), [{ labels: [], value: 1.5 }])).toBe(`${head('gauge')}svc_x 1.5\n`)
})

test('labels are in the order of the table', () => {
  const of = metric({ type: 'counter', labels: ['method', 'status'] })
  expect(printMetric(of, [{ labels: ['GET', '2xx'], value: 3 }])).toBe(
    `${head('counter')}svc_x{method="GET",status="2xx"} 3\n`,
  )
})

test('backslashes, quotes and line breaks are escaped in values, and all but quotes in the help', () => {
  const of = metric({ labels: ['a'], help: 'a\\b\n"c"' })
  expect(printMetric(of, [{ labels: ['a\\b\n"c"'], value: 0 }])).toBe(
    '# HELP svc_x a\\\\b\\n"c"\n# TYPE svc_x gauge\nsvc_x{a="a\\\\b\\n\\"c\\""} 0\n',
  )
})

test.each([
  [Number.NaN, 'NaN'],
  [Infinity, '+Inf'],
  [-Infinity, '-Inf'],
  [1e21, '1e+21'],
  [0.00025, '0.00025'],
])('the number %d is printed', (value, text) => {
  expect(printMetric(metric({}), [{ labels: [], value }])).toBe(`${head('gauge')}svc_x ${text}\n`)
})

test('buckets are cumulative, and the last one is the count', () => {
  const of = metric({ type: 'histogram', labels: ['a'] })
  const value = { bounds: [0.5, 1], counts: [2, 0, 3], sum: 12.5 }
  expect(printMetric(of, [{ labels: ['b'], value }])).toBe(
    [
      `${head('histogram')}svc_x_bucket{a="b",le="0.5"} 2`,
      'svc_x_bucket{a="b",le="1"} 2',
      'svc_x_bucket{a="b",le="+Inf"} 5',
      'svc_x_sum{a="b"} 12.5',
      'svc_x_count{a="b"} 5\n',
    ].join('\n'),
  )
})

test('a summary has quantiles, a sum and a count', () => {
  const value = { quantiles: new Map([[0.5, 0.25]]), sum: 2, count: 8 }
  expect(printMetric(metric({ type: 'summary' }), [{ labels: [], value }])).toBe(
    `${head('summary')}svc_x{quantile="0.5"} 0.25\nsvc_x_sum 2\nsvc_x_count 8\n`,
  )
})

test('a metric without samples is printed', () => {
  expect(printMetric(metric({}), [])).toBe(head('gauge'))
})

test('OpenMetrics names a counter without its suffix, and adds the latest trace of each bucket', () => {
  const of = metric({ type: 'histogram' })
  const exemplar = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), value: 0.75 }
  const value = { bounds: [0.5, 1], counts: [1, 1, 0], sum: 1, exemplars: [null, exemplar, null] }
  const ids = `trace_id="${exemplar.traceId}",span_id="${exemplar.spanId}"`
  expect(printMetric(of, [{ labels: [], value }], 'openmetrics')).toContain(
    `svc_x_bucket{le="0.5"} 1\nsvc_x_bucket{le="1"} 2 # {${ids}} 0.75\n`,
  )
  expect(printMetric(of, [{ labels: [], value }])).not.toContain('trace_id')
  const counter = metric({ name: 'svc_x_total', type: 'counter' })
  expect(printMetric(counter, [{ labels: [], value: 2 }], 'openmetrics')).toBe(
    '# HELP svc_x X.\n# TYPE svc_x counter\nsvc_x_total 2\n',
  )
})

test('every counter of the gateway has the suffix that OpenMetrics requires', () => {
  const counters = Object.values(METRICS).filter(({ type }) => type === 'counter')
  expect(counters.length).toBeGreaterThan(10)
  expect(counters.filter(({ name }) => !name.endsWith('_total'))).toEqual([])
})
