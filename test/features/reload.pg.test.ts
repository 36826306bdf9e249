/** docs/guides/your-own-database.md#when-the-schema-changes: the schema is read again on notification, and swapped whole; no plan made before is used after. */
import { expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { execute } from '../support/postgres.ts'

const database = databaseFixture(
  `create table notes (id int primary key, body text); insert into notes values (1, 'one'); grant select on notes to app`,
)
const gateway = gatewayFixture(database, { toml: 'schema_poll_secs = 3600' })

async function until(path: string, status: number): Promise<void> {
  for (;;) if ((await gateway.get(path)).status === status) return
}

test('NOTIFY svc_schema brings a new table', async () => {
  await execute(
    database.adminUrl,
    `create table more (id int primary key); grant select on more to app; notify svc_schema`,
  )
  await until('/api/more', 200)
})

test('reload (SIGHUP) brings a new column into answers, and takes a dropped one away', async () => {
  expect((await gateway.get('/api/notes/1')).text).toBe('{"data":{"id":1,"body":"one"}}')
  await execute(database.adminUrl, `alter table notes add column at date default '2026-01-01'`)
  await gateway.gateway.reload()
  expect((await gateway.get('/api/notes/1')).text).toBe('{"data":{"id":1,"body":"one","at":"2026-01-01"}}')
  await execute(database.adminUrl, `alter table notes drop column body, alter column at type text`)
  await gateway.gateway.reload()
  expect((await gateway.get('/api/notes/1')).text).toBe('{"data":{"id":1,"at":"2026-01-01"}}')
  expect((await gateway.get('/api/notes?body=one')).status).toBe(400)
})

test('a change that nobody told about is an ordinary error until then, and the reload comes by itself', async () => {
  await execute(database.adminUrl, `alter table notes rename column at to made`)
  const reply = await gateway.get('/api/notes/1')
  expect(reply.status).toBe(400)
  expect(reply.json.error).toMatchObject({ code: 'QUERY_ERROR', details: { sqlstate: '42703' } })
  await until('/api/notes/1', 200)
})
