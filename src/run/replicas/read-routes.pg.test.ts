/** A replica verifies what a read must see, whatever its last check has found (decision 0038). */
import { expect, test } from 'vitest'
import { clientFixture, fixture } from '../../../test/support/fixtures.ts'
import { execute } from '../../../test/support/postgres.ts'
import { startReplication } from '../../../test/support/standby.ts'
import type { Identity } from '../../identity/identity.ts'
import { createPool, type PoolOptions } from '../../postgres/pool.ts'
import type { Command } from '../../postgres/types.ts'
import { parseUrl } from '../../postgres/url.ts'
import { PrimaryPosition } from './primary-position.ts'
import { ReadRoutes } from './read-routes.ts'
import { IDENTITY, Replica, type ReplicaState } from './replica.ts'
import { WrittenPositions } from './written-positions.ts'

const ANA: Identity = {
  ...{ source: 'jwt', tenantId: 't1', userId: 'ana', agentId: '', role: 'app', scopes: [], claims: '{}' },
  expiresAt: null,
}

const servers = fixture(() => startReplication('create table notes (id int)', { synchronous: false }))

const pools = fixture(
  async () => ({ primary: createPool({ target: parseUrl(servers.primary.adminUrl) }) }),
  ({ primary }) => primary.close({ deadlineMs: 0 }),
)

/** A session of the standby, which can make a read there wait. */
const blocker = clientFixture(() => servers.standby.adminUrl)

const command = (text: string): Command => ({ text, parameters: [] })
const PORT = "select current_setting('port')"

/** The routes of one replica with one connection, which has been checked once. */
async function opened(limits: Partial<PoolOptions>) {
  const { primary } = pools
  const states: ReplicaState[] = []
  const now = () => performance.now()
  const target = parseUrl(servers.standby.adminUrl)
  const replica = new Replica({
    ...{ name: 'standby', maxConnections: 1, now },
    openPool: () => createPool({ target, maxConnections: 1, pipelineDepth: 1, ...limits }),
    openChecks: () => createPool({ target, maxConnections: 1 }),
    async primaryIdentity() {
      const [result] = await primary.run([command(`select ${IDENTITY}`)]).result
      return String(result?.rows[0]?.[0])
    },
    onState: state => states.push(state),
  })
  const position = new PrimaryPosition({ database: primary, maxLagMs: 0, sampleMs: 10, onSetBack() {}, now })
  const routes = new ReadRoutes({
    ...{ replicas: [replica], position, written: new WrittenPositions(), wroteElsewhere: null, now },
    ...{ positionTimeoutMs: 10_000, statementTimeoutMs: 10_000 },
  })
  /** Runs a statement on its route; returns its only value. */
  async function running(text: string): Promise<string> {
    const route = routes.routeOf(ANA, text, { isStrong: false, after: 0n })
    if (route === null) return 'no route'
    const worked = { ms: 0 }
    const commands = [command('select 1'), command(text)]
    const results = await routes.run(
      route,
      worked,
      () => commands,
      () => primary.run(commands, worked),
    ).result
    expect(results).toHaveLength(commands.length)
    return String(results[1]?.rows[0]?.[0])
  }
  await position.read()
  await replica.check()
  return { routes, replica, running, states }
}

test('a replica without a free connection answers no read, and loses none in progress', async () => {
  const { routes, replica, running } = await opened({ acquireTimeoutMs: 300 })
  await blocker.query('select pg_advisory_lock(1)')
  const slow = running('select pg_advisory_xact_lock(1)')
  expect(await running(PORT)).toBe(String(servers.primary.port))
  await blocker.query('select pg_advisory_unlock(1)')
  await slow
  expect(routes.stats().fallbacks).toEqual({ behind: 0, conflict: 0, unavailable: 1, error: 0 })
  expect(replica.reads).toBe(1)
  await replica.check()
  expect(replica.state).toBe('available')
  await replica.close({ deadlineMs: 0 })
})

test('a standby that has been promoted since its check answers no read', { timeout: 60_000 }, async () => {
  const { routes, replica, running, states } = await opened({})
  expect(states).toEqual(['available'])
  expect(await running(PORT)).toBe(String(servers.standby.port))

  await execute(servers.standby.adminUrl, 'select pg_promote()')
  expect(replica.state).toBe('available')
  expect(await running(PORT)).toBe(String(servers.primary.port))
  expect(routes.stats().fallbacks).toEqual({ behind: 1, conflict: 0, unavailable: 0, error: 0 })
  await expect.poll(() => states).toEqual(['available', 'not a standby'])
  expect(await running(PORT)).toBe('no route')
  await replica.close({ deadlineMs: 0 })
})
