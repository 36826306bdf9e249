/**
 * A tenant with many subscriptions writes continuously. Other tenants still receive their events, and their
 * writes cost a bounded number of transactions (docs/reference/limits.md#changes-of-unknown-tenants). Tested
 * with both capture sources.
 */
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { executeOn } from '../support/execute.ts'
import { clientFixture, databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { installed } from '../support/install.ts'
import { type Message, openSocket, type TestSocket } from '../support/socket.ts'

const SOCKETS = 20
const SUBSCRIPTIONS = 100
const QUERIES_PER_SEC = 2
const RESYNC_INTERVAL_MS = 1_000

const TABLES = `create table items (id int primary key, tenant text not null, name text not null,
  team int not null default 1);
  create table opaque (id int primary key, tenant text not null, name text not null);
  create table members (id int primary key, tenant text not null, name text not null);
  create table guarded (id int primary key, tenant text not null, name text not null);
  alter table items enable row level security; alter table items force row level security;
  alter table opaque enable row level security; alter table opaque force row level security;
  alter table guarded enable row level security; alter table guarded force row level security;
  create policy own on items using (tenant = current_setting('app.current_tenant_id', true));
  create policy own on opaque using (lower(tenant) = current_setting('app.current_tenant_id', true));
  create policy own on guarded using (exists (select from members where members.tenant = guarded.tenant)
    and lower(tenant) = current_setting('app.current_tenant_id', true));
  create table circles (id int primary key, tenant text not null, name text not null);
  create table posts (id int primary key, tenant text not null, name text not null);
  alter table circles enable row level security; alter table circles force row level security;
  alter table posts enable row level security; alter table posts force row level security;
  create policy own on circles using (tenant = current_setting('app.current_tenant_id', true));
  create policy known on posts using (exists (select from circles where circles.name = posts.name));
  create policy writing on posts for insert with check (true);
  grant select, insert, update, delete on items, opaque, members, guarded, circles, posts to app`

const OPERATORS = ['eq', 'neq', 'gt', 'gte', 'lt', 'lte']
const SHAPES = OPERATORS.flatMap(team => OPERATORS.map(name => `team=${team}.1&name=${name}.m`))

/** Distinct filters: half of them have the same shape, the others different shapes. */
function filterOf(n: number): string {
  return n % 2 === 0 ? `name=eq.n${n}` : `${SHAPES[n % SHAPES.length]}&id=neq.-${n}`
}

describe.each(['gateway', 'trigger'] as const)('%s capture', capture => {
  const database = databaseFixture(TABLES)
  const admin = clientFixture(() => database.adminUrl)

  beforeAll(async () => {
    if (capture === 'trigger') await installed(database)
  })
  const gateway = gatewayFixture(database, {
    toml: [
      `tenant_max_unrouted_queries_per_sec = ${QUERIES_PER_SEC}`,
      `unrouted_resync_interval_ms = ${RESYNC_INTERVAL_MS}`,
    ].join('\n'),
  })
  let ids = 0

  async function write(tenantId: string, table: string): Promise<number> {
    const id = ++ids
    const { status } = await gateway.get(`/api/${table}`, {
      ...{ method: 'POST', as: { tenantId }, headers: { 'Content-Type': 'application/json' } },
      body: JSON.stringify({ id, tenant: tenantId, name: `n${id}` }),
    })
    expect(status).toBe(201)
    return id
  }

  async function subscribe(tenantId: string, table: string, filters: readonly string[]) {
    const socket = await openSocket(gateway.url, { token: await gateway.token({ tenantId }) })
    const told: Message[] = []
    for (const filter of filters) {
      socket.say({ type: 'subscribe', channel: `svc_table_${table}`, filter })
      expect(await socket.next()).toMatchObject({ type: 'subscribed' })
    }
    socket.onMessage = message => told.push(message)
    return { socket, told }
  }

  /** The samples of a metric by label value. */
  async function metric(name: string): Promise<Readonly<Record<string, number>>> {
    const { text } = await gateway.get('/metrics', { as: null })
    const found = [...text.matchAll(new RegExp(`^${name}\\{\\w+="(\\w+)"\\} (\\d+)$`, 'gm'))]
    return Object.fromEntries(found.map(([, label, value]) => [label ?? '', Number(value)]))
  }

  const queries = () => metric('svc_realtime_visibility_queries_total')
  const idsOf = (told: readonly Message[]) =>
    new Set(told.filter(({ type }) => type === 'notification').map(({ key }) => key.id))
  const close = (sockets: readonly { readonly socket: TestSocket }[]) =>
    Promise.all(sockets.map(({ socket }) => socket.close()))

  /** The number of transactions of any kind that the gateway has run. */
  async function transactions(): Promise<number> {
    const { text } = await gateway.get('/metrics', { as: null })
    return Number(/^svc_pool_transactions_total (\d+)$/m.exec(text)?.[1])
  }

  test('2 000 filters of a tenant that writes in a loop neither delay nor cost other tenants anything', {
    timeout: 300_000,
  }, async () => {
    const sockets = await Promise.all(
      Array.from({ length: SOCKETS }, (_, socket) =>
        subscribe(
          'a',
          'items',
          Array.from({ length: SUBSCRIPTIONS }, (_, n) => filterOf(socket * SUBSCRIPTIONS + n)),
        ),
      ),
    )
    const other = await subscribe('b', 'items', [''])
    let isOver = false
    let last = 0
    const flood = async () => {
      while (!isOver) last = await write('a', 'items')
    }
    const flooding = [flood(), flood()]
    const written = new Set<number>()
    for (let n = 0; n < 20; n++) {
      written.add(await write('b', 'items'))
      await vi.waitFor(() => expect(idsOf(other.told)).toEqual(written), { timeout: 30_000 })
    }
    isOver = true
    await Promise.all(flooding)
    expect(other.told.every(({ type }) => type === 'notification')).toBe(true)
    await vi.waitFor(() => expect(sockets.some(({ told }) => idsOf(told).has(last))).toBe(true), { timeout: 60_000 })

    const [before, ranBefore] = [await queries(), await transactions()]
    for (let n = 0; n < 20; n++) written.add(await write('b', 'items'))
    await vi.waitFor(() => expect(idsOf(other.told)).toEqual(written), { timeout: 30_000 })
    const after = await queries()
    // One event for each write of B, for its own subscription.
    expect((after.known ?? 0) - (before.known ?? 0)).toBeLessThanOrEqual(20)
    expect(after.unknown).toBe(before.unknown)
    // The writes, B's visibility queries, and the gateway's periodic work.
    expect((await transactions()) - ranBefore).toBeLessThanOrEqual(60)

    // A write by A costs one transaction, whatever the number of its filters.
    const own = await queries()
    const id = await write('a', 'items')
    await vi.waitFor(() => expect(sockets.some(({ told }) => idsOf(told).has(id))).toBe(true), { timeout: 30_000 })
    expect((await queries()).known).toBe((own.known ?? 0) + 1)
    await close([...sockets, other])
  })

  test("without a policy that maps a change to a tenant, other tenants' writes cause a bounded number of queries", {
    timeout: 120_000,
  }, async () => {
    const [a, b] = [await subscribe('a', 'opaque', ['', 'name=neq.x']), await subscribe('b', 'opaque', [''])]
    const before = await queries()
    const from = performance.now()
    const written = new Set<number>()
    while (written.size < 60 || performance.now() - from < 3_000) written.add(await write('b', 'opaque'))
    await vi.waitFor(() => expect(idsOf(b.told)).toEqual(written), { timeout: 30_000 })
    const seconds = (performance.now() - from) / 1_000
    const after = await queries()
    const caused = (after.unknown ?? 0) - (before.unknown ?? 0)
    // Two tenants, and one more query for each that can arrive at the same time.
    expect(caused).toBeLessThanOrEqual(2 * (Math.ceil(seconds * QUERIES_PER_SEC) + 1))
    expect((await metric('svc_realtime_limit_delays_total')).tenant_max_unrouted_queries_per_sec).toBeGreaterThan(0)
    expect(a.told).toEqual([])
    await close([a, b])
  })

  test('changes to a table that a policy reads cause at most one resync per interval', {
    timeout: 120_000,
  }, async () => {
    const a = await subscribe('a', 'guarded', [''])
    const from = performance.now()
    for (let n = 0; n < 60; n++) await write('b', 'members')
    const resyncs = () => a.told.filter(({ reason }) => reason === 'dependency').length
    await vi.waitFor(
      async () => {
        // The last resync follows the last write.
        expect((await metric('svc_realtime_limit_delays_total')).unrouted_resync_interval_ms).toBeGreaterThan(0)
        expect(resyncs()).toBeGreaterThan(1)
      },
      { timeout: 15_000 },
    )
    expect(resyncs()).toBeLessThanOrEqual(Math.ceil((performance.now() - from) / RESYNC_INTERVAL_MS) + 1)
    expect(resyncs()).toBeLessThan(60)
    await close([a])
  })

  test('changes to a table that a policy reads cost other tenants nothing if its own policies separate them', {
    timeout: 120_000,
  }, async () => {
    const [a, b] = [await subscribe('a', 'posts', ['']), await subscribe('b', 'posts', [''])]
    const resyncs = ({ told }: typeof a) => told.filter(({ reason }) => reason === 'dependency').length
    // The routing values are known once a change of one tenant no longer concerns the other.
    await vi.waitFor(
      async () => {
        const before = resyncs(a)
        await write('b', 'circles')
        await vi.waitFor(() => expect(resyncs(b)).toBeGreaterThan(0))
        expect(resyncs(a)).toBe(before)
      },
      { timeout: 10_000 },
    )
    const [before, ofOwner, ranBefore] = [a.told.length, resyncs(b), await transactions()]
    for (let n = 0; n < 40; n++) await write('b', 'circles')
    await vi.waitFor(() => expect(resyncs(b)).toBeGreaterThan(ofOwner))
    // The writes, the comparison of the policies, and the gateway's periodic work.
    expect((await transactions()) - ranBefore).toBeLessThanOrEqual(40 + 40)
    expect(a.told).toHaveLength(before)
    await write('a', 'circles')
    await vi.waitFor(() => expect(a.told.length).toBeGreaterThan(before))
    await close([a, b])
  })

  /**
   * Waits until every transaction of the server that has begun is over. Until then, a token precedes the
   * changes of the test before, which concern this tenant.
   */
  async function allEnded(): Promise<void> {
    const [{ xid } = { xid: null }] = await executeOn(admin, 'select pg_current_xact_id()::text as xid')
    const over = `select pg_snapshot_xmin(pg_current_snapshot()) > '${xid}'::xid8 as is_over`
    await vi.waitFor(async () => expect(await executeOn(admin, over)).toEqual([{ is_over: true }]), 60_000)
  }

  // Without triggers, clients cannot resume after a change of such a table, and other writers are not seen.
  test.runIf(capture === 'trigger')(
    'a client of another tenant can resume, and a row that moves concerns both',
    {
      timeout: 120_000,
    },
    async () => {
      const moved = await write('b', 'circles')
      await allEnded()
      const socket = await openSocket(gateway.url, { token: await gateway.token({ tenantId: 'a' }) })
      const again = async (since: string) => {
        socket.say({ type: 'subscribe', channel: 'svc_table_posts', since })
        const subscribed = await socket.next()
        expect(subscribed).toMatchObject({ type: 'subscribed' })
        return subscribed
      }
      socket.say({ type: 'subscribe', channel: 'svc_table_posts' })
      const { id, token } = await socket.next()
      socket.say({ type: 'unsubscribe', id })
      await vi.waitFor(async () => expect(await socket.next()).toMatchObject({ type: 'unsubscribed' }))
      await write('b', 'circles')
      const resumed = await again(token)
      // Nothing was missed: the next message is about the row that moves.
      await executeOn(admin, `update circles set tenant = 'a' where id = ${moved}`)
      expect(await socket.next()).toMatchObject({ type: 'resync', reason: 'dependency', id: resumed.id })
      socket.say({ type: 'unsubscribe', id: resumed.id })
      await vi.waitFor(async () => expect(await socket.next()).toMatchObject({ type: 'unsubscribed' }))
      const { id: last } = await again(token)
      // For the token, unless the resync of the row that moved was postponed and is due first.
      const reason = expect.stringMatching(/^(token|dependency)$/)
      expect(await socket.next()).toMatchObject({ type: 'resync', reason, id: last })
      await socket.close()
    },
  )
})
