/**
 * docs/reference/realtime.md#delivered-changes. Whatever is written through any gateway, and whatever fails,
 * in the end every subscriber's copy equals the result of its own SELECT, and no message contained a row that
 * its SELECT could not have returned. A printed seed reproduces the random choices.
 */
import { expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import type { TestGateway } from '../support/gateway.ts'
import { execute } from '../support/postgres.ts'
import type { Message } from '../support/socket.ts'
import { FILTERS, type Filter, meets, randomOf, THINGS, WORDS } from './model.ts'
import { assertCopies, openReplica, type Replica } from './replica.ts'

const SEED = Number(process.env.SVC_SEED ?? Math.floor(Math.random() * 2 ** 31))
const TENANTS = ['red', 'green', 'blue'] as const
const ROUNDS = 150
/** Rounds between two comparisons of all copies, so that a later resync does not hide a lost event. */
const LOOK_EVERY = 10
const ROWS = 60

const database = databaseFixture(`
  ${THINGS}
  create policy own on things using (tenant = current_setting('app.current_tenant_id', true)
    or current_setting('app.current_role', true) = 'mover');
  grant select, insert, update, delete on things to app;
`)
const gateways = [gatewayFixture(database), gatewayFixture(database)]

test(`every copy equals the result of a SELECT (SVC_SEED=${SEED})`, { timeout: 120_000 }, async () => {
  const random = randomOf(SEED)
  const one = <T>(list: readonly T[]): T => list[random(list.length)] as T
  /** The tenants that a row has ever belonged to. */
  const owners = new Map<number, Set<string>>()
  const leaks: string[] = []
  const counts = new Map<string, number>()

  function watch(tenantId: string, filter: Filter) {
    return (message: Message) => {
      counts.set(message.type, (counts.get(message.type) ?? 0) + 1)
      if (message.type !== 'notification') return
      counts.set(message.operation, (counts.get(message.operation) ?? 0) + 1)
      const isOwn = message.new === null ? owners.get(message.key.id)?.has(tenantId) : message.new.tenant === tenantId
      if (isOwn !== true) leaks.push(`${tenantId}: ${JSON.stringify(message)}`)
      if (message.new !== null && !meets(message.new, filter)) leaks.push(`${filter}: ${JSON.stringify(message)}`)
    }
  }

  async function openOne(): Promise<Replica> {
    const [tenantId, filter] = [one(TENANTS), one(FILTERS)]
    const gateway = gateways[random(10) < 8 ? 0 : 1] as TestGateway
    return openReplica({ gateway, tenantId, filter, table: 'things', onMessage: watch(tenantId, filter) })
  }

  const replicas: Replica[] = []
  for (let n = 0; n < 12; n++) replicas.push(await openOne())

  async function write(): Promise<void> {
    const tenant = one(TENANTS)
    const gateway = gateways[random(10) < 7 ? 0 : 1] as TestGateway
    const row = (of: string) => {
      const id = random(ROWS)
      owners.set(id, (owners.get(id) ?? new Set()).add(of))
      return { id, tenant: of, word: one(WORDS), n: random(100) }
    }
    const send = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}, role = '') =>
      gateway.get(path, {
        ...{ method, as: { tenantId: tenant, role }, headers: { 'Content-Type': 'application/json', ...headers } },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
    switch (random(12)) {
      case 0:
      case 1:
        await send('POST', '/api/things', row(tenant))
        break
      case 2:
        await send('POST', '/api/things', [row(tenant), row(tenant), row(tenant)])
        break
      case 3:
        await send('POST', '/api/things', [row(tenant), row(tenant)], { 'X-Upsert': 'true' })
        break
      case 4:
      case 5:
        await send('PATCH', `/api/things/${random(ROWS)}`, { word: one(WORDS), n: random(100) })
        break
      case 6:
        await send('PATCH', `/api/things?n=gt.${random(100)}`, { word: one(WORDS) }, { Prefer: 'return=minimal' })
        break
      case 7:
        await send('DELETE', `/api/things/${random(ROWS)}`)
        break
      case 8:
        await send('DELETE', `/api/things?n=lt.${random(12)}`)
        break
      case 9: {
        // From any tenant to any tenant.
        const id = random(ROWS)
        const to = one(TENANTS)
        owners.set(id, (owners.get(id) ?? new Set()).add(to))
        await send('PATCH', `/api/things/${id}`, { tenant: to }, {}, 'mover')
        break
      }
      case 10:
        await send('POST', '/api/_query', {
          query: 'set things values n = n + 1 where n < :n',
          parameters: { n: random(100) },
        })
        break
      default:
        // Its last row causes a rollback of the whole.
        await send('POST', '/api/things', [row(tenant), { ...row(tenant), n: 5_000 }])
    }
  }

  for (let round = 0; round < ROUNDS; round++) {
    if (round % LOOK_EVERY === 0) await assertCopies(replicas)
    await Promise.all(Array.from({ length: 1 + random(4) }, write))
    const event = random(40)
    if (event === 0) await execute(database.adminUrl, KILL_LISTENERS)
    else if (event === 1) await one(replicas).resume()
    else if (event === 2) {
      const index = random(replicas.length)
      await replicas[index]?.close()
      replicas[index] = await openOne()
    } else if (event === 3) {
      await execute(database.adminUrl, `begin; delete from things; rollback`)
    }
  }

  await assertCopies(replicas)
  expect(leaks).toEqual([])
  // The test did exercise changes.
  for (const kind of ['INSERT', 'UPDATE', 'DELETE', 'resync'])
    expect([kind, counts.get(kind) ?? 0]).not.toEqual([kind, 0])
  for (const replica of replicas) await replica.close()
})

/** The sessions that hold the locks which announce subscribers to writers. */
const KILL_LISTENERS = `select pg_terminate_backend(pid) from (select distinct pid from pg_locks
  where locktype = 'advisory' and classid = ${0x73766372}
  and mode = 'ShareLock' and database = (select oid from pg_database where datname = current_database())) as listening`
