/**
 * The cost of one tenant's subscriptions for other tenants and for itself. A write of tenant B causes no
 * statement for groups of tenant A with either capture source, and many filters of one tenant cause one
 * statement per change.
 */
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { clientFixture, databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { installed } from '../support/install.ts'
import { type Message, openSocket, type TestSocket } from '../support/socket.ts'

const SOCKETS = 4
const SUBSCRIPTIONS = 50

const TABLES = `create type label as (text text);
  create function is_label(label, label) returns bool language plpgsql volatile as
    $$ begin if ($2).text = 'bad' then raise exception 'no label'; end if; return ($1).text = ($2).text; end $$;
  create operator = (leftarg = label, rightarg = label, function = is_label);
  create table labelled (id int primary key, name text, label label default '(good)');
  create table items (id int primary key, tenant text not null, name text not null, team int not null default 1);
  create table opaque (id int primary key, tenant text not null, name text not null);
  create table public_items (id int primary key, name text not null);
  alter table items enable row level security; alter table items force row level security;
  alter table opaque enable row level security; alter table opaque force row level security;
  create policy own on items using (tenant = current_setting('app.current_tenant_id', true));
  create policy own on opaque using (lower(tenant) = current_setting('app.current_tenant_id', true));
  grant select, insert, update, delete on items, opaque, public_items, labelled to app`

describe.each(['gateway', 'trigger'] as const)('%s capture', capture => {
  const database = databaseFixture(TABLES)
  const admin = clientFixture(() => database.adminUrl)

  beforeAll(async () => {
    if (capture === 'trigger') await installed(database)
    admin.on('error', () => {})
  })
  const gateway = gatewayFixture(database, { toml: 'rate_limit_rate = 0\ntenant_max_concurrent = 0' })

  let ids = 0
  async function write(tenantId: string, table: string, name = 'x', method = 'POST', path = ''): Promise<number> {
    ids += 1
    const row = { id: ids, ...(table === 'public_items' || table === 'labelled' ? {} : { tenant: tenantId }), name }
    const { status } = await gateway.get(`/api/${table}${path}`, {
      ...{ method, as: { tenantId }, headers: { 'Content-Type': 'application/json' } },
      body: JSON.stringify(method === 'POST' ? row : { name }),
    })
    if (status >= 300) throw new Error(`${method} ${table}: ${status}`)
    return ids
  }

  async function subscribe(tenantId: string, table: string, filters: readonly string[]) {
    const socket = await openSocket(gateway.url, { token: await gateway.token({ tenantId }) })
    for (const filter of filters) socket.say({ type: 'subscribe', channel: `svc_table_${table}`, filter })
    for (const _ of filters) await socket.nextOf('subscribed')
    const told: Message[] = []
    socket.onMessage = message => told.push(message)
    return { socket, told }
  }

  /** The visibility queries of all groups so far. */
  async function queries(): Promise<number> {
    const { text } = await gateway.get('/metrics', { as: null })
    const found = [...text.matchAll(/^svc_realtime_visibility_queries_total\{.*?\} (\d+)$/gm)]
    return found.reduce((sum, [, count]) => sum + Number(count), 0)
  }

  const close = (sockets: readonly { readonly socket: TestSocket }[]) =>
    Promise.all(sockets.map(({ socket }) => socket.close()))

  test('writes of tenant B cause no visibility queries for tenant A', { timeout: 120_000 }, async () => {
    const many = await Promise.all(
      Array.from({ length: SOCKETS }, (_, socket) =>
        subscribe(
          'a',
          'items',
          Array.from({ length: SUBSCRIPTIONS }, (_, n) =>
            `id=gt.-${socket * 1_000 + n}&select=id`.replace('&select=id', ''),
          ),
        ),
      ),
    )
    const own = await subscribe('b', 'items', [''])
    // The visible rows of each group are cached by then.
    const first = await write('a', 'items')
    await vi.waitFor(() => expect(many.every(({ told }) => told.length === SUBSCRIPTIONS)).toBe(true), {
      timeout: 30_000,
    })
    expect(new Set(many.flatMap(({ told }) => told.map(({ key }) => key.id)))).toEqual(new Set([first]))
    const before = await queries()
    const written: number[] = []
    for (let n = 0; n < 20; n++) {
      const id = await write('b', 'items')
      await write('b', 'items', `changed ${n}`, 'PATCH', `/${id}`)
      await write('b', 'items', `changed ${n} again`, 'PATCH', `?id=${id}`)
      written.push(id)
    }
    await vi.waitFor(() => expect(new Set(own.told.map(({ key }) => key.id))).toEqual(new Set(written)), {
      timeout: 30_000,
    })
    // B's own group queried at most once per write.
    expect((await queries()) - before).toBeLessThanOrEqual(20 * 3)
    expect(many.flatMap(({ told }) => told)).toHaveLength(SOCKETS * SUBSCRIPTIONS)
    await close([...many, own])
  })

  test('a bulk write of tenant B causes no resync for tenant A', { timeout: 60_000 }, async () => {
    const [a, b, c] = [
      await subscribe('a', 'items', ['']),
      await subscribe('b', 'items', ['']),
      await subscribe('c', 'items', ['']),
    ]
    await write('a', 'items')
    await vi.waitFor(() => expect(a.told).toHaveLength(1), { timeout: 15_000 })
    // More rows than one notification can contain.
    const rows = Array.from({ length: 1_100 }, () => ({ id: ++ids, tenant: 'b', name: 'bulk' }))
    const headers = { 'Content-Type': 'application/json', 'X-Max-Affected': '2000' }
    const bulk = async (method: string, query: string, body?: unknown) => {
      const { status } = await gateway.get(`/api/items${query}`, {
        ...{ method, as: { tenantId: 'b' }, headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      expect(status).toBeLessThan(300)
    }
    const resyncs = () => b.told.filter(({ type, reason }) => type === 'resync' && reason === 'bulk').length
    await bulk('POST', '', rows)
    await vi.waitFor(() => expect(resyncs()).toBe(1), { timeout: 15_000 })
    await bulk('PATCH', '?name=eq.bulk', { name: 'more' })
    await vi.waitFor(() => expect(resyncs()).toBe(2), { timeout: 15_000 })
    await bulk('DELETE', '?name=eq.more')
    await vi.waitFor(() => expect(resyncs()).toBe(3), { timeout: 15_000 })
    let told = 1
    if (capture === 'trigger') {
      // Another client changes rows of two tenants in one statement.
      const values = "(select 1000000 + n, (array['b', 'c'])[n % 2 + 1], 'bulk' from generate_series(1, 2400) as n)"
      await admin.query(`insert into items (id, tenant, name) ${values}`)
      // From the write-ahead log, the first rows are notifications.
      const reasons = () => c.told.flatMap(({ type, reason }) => (type === 'notification' ? [] : [reason]))
      await vi.waitFor(() => expect([resyncs(), reasons()]).toEqual([4, ['bulk']]), {
        timeout: 15_000,
      })
      // A row that moves from one tenant to another concerns both.
      await admin.query("update items set tenant = 'a' where id > 1000000 and tenant = 'c'")
      await vi.waitFor(() => expect(a.told.filter(({ reason }) => reason === 'bulk')).toHaveLength(1), {
        timeout: 15_000,
      })
      await vi.waitFor(() => expect(reasons()).toEqual(['bulk', 'bulk']), { timeout: 15_000 })
      expect(resyncs()).toBe(4)
      await admin.query('delete from items where id > 1000000')
      await vi.waitFor(() => expect(a.told.filter(({ reason }) => reason === 'bulk')).toHaveLength(2), {
        timeout: 15_000,
      })
      told += 2
    }
    await write('a', 'items')
    await vi.waitFor(() => expect(a.told).toHaveLength(told + 1), { timeout: 15_000 })
    expect(a.told.filter(({ type }) => type === 'notification')).toHaveLength(2)
    await close([a, b, c])
  })

  test('two hundred filters of one tenant cause a few visibility queries of the row', {
    timeout: 120_000,
  }, async () => {
    const filters = Array.from({ length: 100 }, (_, n) => (n % 2 === 0 ? `name=eq.n${n}` : `name=neq.n${n}`))
    const sockets = [await subscribe('c', 'items', filters), await subscribe('c', 'items', filters)]
    const before = await queries()
    const id = await write('c', 'items', 'n4')
    // On each socket, the one equal filter, and the fifty that compare otherwise.
    await vi.waitFor(() => expect(sockets.map(({ told }) => told.length)).toEqual([51, 51]), { timeout: 30_000 })
    expect((await queries()) - before).toBe(1)
    for (const { told } of sockets)
      for (const message of told) expect(message).toMatchObject({ operation: 'INSERT', key: { id } })
    await write('c', 'items', 'n6', 'PATCH', `/${id}`)
    await vi.waitFor(
      () => {
        const since = sockets.map(({ told }) =>
          told
            .slice(51)
            .map(({ id: name, operation }) => `${operation} ${name}`)
            .sort(),
        )
        // The filters that the row left and entered, and the fifty that still match.
        expect(since.map(list => list.filter(text => !text.startsWith('UPDATE')))).toEqual([
          ['DELETE #5', 'INSERT #7'],
          ['DELETE #5', 'INSERT #7'],
        ])
        expect(since.map(list => list.length)).toEqual([52, 52])
      },
      { timeout: 30_000 },
    )
    await close(sockets)
  })

  test('a hundred filters of different shapes cause a few visibility queries of the row', {
    timeout: 120_000,
  }, async () => {
    const operators = ['eq', 'neq', 'gt', 'gte', 'lt', 'lte']
    const isMet = (operator: string, order: number) =>
      ({ eq: order === 0, neq: order !== 0, gt: order > 0, gte: order >= 0, lt: order < 0, lte: order <= 0 })[operator]
    const shapes = operators.flatMap(team =>
      operators.flatMap(name =>
        ['', '&tenant=neq.x', '&id=neq.0'].map(rest => ({
          team,
          name,
          filter: `team=${team}.1&name=${name}.m${rest}`,
        })),
      ),
    )
    const [some, others] = [shapes.slice(0, 60), shapes.slice(60)]
    const sockets = await Promise.all(
      [some, others].map(list =>
        subscribe(
          'e',
          'items',
          list.map(({ filter }) => filter),
        ),
      ),
    )
    const asked = await queries()
    const id = await write('e', 'items', 'n')
    // The team is equal, and the name is greater.
    const expected = [some, others].map(
      list => list.filter(({ team, name }) => isMet(team, 0) && isMet(name, 1)).length,
    )
    await vi.waitFor(() => expect(sockets.map(({ told }) => told.length)).toEqual(expected), { timeout: 30_000 })
    for (const { told } of sockets)
      for (const message of told) expect(message).toMatchObject({ operation: 'INSERT', key: { id } })
    // One transaction, with one statement for every sixteen of 108 shapes.
    expect((await queries()) - asked).toBe(1)
    // The name has changed: the filters that the row left, and those that it entered.
    await write('e', 'items', 'l', 'PATCH', `/${id}`)
    const met = ({ team, name }: { readonly team: string; readonly name: string }, order: number) =>
      isMet(team, 0) && isMet(name, order)
    const changed = [some, others].map(list =>
      list.flatMap(shape => {
        const [was, is] = [met(shape, 1), met(shape, -1)]
        return was && is ? ['UPDATE'] : was ? ['DELETE'] : is ? ['INSERT'] : []
      }),
    )
    await vi.waitFor(
      () =>
        expect(
          sockets.map(({ told }, index) =>
            told
              .slice(expected[index])
              .map(({ operation }) => operation)
              .sort(),
          ),
        ).toEqual(changed.map(list => list.sort())),
      { timeout: 30_000 },
    )
    await close(sockets)
  })

  test('a filter that fails on a row ends only its own subscription', { timeout: 60_000 }, async () => {
    const { socket, told } = await subscribe('d', 'labelled', [
      'label=(good)',
      'label=(bad)',
      'label=(other)',
      '',
      'label=(good)&name=eq.x',
    ])
    const id = await write('d', 'labelled')
    await vi.waitFor(
      () => {
        const rows = told.filter(({ type }) => type === 'notification')
        expect(new Set(rows.map(message => `${message.id} ${message.key.id}`))).toEqual(
          new Set([`#1 ${id}`, `#4 ${id}`, `#5 ${id}`]),
        )
        expect(told.filter(({ type }) => type === 'resync').map(message => message.id)).toEqual(['#2'])
      },
      { timeout: 15_000 },
    )
    await socket.close()
  })

  test('rows reach the right tenant even if no policy maps a change to a tenant', { timeout: 60_000 }, async () => {
    const [a, b] = [
      await subscribe('a', 'opaque', ['name=eq.x', 'name=eq.y']),
      await subscribe('b', 'opaque', ['name=eq.x', 'name=eq.y']),
    ]
    const id = await write('b', 'opaque', 'y')
    await vi.waitFor(() => expect(b.told.map(({ key }) => key.id)).toEqual([id]), { timeout: 15_000 })
    const own = await write('a', 'opaque', 'x')
    await vi.waitFor(() => expect(a.told.map(({ key }) => key.id)).toEqual([own]), { timeout: 15_000 })
    expect(b.told).toHaveLength(1)
    await close([a, b])
  })

  test('rows of a table that everyone can read reach every tenant according to its filters', {
    timeout: 60_000,
  }, async () => {
    const [a, b] = [
      await subscribe('a', 'public_items', ['name=eq.x', '']),
      await subscribe('b', 'public_items', ['name=eq.y', '']),
    ]
    const id = await write('a', 'public_items', 'y')
    await vi.waitFor(() => expect([a.told.length, b.told.length]).toEqual([1, 2]), { timeout: 15_000 })
    expect([...a.told, ...b.told].every(({ key }) => key.id === id)).toBe(true)
    await close([a, b])
  })
})
