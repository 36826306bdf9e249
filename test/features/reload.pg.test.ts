/**
 * docs/guides/your-own-database.md#when-the-schema-changes: after a notification the schema is read again and
 * replaced as a whole. Plans made before are not used afterwards.
 */
import { expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { execute } from '../support/postgres.ts'

const database = databaseFixture(
  `create table notes (id int primary key, body text); insert into notes values (1, 'one');
    grant select on notes to app`,
)
const gateway = gatewayFixture(database, { toml: 'schema_poll_secs = 3600' })

async function until(path: string, status: number): Promise<void> {
  for (;;) if ((await gateway.get(path)).status === status) return
}

test('NOTIFY svc_schema makes a new table available', async () => {
  await execute(
    database.adminUrl,
    `create table more (id int primary key); grant select on more to app; notify svc_schema`,
  )
  await until('/api/more', 200)
})

test('a reload (SIGHUP) adds a new column to responses, and removes a dropped one', async () => {
  expect((await gateway.get('/api/notes/1')).text).toBe('{"data":{"id":1,"body":"one"}}')
  await execute(database.adminUrl, `alter table notes add column at date default '2026-01-01'`)
  await gateway.gateway.reload()
  expect((await gateway.get('/api/notes/1')).text).toBe('{"data":{"id":1,"body":"one","at":"2026-01-01"}}')
  await execute(database.adminUrl, `alter table notes drop column body, alter column at type text`)
  await gateway.gateway.reload()
  expect((await gateway.get('/api/notes/1')).text).toBe('{"data":{"id":1,"at":"2026-01-01"}}')
  expect((await gateway.get('/api/notes?body=one')).status).toBe(400)
})

test('an unannounced change is an ordinary error at first, and triggers the reload', async () => {
  await execute(database.adminUrl, `alter table notes rename column at to made`)
  const reply = await gateway.get('/api/notes/1')
  expect(reply.status).toBe(400)
  expect(reply.json.error).toMatchObject({ code: 'QUERY_ERROR', details: { sqlstate: '42703' } })
  await until('/api/notes/1', 200)
})
