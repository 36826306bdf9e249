/**
 * The cost of all protection between a caller and the rows: policy with column rules, rate limit, tenant
 * limit, cost guard.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Benchmark } from './harness/benchmark.ts'
import { GATEWAY, httpLane, throughput } from './harness/lanes.ts'
import { orderIds } from './harness/orders.ts'
import { fetchOk } from './harness/world.ts'

const GUARDED = 'gateway, everything on'

/** High enough that no request is rejected, while everything is counted. */
const LIMITS = ['rate_limit_rate = 1000000', 'rate_limit_burst = 1000000', 'tenant_max_concurrent = 64']

const POLICY = `
default_decision = "deny"

[tables.orders]
operations = ["read"]
read_columns = { except = ["notes"] }
require_any_role = ["clerk", "manager"]
require_scopes = ["orders:read"]
`

export const guarded: Benchmark = {
  name: 'guarded',
  title: 'Get by id with policy, rate limit, tenant gate and cost guard',
  tools: ['wrk'],
  checks: [throughput(GUARDED, [GATEWAY], 0.9)],
  async prepare(world) {
    const ids = await orderIds(world)
    const path = '/api/orders/'
    const policy = join(world.folder, 'policy.toml')
    await writeFile(policy, POLICY)
    const off = await world.startGateway({ settings: ['explain_max_cost = 0', 'explain_max_rows = 0'] })
    const settings = [...LIMITS, '[access]', 'enabled = true', `path = ${JSON.stringify(policy)}`]
    const on = await world.startGateway({ settings })
    const answer = await fetchOk(`${on.url}${path}${ids.first}`, await world.headers())
    if ('notes' in JSON.parse(answer).data) throw new Error(`the policy is not in force: ${answer}`)
    return [
      await httpLane(world, GATEWAY, off.url + path, { ids }),
      await httpLane(world, GUARDED, on.url + path, { ids }),
    ]
  },
}
