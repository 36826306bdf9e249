/** Three rows by their keys. If PostgreSQL planned this statement each time, that would cost most. */
import type { Benchmark } from './harness/benchmark.ts'
import { pageBenchmark } from './harness/lanes.ts'

export const rowsByKey: Benchmark = pageBenchmark({
  name: 'rows-by-key',
  title: 'Three rows by their keys',
  path: '/api/orders?id=in.(1,6,10)',
  contains: '"count":3',
})
