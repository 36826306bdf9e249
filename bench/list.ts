/** A page of 25 rows, filtered and sorted. */
import type { Benchmark } from './harness/benchmark.ts'
import { pageBenchmark } from './harness/lanes.ts'

export const list: Benchmark = pageBenchmark({
  name: 'list',
  title: 'List of 25, filter and sort',
  path: '/api/orders?status=paid&sort=-placed_at&limit=25',
  contains: '"count":25',
})
