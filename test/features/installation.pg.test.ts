/**
 * docs/guides/installation.md: a gateway detects the objects of `svc install` at start-up and while it runs.
 */
import { readFileSync } from 'node:fs'
import { expect, test, vi } from 'vitest'
import type { Event } from '../../src/events.ts'
import { installScript } from '../../src/install/script.ts'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { testGateway } from '../support/gateway.ts'
import { feedUrl, installed } from '../support/install.ts'
import { execute } from '../support/postgres.ts'
import { PASSWORD, uniqueName, urlOf } from '../support/server.ts'

const database = databaseFixture(
  'create table notes (id int primary key, body text); create table logs (id int primary key); ' +
    'grant all on notes, logs to app',
)
const events: Event[] = []
const waiting = new Set<() => void>()

const gateway = gatewayFixture(database, () => ({
  emit(event) {
    events.push(event)
    for (const look of waiting) look()
  },
}))

const internal = async () => (await gateway.get('/health/internal', { as: null })).json

/** Resolves when `/health/internal` matches. It is requested again after every event. */
function until(found: (installation: Record<string, unknown>) => boolean): Promise<unknown> {
  return new Promise(resolve => {
    const look = async () => {
      const { installation } = await internal()
      if (!found(installation)) return
      waiting.delete(look)
      resolve(installation)
    }
    waiting.add(look)
    void look()
  })
}

test('without an installation /health/internal says so', async () => {
  expect((await internal()).installation).toEqual({ installed: false })
})

test('a running gateway detects it, and its writes are in the change log', async () => {
  await installed(database)
  await gateway.gateway.reload()
  expect((await internal()).installation).toEqual({ installed: true, captured_tables: 2, broken_tables: [] })
  const answer = await gateway.get('/api/notes', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: '{"id": 1, "body": "x"}',
  })
  const txid = answer.headers.get('x-svc-txid')
  expect(await execute(feedUrl(database), "select xid::text, key from svc.change where operation <> 'B'")).toEqual([
    { xid: txid, key: { id: 1 } },
  ])
})

test('a schema change is noticed, and new tables are captured', async () => {
  await execute(database.adminUrl, 'create table later (id int primary key); grant all on later to app')
  await until(installation => installation.captured_tables === 3)
})

test('tables that cannot be captured cause one warning', async () => {
  await execute(
    database.adminUrl,
    'revoke execute on function svc.repair() from app_feed; ' +
      'drop trigger svc_capture_delete on notes; ' +
      'drop trigger svc_capture_delete on logs',
  )
  await gateway.gateway.reload()
  await gateway.gateway.reload()
  expect((await internal()).installation).toMatchObject({
    captured_tables: 1,
    broken_tables: ['public.logs', 'public.notes'],
  })
  expect(events.filter(event => event.kind === 'warning' && /not captured/.test(event.message))).toEqual([
    {
      kind: 'warning',
      message: 'Changes of public.logs, public.notes are not captured: their capture triggers are missing.',
      fix: expect.stringContaining('SELECT svc.repair()'),
    },
  ])
})

test('if its feed role cannot log in, a gateway warns and works as without an installation', async () => {
  const role = uniqueName('gateway')
  await execute(database.adminUrl, `create role ${role} login password '${PASSWORD}'; grant select on notes to ${role}`)
  const script = installScript({ role, selected: [{ schema: 'public', table: 'notes' }], superuser: true })
  await execute(database.adminUrl, ['BEGIN', ...script, 'COMMIT'].join(';\n'))
  await execute(database.adminUrl, `alter role ${role}_feed password 'another'`)
  const warnings: string[] = []
  const other = await testGateway(urlOf(database.port, role, database.database), {
    emit: event => event.kind === 'warning' && warnings.push(event.message),
  })
  const installation = async () => (await other.get('/health/internal', { as: null })).json.installation
  expect(await installation()).toEqual({ installed: false })
  expect(warnings).toContainEqual(
    expect.stringMatching(
      `^The installation in schema svc is unusable: role "${role}_feed", which reads it, cannot connect: `,
    ),
  )
  await execute(database.adminUrl, `alter role ${role}_feed password '${PASSWORD}'`)
  await other.gateway.reload()
  await vi.waitFor(async () => expect(await installation()).toMatchObject({ installed: true, captured_tables: 1 }), {
    timeout: 10_000,
  })
  await other.close()
  await execute(database.adminUrl, `drop owned by ${role}, ${role}_feed; drop role ${role}, ${role}_feed`)
})

test('the guide shows the objects that exist', async () => {
  const guide = readFileSync(new URL('../../docs/guides/installation.md', import.meta.url), 'utf8')
  const tables = await execute(
    database.adminUrl,
    `select relname::text as name from pg_class where relnamespace = 'svc'::regnamespace and relkind in ('r',
      'p') and not relispartition`,
  )
  expect(tables).toHaveLength(12)
  for (const { name } of tables) expect(guide).toContain(`\`svc.${name}\``)
  const [, shown = ''] = /```json\n(\{"installed".*\})\n```/.exec(guide) ?? []
  expect(Object.keys(JSON.parse(shown))).toEqual(['installed', 'captured_tables', 'broken_tables'])
})
