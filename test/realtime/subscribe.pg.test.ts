/**
 * docs/guides/realtime.md#a-subscription: subscriptions on `/ws` to tables whose changes the gateway's own
 * writes publish.
 */
import { describe, expect, test, vi } from 'vitest'
import { shopDatabase } from '../features/shop.ts'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { execute } from '../support/postgres.ts'
import { type Message, openSocket, type TestSocket } from '../support/socket.ts'

const database = databaseFixture(shopDatabase)
const gateway = gatewayFixture(database)

async function socketOf(tenantId: string): Promise<TestSocket> {
  return openSocket(gateway.url, { token: await gateway.token({ tenantId }) })
}

const JSON_TYPE = { 'Content-Type': 'application/json' }

function write(method: string, path: string, body?: unknown, tenantId = 't1') {
  return gateway.get(path, {
    ...{ method, as: { tenantId }, headers: JSON_TYPE },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
}

let ids = 1_000

describe('one subscriber', () => {
  test('receives creations, changes and deletions with the columns that it can read', async () => {
    const socket = await socketOf('t1')
    socket.say({ type: 'subscribe', channel: 'svc_table_labels', id: 'mine' })
    expect(await socket.next()).toEqual({
      ...{ type: 'subscribed', id: 'mine', channel: 'svc_table_labels', token: expect.any(String) },
    })
    const id = ids++
    const created = await write('POST', '/api/labels', { id, tenant_id: 't1', name: 'new' })
    expect(created.status).toBe(201)
    const base = { type: 'notification', id: 'mine', channel: 'svc_table_labels', table: 'labels', key: { id } }
    expect(await socket.next()).toEqual({
      ...{ ...base, operation: 'INSERT', new: { id, tenant_id: 't1', name: 'new' }, old: null },
      ...{ timestamp: expect.stringMatching(/^\d{4}-.*Z$/), token: expect.any(String) },
      txid: created.headers.get('x-svc-txid'),
    })
    const changed = await write('PATCH', `/api/labels/${id}`, { name: 'other' })
    expect(await socket.next()).toMatchObject({
      ...{ ...base, operation: 'UPDATE', new: { id, name: 'other' }, old: { id } },
      txid: changed.headers.get('x-svc-txid'),
    })
    await write('DELETE', `/api/labels/${id}`)
    expect(await socket.next()).toMatchObject({ ...base, operation: 'DELETE', new: null, old: { id } })
    await socket.close()
  })
})

describe('the visible rows of a subscriber', () => {
  test('exclude those of another tenant, including their deletions', async () => {
    const [one, two] = [await socketOf('t1'), await socketOf('t2')]
    for (const socket of [one, two]) {
      socket.say({ type: 'subscribe', channel: 'svc_table_labels' })
      await socket.nextOf('subscribed')
    }
    const id = ids++
    await write('POST', '/api/labels', { id, tenant_id: 't1', name: 'secret' })
    await write('PATCH', `/api/labels/${id}`, { name: 'secret too' })
    await write('DELETE', `/api/labels/${id}`)
    const own = ids++
    await write('POST', '/api/labels', { id: own, tenant_id: 't2', name: 'own' }, 't2')
    expect(await two.next()).toMatchObject({ operation: 'INSERT', key: { id: own } })
    await Promise.all([one.close(), two.close()])
  })

  test('are those of the filter: leaving it is a deletion, and entering it an insertion', async () => {
    const socket = await socketOf('t1')
    socket.say({ type: 'subscribe', channel: 'svc_table_labels', filter: 'name=like.a*&id=gt.0' })
    await socket.nextOf('subscribed')
    const [inside, outside] = [ids++, ids++]
    await write('POST', '/api/labels', { id: outside, tenant_id: 't1', name: 'b' })
    await write('POST', '/api/labels', { id: inside, tenant_id: 't1', name: 'a' })
    expect(await socket.next()).toMatchObject({ operation: 'INSERT', key: { id: inside } })
    await write('PATCH', `/api/labels/${inside}`, { name: 'b' })
    expect(await socket.next()).toMatchObject({ operation: 'DELETE', key: { id: inside }, new: null })
    await write('PATCH', `/api/labels/${outside}`, { name: 'ab' })
    expect(await socket.next()).toMatchObject({ operation: 'INSERT', key: { id: outside }, new: { name: 'ab' } })
    await write('DELETE', `/api/labels/${inside}`)
    await write('DELETE', `/api/labels/${outside}`)
    expect(await socket.next()).toMatchObject({ operation: 'DELETE', key: { id: outside } })
    await socket.close()
  })

  test('are further limited by select and events', async () => {
    const socket = await socketOf('t1')
    socket.say({ type: 'subscribe', channel: 'svc_table_labels', select: 'title:name', events: ['update'] })
    await socket.nextOf('subscribed')
    const told: Message[] = []
    socket.onMessage = message => told.push(message)
    const id = ids++
    await write('POST', '/api/labels', { id, tenant_id: 't1', name: 'x' })
    // Changes shortly after the creation are merged with it.
    await vi.waitFor(
      async () => {
        await write('PATCH', `/api/labels/${id}`, { name: 'y' })
        expect(told).not.toEqual([])
      },
      { timeout: 15_000, interval: 100 },
    )
    for (const message of told) expect(message).toMatchObject({ operation: 'UPDATE', new: { title: 'y' } })
    expect(told[0].new).toEqual({ title: 'y' })
    await socket.close()
  })

  test('include those with composite keys, of batches, upserts, filtered writes and query texts', async () => {
    const socket = await socketOf('t1')
    socket.say({ type: 'subscribe', channel: 'svc_table_codes' })
    await socket.nextOf('subscribed')
    const seen = async (count: number) => {
      const found = new Map<string, string>()
      for (let i = 0; i < count; i++) {
        const { operation, key } = await socket.nextOf('notification')
        found.set(`${key.part}/${key.sub}`, operation)
      }
      return Object.fromEntries([...found].sort())
    }
    await write('POST', '/api/codes', [
      { part: 'p', sub: '1', tenant_id: 't1', title: 'one' },
      { part: 'p', sub: '2', tenant_id: 't1', title: 'two' },
    ])
    expect(await seen(2)).toEqual({ 'p/1': 'INSERT', 'p/2': 'INSERT' })
    await gateway.get('/api/codes', {
      ...{ method: 'POST', as: { tenantId: 't1' }, headers: { ...JSON_TYPE, 'X-Upsert': 'true' } },
      body: JSON.stringify([
        { part: 'p', sub: '2', tenant_id: 't1', title: 'zwei' },
        { part: 'p', sub: '3', tenant_id: 't1', title: 'drei' },
      ]),
    })
    expect(await seen(2)).toEqual({ 'p/2': 'UPDATE', 'p/3': 'INSERT' })
    await write('PATCH', '/api/codes?part=p&sub=in.(1,3)', { title: 'same' })
    expect(await seen(2)).toEqual({ 'p/1': 'UPDATE', 'p/3': 'UPDATE' })
    const query = (text: string) =>
      gateway.get('/api/_query', {
        method: 'POST',
        as: { tenantId: 't1' },
        headers: { 'Content-Type': 'text/plain' },
        body: text,
      })
    expect((await query("set codes values title = 'again' where sub = '1'")).status).toBe(200)
    expect(await seen(1)).toEqual({ 'p/1': 'UPDATE' })
    await write('DELETE', '/api/codes?part=p')
    expect(await seen(3)).toEqual({ 'p/1': 'DELETE', 'p/2': 'DELETE', 'p/3': 'DELETE' })
    await socket.close()
  })

  test('cause a resync if there are too many', async () => {
    const socket = await socketOf('t1')
    socket.say({ type: 'subscribe', channel: 'svc_table_labels', id: 'all' })
    await socket.nextOf('subscribed')
    const rows = Array.from({ length: 600 }, () => ({ id: ids++, tenant_id: 't1', name: 'many' }))
    await write('POST', '/api/labels', rows)
    expect(await socket.next()).toMatchObject({ type: 'resync', id: 'all', reason: 'bulk' })
    await socket.close()
  })

  test('exclude changes that are rolled back', async () => {
    const socket = await socketOf('t1')
    socket.say({ type: 'subscribe', channel: 'svc_table_labels' })
    await socket.nextOf('subscribed')
    const [id, other] = [ids++, ids++]
    const refused = await write('POST', '/api/labels', [
      { id, tenant_id: 't1', name: 'x' },
      { id, tenant_id: 't1', name: 'y' },
    ])
    expect(refused.status).toBe(400)
    await write('POST', '/api/labels', { id: other, tenant_id: 't1', name: 'z' })
    expect(await socket.next()).toMatchObject({ key: { id: other } })
    await socket.close()
  })
})

describe('a rejected message', () => {
  test.each([
    [{ channel: 'svc_table_nothing' }, 'NOT_FOUND', 'there is no table "nothing"'],
    [{ channel: 'orders' }, 'PARSE_ERROR', 'svc_table_'],
    [{ channel: 'svc_table_journal' }, 'PARSE_ERROR', 'no primary key'],
    [{ channel: 'svc_table_safe_view' }, 'PARSE_ERROR', 'primary key'],
    [{ channel: 'svc_table_labels', filter: 'nam=x' }, 'PARSE_ERROR', 'did you mean "name"'],
    [{ channel: 'svc_table_labels', filter: 'limit=1' }, 'PARSE_ERROR', 'can contain only filters'],
    [{ channel: 'svc_table_labels', filter: 'id=abc' }, 'PARSE_ERROR', 'cannot hold "abc"'],
    [{ channel: 'svc_table_labels', select: 'nope' }, 'PARSE_ERROR', 'no column "nope"'],
    [{ channel: 'svc_table_labels', events: ['created'] }, 'PARSE_ERROR', '"insert"'],
    [{ channel: 'svc_table_labels', filters: 'id=1' }, 'PARSE_ERROR', 'did you mean "filter"'],
    [{}, 'PARSE_ERROR', 'requires "channel"'],
  ])('is %o', async (message, code, text) => {
    const socket = await socketOf('t1')
    socket.say({ type: 'subscribe', id: 'x', ...message })
    expect(await socket.next()).toMatchObject({ type: 'error', id: 'x', code, message: expect.stringContaining(text) })
    // The connection remains usable.
    socket.say({ type: 'ping', id: 'still' })
    expect(await socket.next()).toEqual({ type: 'pong', id: 'still' })
    await socket.close()
  })

  test('has a duplicate id, an unknown id or type, or is not JSON', async () => {
    const socket = await socketOf('t1')
    socket.say({ type: 'subscribe', channel: 'svc_table_labels', id: 'a' })
    await socket.nextOf('subscribed')
    socket.say({ type: 'subscribe', channel: 'svc_table_labels', id: 'a' })
    expect(await socket.next()).toMatchObject({ type: 'error', id: 'a', code: 'PARSE_ERROR' })
    socket.say({ type: 'unsubscribe', id: 'b' })
    expect(await socket.next()).toMatchObject({ type: 'error', id: 'b', code: 'NOT_FOUND' })
    socket.say({ type: 'subscrib', id: 'c' })
    expect(await socket.next()).toMatchObject({
      type: 'error',
      id: 'c',
      message: expect.stringContaining('did you mean "subscribe"'),
    })
    socket.socket.send('{"type": ')
    expect(await socket.next()).toMatchObject({ type: 'error', code: 'PARSE_ERROR' })
    socket.socket.send(Buffer.from('{}'), { binary: true })
    expect(await socket.next()).toMatchObject({
      type: 'error',
      code: 'PARSE_ERROR',
      message: expect.stringContaining('must be a text frame with JSON'),
    })
    socket.say({ type: 'unsubscribe', channel: 'svc_table_labels' })
    expect(await socket.next()).toEqual({ type: 'unsubscribed', id: 'a', channel: 'svc_table_labels' })
    await socket.close()
  })

  test('is one subscription more than 100', async () => {
    const socket = await socketOf('t1')
    for (let n = 0; n < 101; n++) socket.say({ type: 'subscribe', channel: 'svc_table_labels', id: `s${n}` })
    for (let n = 0; n < 100; n++) expect(await socket.next()).toMatchObject({ type: 'subscribed', id: `s${n}` })
    expect(await socket.next()).toMatchObject({ type: 'error', id: 's100', code: 'FORBIDDEN' })
    await socket.close()
  })
})

describe('a resume token', () => {
  test('continues with missed changes, and an unknown token causes a resync', async () => {
    const first = await socketOf('t1')
    first.say({ type: 'subscribe', channel: 'svc_table_labels' })
    const { token } = await first.nextOf('subscribed')
    await first.close()
    const id = ids++
    await write('POST', '/api/labels', { id, tenant_id: 't1', name: 'missed' })
    const gone = ids++
    await write('POST', '/api/labels', { id: gone, tenant_id: 't1', name: 'gone' })
    await write('DELETE', `/api/labels/${gone}`)
    const again = await socketOf('t1')
    again.say({ type: 'subscribe', channel: 'svc_table_labels', since: token })
    await again.nextOf('subscribed')
    expect(await again.next()).toMatchObject({ operation: 'INSERT', key: { id } })
    again.say({ type: 'subscribe', channel: 'svc_table_labels', since: 'nonsense', id: 'lost' })
    await again.nextOf('subscribed')
    // Temporary rows can still be delivered if the two notifications did not arrive together.
    expect(await again.nextOf('resync')).toMatchObject({ id: 'lost', reason: 'token' })
    await again.close()
  })
})

describe('a resume token after a change of a table that a policy reads', () => {
  const member = (tenantId: string, room: number) =>
    gateway.get('/api/memberships', {
      ...{ method: 'POST', as: { tenantId }, headers: JSON_TYPE },
      body: JSON.stringify({ id: ids++, tenant_id: tenantId, room }),
    })

  /** The first message after a client has subscribed, disconnected and returned. */
  async function afterReturn(tenantId: string, work: () => Promise<unknown>): Promise<Message> {
    const first = await socketOf(tenantId)
    first.say({ type: 'subscribe', channel: 'svc_table_rooms' })
    const { token } = await first.nextOf('subscribed')
    await first.close()
    await work()
    const again = await socketOf(tenantId)
    again.say({ type: 'subscribe', channel: 'svc_table_rooms', since: token })
    await again.nextOf('subscribed')
    const message = await again.next()
    await again.close()
    return message
  }

  test('stays valid for the tenants that the change cannot concern', async () => {
    await execute(
      database.adminUrl,
      `create table memberships (id int primary key, tenant_id text not null, room int);
       create table rooms (id int primary key, name text);
       alter table memberships enable row level security; alter table memberships force row level security;
       alter table rooms enable row level security; alter table rooms force row level security;
       create policy own on memberships using (tenant_id = current_setting('app.current_tenant_id', true));
       create policy own on rooms using (id in (select room from memberships)) with check (true);
       insert into rooms values (1, 'one'), (2, 'two');
       insert into memberships values (-1, 't1', 1), (-2, 't2', 2);
       grant select, insert, update, delete on memberships, rooms to app;`,
    )
    await gateway.gateway.reload()
    const rename = (tenantId: string, id: number) =>
      gateway.get(`/api/rooms/${id}`, {
        ...{ method: 'PATCH', as: { tenantId }, headers: JSON_TYPE },
        body: JSON.stringify({ name: `name ${ids++}` }),
      })
    const other = await afterReturn('t1', async () => {
      expect((await member('t2', 1)).status).toBe(201)
      expect((await rename('t1', 1)).status).toBe(200)
    })
    expect(other).toMatchObject({ type: 'notification', operation: 'UPDATE', key: { id: 1 } })
    const own = await afterReturn('t1', () => member('t1', 2))
    expect(own).toMatchObject({ type: 'resync', reason: 'token' })
  })
})

describe('dependencies between tables', () => {
  test('cause a resync when a foreign key cascades a change', async () => {
    await execute(
      database.adminUrl,
      `create table parents (id int primary key); create table kids (id int primary key, parent_id int
        references parents on delete cascade);
       grant select, insert, update, delete on parents, kids to app;`,
    )
    await gateway.gateway.reload()
    await write('POST', '/api/parents', { id: 1 })
    await write('POST', '/api/kids', { id: 1, parent_id: 1 })
    const socket = await socketOf('t1')
    socket.say({ type: 'subscribe', channel: 'svc_table_kids' })
    await socket.nextOf('subscribed')
    await write('DELETE', '/api/parents/1')
    expect(await socket.next()).toMatchObject({ type: 'resync', reason: 'dependency' })
    await socket.close()
  })

  test('end subscriptions when a table is dropped, and a changed policy applies at once', async () => {
    await execute(
      database.adminUrl,
      `create table fleeting (id int primary key, who text); alter table fleeting enable row level security;
        alter table fleeting force row level security;
       create policy own on fleeting using (who = current_setting('app.current_tenant_id', true)) with check (true);
       grant select, insert, update, delete on fleeting to app;`,
    )
    await gateway.gateway.reload()
    const socket = await gateway
      .token({ tenantId: 't1', userId: 'u1' })
      .then(token => openSocket(gateway.url, { token }))
    const other = await gateway
      .token({ tenantId: 't1', userId: 'u2' })
      .then(token => openSocket(gateway.url, { token }))
    for (const each of [socket, other]) {
      each.say({ type: 'subscribe', channel: 'svc_table_fleeting' })
      await each.nextOf('subscribed')
    }
    // The gateway is not notified of this change.
    await execute(
      database.adminUrl,
      `drop policy own on fleeting; create policy own on fleeting
        using (who = current_setting('app.current_user_id', true)) with check (true)`,
    )
    const create = (id: number) =>
      gateway.get('/api/fleeting', {
        ...{ method: 'POST', as: { tenantId: 't1', userId: 'u1' }, headers: JSON_TYPE },
        body: JSON.stringify({ id, who: 'u1' }),
      })
    await create(1)
    expect(await socket.next()).toMatchObject({ type: 'resync', reason: 'schema changed' })
    expect(await other.next()).toMatchObject({ type: 'resync', reason: 'schema changed' })
    // Until the visibility groups have been rebuilt, changes cause a resync.
    const told: Message[] = []
    const toOther: Message[] = []
    socket.onMessage = message => told.push(message)
    other.onMessage = message => toOther.push(message)
    for (let id = 2; !told.some(({ type }) => type === 'notification'); id++) {
      await create(id)
      await new Promise(resolve => setTimeout(resolve, 100))
    }
    expect(told.at(-1)).toMatchObject({ operation: 'INSERT', new: { who: 'u1' } })
    await execute(database.adminUrl, 'drop table fleeting')
    await gateway.gateway.reload()
    await vi.waitFor(() => expect(told.at(-1)).toMatchObject({ type: 'error', code: 'NOT_FOUND' }), { timeout: 10_000 })
    expect(toOther.filter(({ type }) => type === 'notification')).toEqual([])
    await Promise.all([socket.close(), other.close()])
  })
})
