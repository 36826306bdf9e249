/** A replica verifies what a read must see, whatever its last check has found (decision 0038). */
import { expect, test } from 'vitest'
import { fixture } from '../../../test/support/fixtures.ts'
import { execute } from '../../../test/support/postgres.ts'
import { startReplication } from '../../../test/support/standby.ts'
import type { Identity } from '../../identity/identity.ts'
import { createPool } from '../../postgres/pool.ts'
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
  async () => ({
    primary: createPool({ target: parseUrl(servers.primary.adminUrl) }),
    states: [] as ReplicaState[],
  }),
  ({ primary }) => primary.close({ deadlineMs: 0 }),
)

const command = (text: string): Command => ({ text, parameters: [] })
const PORT = [command('select 1'), command("select current_setting('port')")]

test('a standby that has been promoted since its check answers no read', { timeout: 60_000 }, async () => {
  const now = () => performance.now()
  const { primary, states } = pools
  const standby = parseUrl(servers.standby.adminUrl)
  const replica = new Replica({
    ...{ name: 'standby', maxConnections: 2, now },
    openPool: () => createPool({ target: standby }),
    openChecks: () => createPool({ target: standby, maxConnections: 1 }),
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
  const portOf = async () => {
    const route = routes.routeOf(ANA, 'port', { isStrong: false, after: 0n })
    if (route === null) return 'no route'
    const worked = { ms: 0 }
    const results = await routes.run(
      route,
      worked,
      () => PORT,
      () => primary.run(PORT, worked),
    ).result
    expect(results).toHaveLength(PORT.length)
    return String(results[1]?.rows[0]?.[0])
  }
  await position.read()
  await replica.check()
  expect(states).toEqual(['available'])
  expect(await portOf()).toBe(String(servers.standby.port))

  await execute(servers.standby.adminUrl, 'select pg_promote()')
  expect(replica.state).toBe('available')
  expect(await portOf()).toBe(String(servers.primary.port))
  expect(routes.stats().fallbacks).toEqual({ behind: 1, conflict: 0, unavailable: 0, error: 0 })
  await expect.poll(() => states).toEqual(['available', 'not a standby'])
  expect(await portOf()).toBe('no route')
  await replica.close({ deadlineMs: 0 })
})
