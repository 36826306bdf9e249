/** docs/guides/allow-list.md#check-against-the-schema: lines of the allow-list are checked against the schema, at the start and by `svc check`. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Event } from '../../src/events.ts'
import { SECRET, testGateway } from '../support/gateway.ts'
import { execute, type TestDatabase, testDatabase } from '../support/postgres.ts'
import { startSvc } from '../support/process.ts'

const FITTING = `# what the application asks
GET /api/orders?select&status.eq&sort=-placed_at
GET /api/orders?select=id,state:status&or=(status.eq,id.gt)
GET /api/orders/{id}/order_items?line.gt
GET /api/orders/{id}?expand=nested:order_items
POST /api/rpc/total
get orders fields id where status = ? limit ?
with o as (get orders) get o`

const MISFITTING = `${FITTING}
GET /api/ordres?select
GET /api/orders?state.eq
GET /api/orders?select=id,missing
GET /api/orders/{id}/customers
POST /api/rpc/totl
get nothing fields id`

const MISSING = [
  ':9: there is no table "ordres"; did you mean "orders"?',
  ':10: table "orders" has no column "state"',
  ':11: table "orders" has no column "missing"',
  ':12: "customers" is not a child of "orders"',
  ':13: there is no function "totl"; did you mean "total"?',
  ':14: there is no table "nothing"',
]

let database: TestDatabase
let folder: string
let file: string

beforeAll(async () => {
  database = await testDatabase()
  await execute(
    database.adminUrl,
    `create table orders (id int primary key, status text, placed_at date);
     create table order_items (order_id int references orders, line int, primary key (order_id, line));
     create function total() returns int stable language sql return 1;
     grant select on all tables in schema public to app`,
  )
  folder = await mkdtemp(join(tmpdir(), 'svc-list-'))
  file = join(folder, 'allow.txt')
})
afterAll(async () => {
  await rm(folder, { recursive: true })
  await database.drop()
})

async function warningsOf(list: string): Promise<readonly string[]> {
  await writeFile(file, list)
  const events: Event[] = []
  const gateway = await testGateway(database.url, {
    toml: `allow_list_path = ${JSON.stringify(file)}`,
    emit: event => events.push(event),
  })
  await gateway.close()
  return events.flatMap(event =>
    event.kind === 'warning' && event.message.includes('allow_list_path') ? [event.message] : [],
  )
}

test('lines that fit the schema are no warning', async () => {
  expect(await warningsOf(FITTING)).toEqual([])
})

test('lines that do not are one, with their numbers', async () => {
  const [warning, ...others] = await warningsOf(MISFITTING)
  expect(others).toEqual([])
  for (const missing of MISSING) expect(warning).toContain(`${file}${missing}`)
})

async function check(): Promise<readonly { readonly level: string; readonly message: string }[]> {
  const config = join(folder, 'svc.toml')
  await writeFile(config, `[gateway]\nallow_list_path = ${JSON.stringify(file)}`)
  const svc = startSvc(['check', '--json', '--config', config], { DATABASE_URL: database.url, JWT_SECRET: SECRET })
  await svc.exited
  const { findings } = JSON.parse(svc.said.out) as { findings: { level: string; message: string }[] }
  return findings.filter(({ message }) => message.includes(file) || message.includes('cannot be checked'))
}

test('svc check finds the same', async () => {
  await writeFile(file, MISFITTING)
  const [finding, ...others] = await check()
  expect(others).toEqual([])
  expect(finding?.level).toBe('warning')
  for (const missing of MISSING) expect(finding?.message).toContain(missing)
})

test('a line that is malformed is reported once, and others are checked all the same', async () => {
  await writeFile(file, `get orders fields (\nget nothing`)
  const levels = (await check()).map(({ level, message }) => [level, message.includes(':2:')])
  expect(levels).toEqual([
    ['error', false],
    ['warning', true],
  ])
})
