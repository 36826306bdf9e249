/** The time from the start of the process, with a running database, to the first returned row. */
import { performance } from 'node:perf_hooks'
import type { Benchmark } from './harness/benchmark.ts'
import { median } from './harness/median.ts'
import { orderIds } from './harness/orders.ts'

const GATEWAY = 'svc serve'
const EMPTY = 'node, an empty HTTP server'
const STARTS = 7

export const start: Benchmark = {
  name: 'start',
  title: `Start to the first answer (median of ${STARTS})`,
  tools: [],
  roundsMax: 1,
  checks: [
    { kind: 'limit', unit: 'ms', lane: GATEWAY, atMost: 500 },
    { kind: 'ratio', unit: 'ms', lane: GATEWAY, references: [EMPTY], better: 'lower', target: null },
  ],
  async prepare(world) {
    const { first } = await orderIds(world)
    return [
      { name: GATEWAY, measure: () => timed(() => world.startGateway({ path: `/api/orders/${first}` })) },
      { name: EMPTY, measure: () => timed(() => world.startReference('empty')) },
    ]
  },
}

async function timed(startOne: () => Promise<{ stop(): Promise<void> }>) {
  const times: number[] = []
  for (let i = 0; i < STARTS; i++) {
    const began = performance.now()
    const service = await startOne()
    times.push(performance.now() - began)
    await service.stop()
  }
  return { ms: median(times) }
}
