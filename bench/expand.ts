/** A page of 25 rows, each with the row that it refers to. */
import type { Benchmark } from './harness/benchmark.ts'
import { pageBenchmark } from './harness/lanes.ts'

export const expand: Benchmark = pageBenchmark({
  name: 'expand',
  title: 'List of 25, each with its customer (forward expand)',
  path: '/api/orders?sort=-placed_at&limit=25&expand=customer',
  contains: '"customer":{',
})
