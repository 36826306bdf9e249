/**
 * `prepared_statements = false` (docs/guides/database-connections.md#pooler) with PgBouncer in transaction
 * mode, where every transaction can run in another session and every session serves every tenant. Two
 * sessions, five tenants, concurrent reads, writes, streams and failures.
 */
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { freePort } from '../../src/demo/free-port.ts'
import { runAs, spawnAs } from '../../src/demo/run-as.ts'
import { databaseFixture, folderFixture } from '../support/fixtures.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { FEED_ROLE, installed } from '../support/install.ts'
import { execute } from '../support/postgres.ts'
import { findProgram, missingPrograms, type Running, startProgram } from '../support/programs.ts'
import { PASSWORD } from '../support/server.ts'
import { openSocket } from '../support/socket.ts'

const TENANTS = ['t1', 't2', 't3', 't4', 't5']
const ROWS_EACH = 20
const REQUESTS = 600
const missing = missingPrograms({ pgbouncer: 'pgbouncer' })

// Each test starts programs, and the machine may be busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

let pooler: Running | undefined
let gateway: TestGateway | undefined
let poolerUrl: string
const database = databaseFixture(`
  create table notes (id int generated always as identity primary key, tenant_id text not null, body text not null);
  insert into notes (tenant_id, body)
    select 't' || n % ${TENANTS.length} + 1, 'note ' || n from generate_series(1, ${TENANTS.length * ROWS_EACH}) n;
  alter table notes enable row level security;
  alter table notes force row level security;
  create policy own on notes using (tenant_id = (select current_setting('app.current_tenant_id', true)));
  create function who() returns text language sql stable as $$ select current_setting('app.current_tenant_id', true) $$;
  create function stay() returns text language sql as
    $$ select set_config('app.current_tenant_id', 't1', false) || set_config('work_mem', '1MB', false) $$;
  grant select, insert, update, delete on notes to app
`)
const folder = folderFixture()
beforeAll(async () => {
  const program = findProgram('pgbouncer')
  if (program === null) return
  const port = await freePort()
  await writeFile(join(folder, 'users.txt'), `"app" "${PASSWORD}"\n"${FEED_ROLE}" "${PASSWORD}"\n`)
  await writeFile(
    join(folder, 'pgbouncer.ini'),
    `[databases]
${database.database} = host=127.0.0.1 port=${database.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${join(folder, 'users.txt')}
pool_mode = transaction
default_pool_size = 2
ignore_startup_parameters = options
`,
  )
  // Like PostgreSQL, it does not run as root.
  await chmod(folder, 0o755)
  pooler = await startProgram(program, {
    args: [join(folder, 'pgbouncer.ini')],
    ...spawnAs(runAs()),
    ready: /process up/,
  })
  poolerUrl = database.url.replace(`:${database.port}/`, `:${port}/`)
  gateway = await testGateway(poolerUrl, {
    toml: 'prepared_statements = false\nmax_connections = 4\nacquire_timeout_ms = 20000',
  })
})

afterAll(async () => {
  await gateway?.close()
  await pooler?.close()
})

interface Row {
  readonly tenant_id: string
  readonly body: string
}

/** Responses to a tenant must contain only its own rows, whatever the others do at the same time. */
async function ask(of: TestGateway, number: number): Promise<string> {
  const tenantId = TENANTS[number % TENANTS.length] as string
  const as = { tenantId }
  const isTheirs = (rows: readonly Row[]): boolean => rows.every(row => row.tenant_id === tenantId)
  switch (number % 8) {
    case 0: {
      const { status, json } = await of.get('/api/notes?limit=500', { as })
      return status === 200 && json.data.length >= ROWS_EACH && isTheirs(json.data) ? 'as expected' : `list: ${status}`
    }
    case 1: {
      const { status, text } = await of.get('/api/notes?stream=true', { as })
      const rows = text
        .trim()
        .split('\n')
        .map(line => JSON.parse(line) as Row)
      return status === 200 && rows.length >= ROWS_EACH && isTheirs(rows) ? 'as expected' : `stream: ${status}`
    }
    case 2: {
      const body = JSON.stringify({ tenant_id: tenantId, body: `by ${number}` })
      const { status } = await of.get('/api/notes', { as, method: 'POST', body, headers: JSON_BODY })
      return status === 201 ? 'as expected' : `create: ${status}`
    }
    case 3: {
      const other = TENANTS[(number + 1) % TENANTS.length] as string
      const body = JSON.stringify({ tenant_id: other, body: 'smuggled' })
      const { status } = await of.get('/api/notes', { as, method: 'POST', body, headers: JSON_BODY })
      return status === 403 ? 'as expected' : `create for another: ${status}`
    }
    case 4: {
      const { status, json } = await of.get('/api/rpc/who', { as, method: 'POST' })
      return status === 200 && json.data === tenantId ? 'as expected' : `rpc: ${status} ${JSON.stringify(json)}`
    }
    case 5: {
      const { status } = await of.get('/api/rpc/stay', { as, method: 'POST' })
      return status === 200 ? 'as expected' : `rpc that leaves settings: ${status}`
    }
    case 6: {
      const { status } = await of.get('/api/notes?id=x', { as })
      return status === 400 ? 'as expected' : `bad value: ${status}`
    }
    default: {
      const { status, json } = await of.get('/api/notes/aggregate?fn=count', { as })
      return status === 200 && json.data.count >= ROWS_EACH ? 'as expected' : `count: ${status}`
    }
  }
}

const JSON_BODY = { 'Content-Type': 'application/json' }
const WORKERS = 32

describe('PgBouncer in transaction mode', () => {
  test('tenants that share two sessions see only their own rows, and no errors', async context => {
    if (missing !== null || gateway === undefined) return context.skip(missing ?? 'no gateway')
    const of = gateway
    const outcomes = new Map<string, number>()
    let next = 0
    const work = async (): Promise<void> => {
      for (let number = next++; number < REQUESTS; number = next++) {
        const outcome = await ask(of, number)
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
      }
    }
    await Promise.all(Array.from({ length: WORKERS }, work))
    expect(Object.fromEntries(outcomes)).toEqual({ 'as expected': REQUESTS })
    // Every cancel request reached the right session.
    const rows = await execute(database.adminUrl, "select count(*)::int as n from notes where body = 'smuggled'")
    expect(rows).toEqual([{ n: 0 }])
    const written = await execute(database.adminUrl, "select count(*)::int as n from notes where body like 'by %'")
    expect(written).toEqual([{ n: REQUESTS / 8 }])
  })

  test('a missing key is reported, and no session is opened', async context => {
    if (missing !== null) return context.skip(missing)
    const refused = testGateway(poolerUrl)
    await expect(refused).rejects.toMatchObject({ name: 'ConnectError', permanent: true })
    await expect(refused).rejects.toThrow(
      /unsupported startup parameter.*; a pooler is in between: set prepared_statements = false/,
    )
  })

  test('the pooler’s sessions keep no settings of a request', async context => {
    if (missing !== null || gateway === undefined) return context.skip(missing ?? 'no gateway')
    const answer = await gateway.get('/api/rpc/who', { as: { userId: 'without a tenant' }, method: 'POST' })
    expect(answer.json.data).toBe('')
    const sessions = await execute(
      database.adminUrl,
      `select count(*)::int as n from pg_stat_activity where datname = '${database.database}' and usename = 'app'`,
    )
    // The five tenants did share them.
    expect(sessions[0]?.n).toBeLessThanOrEqual(2)
  })

  test('captured tables can be subscribed to, although LISTEN does not work', async context => {
    if (missing !== null || gateway === undefined) return context.skip(missing ?? 'no gateway')
    await installed(database)
    await gateway.gateway.reload()
    const socket = await openSocket(gateway.url, { token: await gateway.token({ tenantId: 't1' }) })
    socket.say({ type: 'subscribe', channel: 'svc_table_notes' })
    await socket.nextOf('subscribed')
    const insert = () =>
      execute(database.adminUrl, `insert into notes (tenant_id, body) values ('t2', 'theirs'), ('t1', 'mine')`)
    await insert()
    let message = await socket.next()
    if (message.type === 'resync') {
      // The gateway reads the schema again after an installation; changes after the resync are delivered.
      expect(message.reason).toBe('schema changed')
      await insert()
      message = await socket.next()
    }
    expect(message).toMatchObject({ type: 'notification', operation: 'INSERT', new: { body: 'mine' } })
    await socket.close()
  })
})
