/**
 * docs/guides/allow-list.md#check-against-the-schema: at start-up, by `svc check`, on SIGHUP, and when the
 * schema has changed.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Event } from '../../src/events.ts'
import { databaseFixture, folderFixture } from '../support/fixtures.ts'
import { SECRET, testGateway } from '../support/gateway.ts'
import { execute } from '../support/postgres.ts'
import { startSvc } from '../support/process.ts'

const FITTING = `# what the application asks
GET /api/orders?select&status.eq&sort=-placed_at
GET /api/orders?select=id,state:status&or=(status.eq,and(id.gt,placed_at.lt))
GET /api/order_items?expand=order
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
get nothing fields id
GET /api/orders?or=(id.gt,and(state.eq,id.lt))
GET /api/order_items?expand=ordre`

const MISSING = [
  ':10: there is no table "ordres"; did you mean "orders"?',
  ':11: table "orders" has no column "state"',
  ':12: table "orders" has no column "missing"',
  ':13: "customers" is not a child of "orders"',
  ':14: there is no function "totl"; did you mean "total"?',
  ':15: there is no table "nothing"',
  ':16: table "orders" has no column "state"',
  ':17: "order_items" has no relation "ordre"; did you mean "order"?',
]

const database = databaseFixture(`
  create table orders (id int primary key, status text, placed_at date);
  create table order_items (order_id int references orders, line int, primary key (order_id, line));
  create function total() returns int stable language sql return 1;
  grant select on all tables in schema public to app
`)
const folder = folderFixture()
const file = join(folder, 'allow.txt')

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

test('lines that fit the schema cause no warning', async () => {
  expect(await warningsOf(FITTING)).toEqual([])
})

test('lines that do not fit cause one warning with their numbers', async () => {
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

test('svc check reports the same lines', async () => {
  await writeFile(file, MISFITTING)
  const [finding, ...others] = await check()
  expect(others).toEqual([])
  expect(finding?.level).toBe('warning')
  for (const missing of MISSING) expect(finding?.message).toContain(missing)
})

test('a malformed line is reported once, and the other lines are still checked', async () => {
  await writeFile(file, `get orders fields (\nget nothing`)
  const levels = (await check()).map(({ level, message }) => [level, message.includes(':2:')])
  expect(levels).toEqual([
    ['error', false],
    ['warning', true],
  ])
})

test('the list of functions is checked as well', async () => {
  const functions = join(folder, 'functions.txt')
  await writeFile(functions, 'total\n# gone since\ntotl')
  const events: Event[] = []
  const gateway = await testGateway(database.url, {
    toml: `rpc_allowlist_path = ${JSON.stringify(functions)}`,
    emit: event => events.push(event),
  })
  await gateway.close()
  expect(events).toContainEqual({
    kind: 'warning',
    message:
      `Lines of rpc_allowlist_path do not fit the schema: ${functions}:3: ` +
      'there is no function "totl"; did you mean "total"?.',
    fix: 'Correct the lines or remove them: no call can match them.',
  })
  const config = join(folder, 'functions.toml')
  await writeFile(config, `[gateway]\nrpc_allowlist_path = ${JSON.stringify(functions)}`)
  const svc = startSvc(['check', '--json', '--config', config], { DATABASE_URL: database.url, JWT_SECRET: SECRET })
  await svc.exited
  const { findings } = JSON.parse(svc.said.out) as { findings: { level: string; message: string }[] }
  expect(findings.filter(({ message }) => message.includes(functions))).toEqual([
    expect.objectContaining({
      level: 'warning',
      message: expect.stringContaining(`${functions}:3: there is no function`),
    }),
  ])
})

test('SIGHUP and a schema change check the lists in force again', async () => {
  await writeFile(file, FITTING)
  const events: Event[] = []
  let heard = () => {}
  const gateway = await testGateway(database.url, {
    toml: `allow_list_path = ${JSON.stringify(file)}\nschema_poll_secs = 3600`,
    emit(event) {
      events.push(event)
      heard()
    },
  })
  const warnings = () =>
    events.flatMap(event => (event.kind === 'warning' && event.message.includes(file) ? [event.message] : []))
  const until = async (isSo: () => boolean) => {
    while (!isSo()) {
      await new Promise<void>(resolve => {
        heard = resolve
      })
    }
  }
  const loads = () => events.filter(event => event.kind === 'catalog' && event.detail.changed === true).length
  const warned = async (count: number) => {
    await until(() => warnings().length >= count)
    return warnings().at(-1)
  }
  try {
    expect(warnings()).toEqual([])
    await writeFile(file, `${FITTING}\nget nothing`)
    await gateway.gateway.reload()
    expect(warnings()).toEqual([expect.stringContaining(':10: there is no table "nothing"')])
    // Each reload repeats the warning while the problem exists.
    await gateway.gateway.reload()
    expect(warnings()).toHaveLength(2)
    // The new content of the file is not in force yet.
    await writeFile(file, 'get nowhere')
    await execute(database.adminUrl, 'alter table order_items rename column line to place; notify svc_schema')
    expect(await warned(3)).toContain(':5: table "order_items" has no column "line"')
    expect(warnings().at(-1)).toContain(':10: there is no table "nothing"')
    const before = loads()
    // A schema change that does not affect the lines does not repeat the warning.
    await execute(
      database.adminUrl,
      'create table unrelated (id int primary key); grant select on unrelated to app; notify svc_schema',
    )
    await until(() => loads() > before)
    await execute(database.adminUrl, 'alter table order_items rename column place to line; notify svc_schema')
    expect(await warned(4)).not.toContain('order_items')
    expect(warnings()).toHaveLength(4)
  } finally {
    await gateway.close()
  }
})
