/**
 * Webhooks delivered to receivers on this machine, which share its cores: one receiver, ten, and ten of which
 * one is dead.
 */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Table } from '../src/catalog/model.ts'
import { systemClock } from '../src/clock.ts'
import { createAddressGuard } from '../src/outbound/address-guard.ts'
import type { Trigger } from '../src/webhooks/trigger.ts'
import { type RowChange, Webhooks } from '../src/webhooks/webhooks.ts'
import type { Benchmark, Figures, Lane } from './harness/benchmark.ts'

const ONE = 'one receiver'
const TEN = 'nine of ten receivers'
const DEAD = 'nine receivers beside a dead one'

/** The number of webhooks to each measured receiver. */
const DELIVERIES = 5_000
/** Before the measurement, because code becomes fast while it runs. */
const WARM_UP = 2_000

const TABLE = { schema: 'public', name: 'orders', resource: 'orders' } as Table
const CHANGE: RowChange = {
  operation: 'UPDATE',
  after: JSON.stringify({ id: 4_711, status: 'paid', total: 1_013.25, note: 'after the calibration'.repeat(10) }),
  before: JSON.stringify({ id: 4_711, status: 'open', total: 1_013.25, note: 'after the calibration'.repeat(10) }),
}
const SECRET = Buffer.alloc(32, 1).toString('base64')

export const webhooks: Benchmark = {
  name: 'webhooks',
  title: 'Webhooks, signed, to receivers on the same machine',
  tools: [],
  checks: [
    { kind: 'limit', unit: 'µs', lane: ONE, atMost: 500 },
    { kind: 'ratio', unit: '/s', lane: DEAD, references: [TEN], better: 'higher', target: 0.95 },
  ],
  async prepare() {
    const lane = (name: string, counted: number, beside: Beside): Lane => ({
      name,
      measure: () => measure(counted, beside, DELIVERIES),
    })
    await measure(1, 'none', WARM_UP)
    return [lane(ONE, 1, 'none'), lane(TEN, 9, 'another'), lane(DEAD, 9, 'a dead one')]
  },
}

type Beside = 'none' | 'another' | 'a dead one'

async function measure(counted: number, beside: Beside, deliveriesEach: number): Promise<Figures> {
  const deliveries = counted * deliveriesEach
  let left = deliveries
  let finish = (): void => {}
  const finished = new Promise<void>(resolve => {
    finish = resolve
  })
  const count = (): void => {
    left -= 1
    if (left === 0) finish()
  }
  const receivers = await Promise.all(Array.from({ length: counted }, () => listen('answers', count)))
  const others = beside === 'none' ? [] : [await listen(beside === 'another' ? 'answers' : 'hangs', () => {})]
  const triggers = [...receivers, ...others].map(triggerOf)
  const delivering = open(triggers)
  const names = triggers.map(({ name }) => name)
  try {
    const beganMs = performance.now()
    delivering.committed(TABLE, new Array<RowChange>(deliveriesEach).fill(CHANGE), names)
    await finished
    const seconds = (performance.now() - beganMs) / 1_000
    return { '/s': deliveries / seconds, µs: (seconds * 1e6) / deliveries }
  } finally {
    await delivering.close({ deadlineMs: 0 })
    for (const server of [...receivers, ...others]) server.closeAllConnections()
    for (const server of [...receivers, ...others]) server.close()
  }
}

async function listen(how: 'answers' | 'hangs', came: () => void): Promise<Server> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      came()
      if (how === 'answers') response.writeHead(204).end()
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return server
}

function triggerOf(server: Server, index: number): Trigger {
  const { port } = server.address() as AddressInfo
  return {
    ...{ name: `receiver ${index}`, table: 'orders', operations: ['update'], retryCount: 5, headers: {} },
    ...{
      url: new URL(`http://127.0.0.1:${port}/hook`),
      enabled: true,
      columns: null,
      secrets: [SECRET],
      timeoutMs: 10_000,
      source: 'gateway',
      order: 'none',
    },
  }
}

function open(all: readonly Trigger[]): Webhooks {
  const byName = new Map(all.map(trigger => [trigger.name, trigger]))
  return new Webhooks({
    triggers: {
      ...{ all: () => all, named: name => byName.get(name), on: () => all },
      ...{
        disable() {},
        isActive: () => true,
        isStored: () => false,
        generation: () => 0,
        reload: async () => {},
        refresh: async () => {},
      },
    },
    outbox: null,
    catalog: () => {
      throw new Error('nobody asks')
    },
    guard: createAddressGuard({ allow: [], loopback: 'allowed' }),
    ...{ clock: systemClock, random: Math.random, userAgent: 'bench', emit() {} },
  })
}
