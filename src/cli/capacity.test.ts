import { expect, test } from 'vitest'
import { REQUEST_COSTS } from '../capacity/costs.ts'
import { run } from './program.ts'
import type { World } from './world.ts'

/** Runs the command, which uses only the output. */
async function capacity(...options: readonly string[]) {
  const out: string[] = []
  const errors: string[] = []
  const world = {
    ...{ environment: {}, workingDirectory: '.' },
    out: (line: string) => out.push(line),
    error: (line: string) => errors.push(line),
  } as unknown as World
  const code = await run(['capacity', ...options], world)
  return { code, text: out.join('\n'), errors: errors.join('\n') }
}

async function planOf(...options: readonly string[]) {
  const { code, text, errors } = await capacity(...options, '--json')
  expect([code, errors]).toEqual([0, ''])
  return JSON.parse(text)
}

test('requests need the CPU time of their kinds, at the given load of a core', async () => {
  const { get, list } = REQUEST_COSTS
  const plan = await planOf('--requests', '10000', '--mix', 'get=3,list=1', '--busy', '50')
  const cores = (of: 'gateway' | 'database') => (10_000 * (0.75 * get[of] + 0.25 * list[of])) / 1e6 / 0.5
  expect(plan.gateway_cores).toBeCloseTo(cores('gateway'), 1)
  expect(plan.database_cores).toBeCloseTo(cores('database'), 1)
  expect(plan.gateways).toBe(Math.ceil(cores('gateway')) + 1)
  // A gateway more during an update, each with ten connections and two listeners.
  expect(plan.connections).toBe((plan.gateways + 1) * 12)
  expect(plan).toMatchObject({ log_reads_per_second: 0, notifications_per_second: 0 })
})

test('sockets need gateways and memory, and changes are delivered to the sockets of their tenant', async () => {
  const idle = await planOf('--sockets', '100000')
  expect(idle.gateways_for).toEqual({ cpu: 1, sockets: 15, spare: 1 })
  expect(idle.log_reads_per_second).toBe(160)
  const busy = await planOf('--sockets', '100000', '--changes', '100', '--tenants', '2000')
  expect(busy.notifications_per_second).toBe(100 * 50)
  expect(busy.gateways_for.cpu).toBeGreaterThan(1)
  expect(busy.gateways_for.cpu).toBeLessThanOrEqual(Math.ceil(busy.gateway_cores))
  expect(busy.log_reads_per_second).toBe(busy.gateways * 40)
  expect(busy.memory_bytes_per_gateway).toBeGreaterThan(idle.memory_bytes_per_gateway)
  expect(busy.database_cores).toBeGreaterThan(idle.database_cores)
  expect(busy.connections).toBe((busy.gateways + 1) * 14)
})

test('the text names every assumption', async () => {
  const { code, text } = await capacity('--requests', '5000', '--mix', 'get=60,insert=10')
  expect(code).toBe(0)
  expect(text).toMatch(/^gateways +\d+ /m)
  const { title, gateway, database } = REQUEST_COSTS.insert
  expect(text).toContain(
    `- insert (${title}), proportion 10: ${gateway} µs of CPU time in a gateway and ${database} µs in PostgreSQL`,
  )
  expect(text).toContain('- cores are 60 % busy at the peak')
})

test('changes that every gateway has to read can be too many for any number of gateways', async () => {
  const { code, errors } = await capacity('--sockets', '1', '--changes', '999999999', '--tenants', '1')
  expect(code).toBe(1)
  expect(errors).toContain('divide the tenants among several databases')
})

test.each([
  [['--mix', 'get=60,lists=30'], '"lists=30" is not one of get, cached, list,'],
  [['--mix', 'get=1,get=2'], '"get" occurs twice'],
  [['--mix', 'get=0'], 'Expected a proportion greater than 0'],
  [['--mix', 'constructor=1'], '"constructor=1" is not one of'],
  [['--requests', '-5'], 'Expected a whole number from 0 to 999999999'],
  [['--tenants', '0'], 'Expected a whole number from 1 to 999999999'],
  [['--busy', '101'], 'Expected a whole number from 1 to 100'],
  [['--sockets', '5', '--changes', '5'], '--tenants is required with --sockets and --changes'],
])('%j is refused', async (options, message) => {
  const { code, errors } = await capacity(...options)
  expect(code).toBe(2)
  expect(errors).toContain(message)
})
