/** A page of 25 rows, each with the rows that refer to it. */
import type { Benchmark } from './harness/benchmark.ts'
import { pageBenchmark } from './harness/lanes.ts'

export const nestedExpand: Benchmark = pageBenchmark({
  name: 'nested-expand',
  title: 'List of 25, each with its lines (nested expand)',
  path: '/api/orders?sort=-placed_at&limit=25&expand=nested:order_items',
  contains: '"order_items":[{',
})
