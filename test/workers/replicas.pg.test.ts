/** docs/operations/replicas.md#what-a-read-sees: a caller's reads see its writes through every worker. */
import { once } from 'node:events'
import { Agent, request as httpRequest } from 'node:http'
import { afterEach, expect, test } from 'vitest'
import { mintToken } from '../../src/identity/mint.ts'
import { fixture } from '../support/fixtures.ts'
import { configFile, SECRET } from '../support/gateway.ts'
import { execute } from '../support/postgres.ts'
import { killSvc } from '../support/process.ts'
import { PASSWORD } from '../support/server.ts'
import { startReplication } from '../support/standby.ts'
import { startWithWorkers } from '../support/workers.ts'

const servers = fixture(() =>
  startReplication(
    `create table counters (id int primary key, value int not null);
     insert into counters values (1, 0);
     grant select, update on counters to app;
     create function place() returns boolean stable language sql as 'select pg_is_in_recovery()'`,
    { synchronous: false },
  ),
)
afterEach(killSvc)

interface Connection {
  /** Sends a request over one connection, which stays with one worker. */
  send(method: string, path: string, body?: object): Promise<string>
  close(): void
}

function connectionTo(url: string, token: string): Connection {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  return {
    async send(method, path, body) {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
      const sent = httpRequest(`${url}${path}`, { method, agent, headers })
      sent.end(body === undefined ? undefined : JSON.stringify(body))
      const [response] = await once(sent, 'response')
      let text = ''
      for await (const chunk of response) text += chunk
      return text
    },
    close: () => agent.destroy(),
  }
}

test('a write through one worker is seen by the reads of its caller through the others', {
  timeout: 90_000,
}, async () => {
  const toml =
    'replica_max_lag_ms = 60000\nrate_limit_rate = 0\n' +
    `[[gateway.replicas]]\nurl = "postgres://app:${PASSWORD}@127.0.0.1:${servers.standby.port}/postgres"`
  const gateway = await startWithWorkers(['--workers', '2'], {
    DATABASE_URL: servers.primary.url,
    SVC_CONFIG: await configFile(toml),
  })
  const tokenOf = (userId: string) => mintToken(SECRET, { tenantId: 't', userId, expiresInSeconds: 600 }, Date.now())
  const [ana, ben] = [await tokenOf('ana'), await tokenOf('ben')]
  const connections: Connection[] = []
  // One after the other, so that the connections go to the workers in turn.
  for (let count = 0; count < 4; count++) {
    const connection = connectionTo(gateway.url, ana)
    await connection.send('GET', '/health')
    connections.push(connection)
  }
  const other = connectionTo(gateway.url, ben)
  const readsAll = () => Promise.all(connections.map(each => each.send('GET', '/api/rpc/place')))
  await expect.poll(readsAll, { timeout: 30_000 }).toEqual(connections.map(() => expect.stringContaining('true')))

  await execute(servers.standby.adminUrl, 'select pg_wal_replay_pause()')
  await expect
    .poll(async () => {
      await execute(servers.primary.adminUrl, 'select pg_switch_wal()')
      return (await execute(servers.standby.adminUrl, 'select pg_get_wal_replay_pause_state() as state'))[0]?.state
    })
    .toBe('paused')
  for (let value = 1; value <= 8; value++) {
    await connections[value % 4]?.send('PATCH', '/api/counters/1', { value })
    const seen = await Promise.all(connections.map(each => each.send('GET', '/api/counters/1')))
    expect(seen).toEqual(connections.map(() => expect.stringContaining(`"value":${value}`)))
  }
  // The replica is still used for others.
  expect(await other.send('GET', '/api/rpc/place')).toContain('true')
  for (const connection of [...connections, other]) connection.close()
})
