/** docs/guides/deploying.md#start-reload-stop: the process, started by a shell and ended by signals. */
import { afterEach, expect, test } from 'vitest'
import { databaseFixture } from '../../test/support/fixtures.ts'
import { configFile } from '../../test/support/gateway.ts'
import { execute } from '../../test/support/postgres.ts'
import { INVOKER } from '../../test/support/postgres-version.ts'
import { killSvc, type Svc, startSvc } from '../../test/support/process.ts'
import { mintToken } from '../identity/mint.ts'

const SECRET = 'a secret of 32 bytes, or of more'

const database = databaseFixture(`
  create table notes (id int primary key, body text); insert into notes values (1, 'hello');
  create view slow ${INVOKER} as select pg_sleep(60)::text as done;
  grant select on notes, slow to public
`)

afterEach(killSvc)

async function serve(): Promise<Svc & { readonly url: string }> {
  const gateway = startSvc(['serve'], {
    ...{ DATABASE_URL: database.url, JWT_SECRET: SECRET, SVC_BIND: '127.0.0.1:0' },
    SVC_CONFIG: await configFile('exposed_views = ["slow"]'),
  })
  return { ...gateway, url: await gateway.says(/"url":"(http:\/\/127\.0\.0\.1:\d+)"/) }
}

test('--bind and --port override the configured address', async () => {
  const environment = { DATABASE_URL: database.url, JWT_SECRET: SECRET, SVC_BIND: '127.0.0.1:1' }
  const bound = startSvc(['serve', '--bind', '127.0.0.1:0'], environment)
  const url = await bound.says(/"url":"(http:\/\/127\.0\.0\.1:\d+)"/)
  expect((await get(`${url}/health`)).status).toBe(200)
  bound.child.kill('SIGTERM')
  expect(await bound.exited).toEqual([0, null])
  // A port that was free a moment ago, on the host of the environment.
  const { port } = new URL(url)
  const moved = startSvc(['serve', '--port', port], environment)
  expect(await moved.says(/"url":"(http:\/\/127\.0\.0\.1:\d+)"/)).toBe(url)
})

async function get(url: string): Promise<Response> {
  const token = await mintToken(SECRET, { tenantId: 't', expiresInSeconds: 60 }, Date.now())
  return fetch(url, { headers: { authorization: `Bearer ${token}` } })
}

test.each(['SIGTERM', 'SIGINT'] as const)(
  'serves, reads the schema again on SIGHUP, and %s ends it with 0',
  async signal => {
    const gateway = await serve()
    expect(await (await get(`${gateway.url}/api/notes/1`)).json()).toEqual({ data: { id: 1, body: 'hello' } })
    gateway.child.kill('SIGHUP')
    expect((await get(`${gateway.url}/api/notes/1`)).status).toBe(200)
    gateway.child.kill(signal)
    expect(await gateway.exited).toEqual([0, null])
    expect(gateway.said.error).toBe('')
  },
)

test('a second signal ends it immediately, even if a request is in progress', async () => {
  const gateway = await serve()
  const answer = get(`${gateway.url}/api/slow`).then(
    response => response.status,
    () => 'cut off',
  )
  await running(/pg_sleep|slow/)
  gateway.child.kill('SIGTERM')
  await gateway.says(/"msg":"(closing)"/)
  gateway.child.kill('SIGTERM')
  expect(await gateway.exited).toEqual([143, null])
  expect(await answer).toBe('cut off')
})

/** Waits until the database runs a statement of the gateway. */
async function running(text: RegExp): Promise<void> {
  const sql =
    `select query from pg_stat_activity where datname = '${database.database}' and state = 'active' ` +
    'and pid <> pg_backend_pid()'
  for (;;) {
    const rows = await execute(database.adminUrl, sql)
    if (rows.some(({ query }) => text.test(String(query)))) return
  }
}

test('development mode does not start on an address other than loopback', async () => {
  const gateway = startSvc(['serve'], {
    DATABASE_URL: database.url,
    JWT_SECRET: SECRET,
    SVC_DEV_MODE: '1',
    SVC_BIND: '0.0.0.0:0',
  })
  expect(await gateway.exited).toEqual([1, null])
  expect(gateway.said.error).toContain('error: SVC_DEV_MODE is on and the bind address is 0.0.0.0')
})

test('an address in use is reported without a stack trace', async () => {
  const { url } = await serve()
  const second = startSvc(['serve'], {
    DATABASE_URL: database.url,
    JWT_SECRET: SECRET,
    SVC_BIND: url.replace('http://', ''),
  })
  expect(await second.exited).toEqual([1, null])
  expect(second.said.error).toBe(
    `${url.replace('http://', '')} is already in use: stop the program that listens there, ` +
      'or configure another address: bind in svc.toml, SVC_BIND for svc serve, ' +
      `SVC_MCP_BIND for svc mcp\n`,
  )
})
