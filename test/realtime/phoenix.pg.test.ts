/**
 * docs/guides/coming-from-postgrest.md#realtime: channels with the unmodified client of npm, and as plain
 * frames.
 */
import {
  createClient,
  REALTIME_SUBSCRIBE_STATES,
  type RealtimeChannel,
  type SupabaseClient,
} from '@supabase/supabase-js'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { WebSocket } from 'ws'
import { SECRET } from '../support/gateway.ts'
import { execute } from '../support/postgres.ts'
import { postgrestFixture } from '../support/postgrest.ts'
import { signed } from '../support/postgrest-token.ts'
import { openSocket, type TestSocket } from '../support/socket.ts'

const PATIENT = { timeout: 20_000 }

const { gateway, run, adminUrl, author, anon } = postgrestFixture(
  `create table notes (id int primary key, owner text not null, body text, size int default 1, tags text[],
     extra jsonb, at timestamptz default '2026-01-02 03:04:05+00');
   alter table notes enable row level security; alter table notes force row level security;
   create policy own on notes to :author using (owner = (current_setting('request.jwt.claims', true)::json ->> 'sub'));
   create policy shown on notes for select to :anon using (owner = 'everyone');
   create table rooms (id int primary key, name text);
   create table secrets (id int primary key, name text);
   create table uncaptured (id int primary key);
   grant usage on schema public to :anon, :author;
   grant select, insert, update, delete on notes to :anon, :author;
   grant select on rooms, uncaptured to :anon, :author`,
  'realtime = true\nrealtime_broadcasts_per_sec = 20',
  ['notes', 'rooms', 'secrets'],
)

const tokenOf = (role: string, sub: string, more: object = {}) =>
  signed({ role, sub, exp: Math.floor(Date.now() / 1_000) + 600, ...more }, SECRET)
const ann = () => tokenOf(author, 'ann')
const bob = () => tokenOf(author, 'bob')

const clients: SupabaseClient[] = []
const sockets: TestSocket[] = []

afterEach(async () => {
  for (const client of clients.splice(0)) await client.removeAllChannels().then(() => client.realtime.disconnect())
  for (const socket of sockets.splice(0)) await socket.close()
  await run('delete from notes; delete from rooms; delete from secrets')
})

function open(key: string, vsn = '2.0.0'): SupabaseClient {
  const client = createClient(gateway.url, key, {
    auth: { persistSession: false, autoRefreshToken: false },
    realtime: { transport: WebSocket as never, vsn: vsn as never },
  })
  clients.push(client)
  return client
}

/** Resolves once the channel is joined; rejects with its error. */
function joined(channel: RealtimeChannel): Promise<RealtimeChannel> {
  return new Promise((resolve, reject) => {
    channel.subscribe((status, error) => {
      if (status === REALTIME_SUBSCRIBE_STATES.SUBSCRIBED) resolve(channel)
      else reject(error ?? new Error(status))
    })
  })
}

// biome-ignore lint/suspicious/noExplicitAny: a test checks the shape of a payload by its expectations
type Any = any

/** Joins a channel for changes, and collects their payloads. */
async function watching(client: SupabaseClient, filter: object, name = 'any'): Promise<Any[]> {
  const received: Any[] = []
  const channel = client.channel(name)
  channel.on(
    'postgres_changes',
    { event: '*', schema: 'public', table: 'notes', ...filter } as never,
    (payload: Any) => {
      received.push(payload)
    },
  )
  await joined(channel)
  return received
}

const shortly = <T>(check: () => T) => vi.waitFor(check, PATIENT)

describe.each(['1.0.0', '2.0.0'])('postgres_changes with vsn %s', vsn => {
  test('are those that the caller can see', async () => {
    const [mine, theirs] = [await watching(open(ann(), vsn), {}), await watching(open(bob(), vsn), {})]
    await run(`insert into notes (id, owner, body, tags, extra) values (1, 'ann', 'x', '{a,b}', '{"k": [1]}')`)
    // Changes of one row that follow each other quickly can arrive as one.
    await shortly(() => expect(mine).toHaveLength(1))
    await run(`update notes set body = 'y' where id = 1; insert into notes (id, owner) values (2, 'bob')`)
    await shortly(() => expect(mine).toHaveLength(2))
    await run('delete from notes where id = 1')
    await shortly(() => expect(mine.map(({ eventType }) => eventType)).toEqual(['INSERT', 'UPDATE', 'DELETE']))
    const row = {
      ...{ id: 1, owner: 'ann', body: 'x', size: 1, tags: ['a', 'b'], extra: { k: [1] } },
      at: expect.stringContaining('2026-01-02T'),
    }
    expect(mine[0]).toEqual({
      ...{ schema: 'public', table: 'notes', eventType: 'INSERT', new: row, old: {}, errors: null },
      commit_timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    })
    expect(mine[1]).toMatchObject({ new: { ...row, body: 'y' }, old: { id: 1 } })
    expect(mine[2]).toMatchObject({ new: {}, old: { id: 1 } })
    await shortly(() => expect(theirs.map(payload => payload.new.id)).toEqual([2]))
  }, 30_000)

  test('can be restricted to an event and by a filter', async () => {
    const client = open(ann(), vsn)
    const updates = await watching(client, { event: 'UPDATE' }, 'updates')
    const large = await watching(client, { filter: 'size=gte.10' }, 'large')
    const some = await watching(client, { filter: 'body=in.(a b,c%d)' }, 'some')
    await run(
      `insert into notes (id, owner, size, body)
         values (1, 'ann', 5, 'a b'), (2, 'ann', 10, 'c%d'), (3, 'ann', 1, 'e')`,
    )
    await shortly(() => expect([large.length, some.length]).toEqual([1, 2]))
    await run('update notes set size = 11 where id = 1')
    await shortly(() => expect(updates.map(payload => payload.new.id)).toEqual([1]))
    await shortly(() => expect(large.map(payload => payload.new.id).toSorted()).toEqual([1, 2]))
    await shortly(() => expect(some.map(payload => payload.new.id).toSorted()).toEqual([1, 1, 2]))
  }, 30_000)
})

describe('the role of the token', () => {
  test('decides which policies apply', async () => {
    const [anonymous, mine] = [await watching(open('sb_publishable_key'), {}), await watching(open(ann()), {})]
    type Received = typeof mine
    const seen = (of: Received) => of.map(({ eventType, new: row, old }) => [eventType, row.id ?? old.id])
    await run(`insert into notes (id, owner) values (1, 'everyone'), (2, 'ann')`)
    await shortly(() => expect([seen(anonymous), seen(mine)]).toEqual([[['INSERT', 1]], [['INSERT', 2]]]))
    // Changes to a row in quick succession can arrive as one.
    await run(`delete from notes`)
    await shortly(() =>
      expect(seen(anonymous)).toEqual([
        ['INSERT', 1],
        ['DELETE', 1],
      ]),
    )
    await shortly(() =>
      expect(seen(mine)).toEqual([
        ['INSERT', 2],
        ['DELETE', 2],
      ]),
    )
  }, 30_000)

  test('decides which tables can be subscribed to, and a schema means those', async () => {
    const client = open(ann())
    await expect(watching(client, { table: 'secrets' })).rejects.toThrow(/permission denied|secrets/)
    const all = await watching(client, { table: undefined }, 'all')
    await run(
      `insert into secrets values (1, 'x'); insert into rooms values (1, 'y');
       insert into notes (id, owner) values (1, 'ann')`,
    )
    await shortly(() => expect(all.map(({ table }) => table).toSorted()).toEqual(['notes', 'rooms']))
  }, 30_000)

  test('changes with a new token, also of another caller', async () => {
    const client = open(ann())
    const received = await watching(client, {})
    await client.realtime.setAuth(tokenOf(author, 'ann', { more: 1 }))
    await run(`insert into notes (id, owner) values (1, 'ann'), (2, 'bob')`)
    await shortly(() => expect(received.map(payload => payload.new.id)).toEqual([1]))
    const settled = new Promise(resolve => client.channel('any').on('system', {}, resolve))
    await client.realtime.setAuth(bob())
    await settled
    await run(`insert into notes (id, owner) values (3, 'ann'), (4, 'bob')`)
    await shortly(() => expect(received.map(payload => payload.new.id)).toEqual([1, 4]))
  }, 30_000)

  test('a token that expires or is not valid closes the channel', async () => {
    await expect(watching(open(`${ann()}x`), {})).rejects.toThrow(/JWT|key/)
    const client = open(tokenOf(author, 'ann', { exp: Math.floor(Date.now() / 1_000) + 4 }))
    const states: string[] = []
    client
      .channel('short')
      .on('system', {}, ({ message }: Any) => states.push(message))
      .subscribe(state => states.push(state))
    await shortly(() => expect(states).toEqual(['SUBSCRIBED', 'the token has expired', 'CLOSED']))
  }, 30_000)
})

describe('broadcasts', () => {
  test('reach the other clients of a topic, and the sender itself if it asks for that', async () => {
    const received: Record<string, Any[]> = { ann: [], bob: [], other: [], own: [] }
    const channels = [
      open(ann()).channel('room-1'),
      open(bob(), '1.0.0').channel('room-1'),
      open(bob()).channel('room-2'),
      open(ann()).channel('room-1', { config: { broadcast: { self: true, ack: true } } }),
    ]
    for (const [index, name] of Object.keys(received).entries())
      channels[index]?.on('broadcast', { event: 'moved' }, payload => received[name]?.push(payload))
    const [first, second, , own] = await Promise.all(channels.map(joined))
    expect(await first?.send({ type: 'broadcast', event: 'moved', payload: { x: 1 } })).toBe('ok')
    await shortly(() => expect(received.bob).toHaveLength(1))
    await second?.send({ type: 'broadcast', event: 'moved', payload: { x: 2 } })
    await shortly(() => expect(received.own).toHaveLength(2))
    expect(await own?.send({ type: 'broadcast', event: 'moved', payload: { x: 3 } })).toBe('ok')
    await shortly(() => expect(received.bob).toHaveLength(2))
    expect(received.bob?.[0]).toEqual({ type: 'broadcast', event: 'moved', payload: { x: 1 } })
    const seen = Object.fromEntries(
      Object.entries(received).map(([name, all]) => [name, all.map(({ payload }) => payload.x)]),
    )
    expect(seen).toEqual({ ann: [2, 3], bob: [1, 3], other: [], own: [1, 2, 3] })
  }, 30_000)

  test('stay within a tenant', async () => {
    const of = (tenant: string) => open(tokenOf(author, 'ann', { tenant_id: tenant })).channel('room')
    const received: string[] = []
    const [one, two, three] = [of('t1'), of('t1'), of('t2')]
    two.on('broadcast', { event: '*' }, ({ event }) => received.push(`t1 ${event}`))
    three.on('broadcast', { event: '*' }, ({ event }) => received.push(`t2 ${event}`))
    await Promise.all([one, two, three].map(joined))
    await three.send({ type: 'broadcast', event: 'b', payload: {} })
    await one.send({ type: 'broadcast', event: 'a', payload: {} })
    await shortly(() => expect(received).toEqual(['t1 a']))
  }, 30_000)

  test('have a limit on their size and their number', async () => {
    const config = { config: { broadcast: { ack: true } } }
    const channel = await joined(open(ann()).channel('full', config))
    const send = (payload: object) => channel.send({ type: 'broadcast', event: 'x', payload })
    expect(await send({ text: 'x'.repeat(7_900) })).toBe('error')
    expect(await send({ text: 'x'.repeat(7_000) })).toBe('ok')
    const many = await Promise.all(Array.from({ length: 40 }, (_, index) => send({ index })))
    expect(many.filter(answer => answer === 'error').length).toBeGreaterThan(5)
    expect(many.filter(answer => answer === 'ok').length).toBeGreaterThan(5)
  }, 30_000)
})

describe('broadcasts over HTTP', () => {
  const ROUTE = '/realtime/v1/api/broadcast'
  const post = (body: unknown, { path = '', headers = {} }: { path?: string; headers?: Record<string, string> } = {}) =>
    fetch(`${gateway.url}${ROUTE}${path}`, {
      method: 'POST',
      headers: { apikey: ann(), 'Content-Type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
  const message = (topic: string, event: string, payload: unknown = {}) => ({ topic, event, payload })

  test('reach the members of a topic of the tenant, in their order', async () => {
    const received: Record<string, Any[]> = { t1: [], t2: [], none: [] }
    const channels = ['t1', 't2', ''].map(tenant =>
      open(tokenOf(author, 'bob', tenant === '' ? {} : { tenant_id: tenant })).channel('hall/1'),
    )
    for (const [index, name] of Object.keys(received).entries())
      channels[index]?.on('broadcast', { event: '*' }, ({ event, payload }) => received[name]?.push([event, payload]))
    await Promise.all(channels.map(joined))
    const sender = open(tokenOf(author, 'ann', { tenant_id: 't1' })).channel('hall/1')
    expect(await sender.httpSend('a b', { x: 1 })).toEqual({ success: true })
    expect(await sender.send({ type: 'broadcast', event: 'two', payload: { x: 2 } })).toBe('ok')
    const messages = [message('hall/1', 'three', 3), message('other', 'three'), message('hall/1', 'four')]
    expect((await post({ messages })).status).toBe(202)
    await shortly(() => expect(received.none).toHaveLength(2))
    await shortly(() => expect(received.t1).toHaveLength(2))
    expect(received).toEqual({
      t1: [
        ['a b', { x: 1 }],
        ['two', { x: 2 }],
      ],
      t2: [],
      none: [
        ['three', 3],
        ['four', {}],
      ],
    })
  }, 30_000)

  test('a page of any origin can send them', async () => {
    const headers = { Origin: 'https://app.example', 'Access-Control-Request-Method': 'POST' }
    const asked = await fetch(gateway.url + ROUTE, { method: 'OPTIONS', headers })
    expect([asked.status, asked.headers.get('access-control-allow-origin')]).toEqual([200, '*'])
    const sent = await post({ messages: [] }, { headers: { Origin: 'https://app.example' } })
    expect([sent.status, await sent.text(), sent.headers.get('access-control-allow-origin')]).toEqual([202, '', '*'])
  })

  test.each<[name: string, body: unknown, options: Parameters<typeof post>[1], status: number, message: RegExp]>([
    ['another body', { topic: 'a' }, {}, 400, /must be \{"messages"/],
    ['a body that is not JSON', '{', {}, 400, /not JSON/],
    ['a binary payload', 'x', { headers: { 'Content-Type': 'application/octet-stream' } }, 400, /application\/json/],
    ['a message without an event', { messages: [{ topic: 'a' }] }, {}, 400, /event must be a string/],
    ['a private channel', { messages: [{ ...message('a', 'b'), private: true }] }, {}, 400, /private channels/],
    ['a private channel by its path', {}, { path: '/a/events/b?private=true' }, 400, /private channels/],
    ['an invalid escape', {}, { path: '/%ff/events/b' }, 400, /percent-encoded/],
    ['another path', {}, { path: '/a/b' }, 404, /messages are sent to/],
    ['101 messages', { messages: Array.from({ length: 101 }, () => message('a', 'b')) }, {}, 400, /at most 100/],
    ['a large body', { messages: ['x'.repeat(790_000)] }, {}, 400, /at most 790000/],
    ['a long message', { messages: [message('a', 'b', 'x'.repeat(7_900))] }, {}, 400, /at most 7900 bytes/],
    [
      'a deep payload',
      `{"messages":[{"topic":"a","event":"b","payload":${'['.repeat(99_999)}${']'.repeat(99_999)}}]}`,
      {},
      400,
      /nested too deeply|at most 7900 bytes/,
    ],
    [
      'more messages than a second has',
      { messages: Array.from({ length: 50 }, () => message('a', 'b')) },
      {},
      429,
      /more than 20/,
    ],
    ['an invalid token', {}, { headers: { Authorization: `Bearer ${ann()}x` } }, 401, /key/],
  ])('%s is refused', async (_, body, options, status, message) => {
    const answer = await post(body, options)
    const error: Any = await answer.json()
    expect([answer.status, error.message]).toEqual([status, expect.stringMatching(message)])
  })

  test('only POST is possible', async () => {
    const answer = await fetch(gateway.url + ROUTE)
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST'])
  })
})

describe('what is not supported is refused', () => {
  test.each<[name: string, config: object, on: (channel: RealtimeChannel) => void, message: RegExp]>([
    ['presence', {}, channel => void channel.on('presence', { event: 'sync' }, () => {}), /presence is not supported/],
    ['private channels', { private: true }, () => {}, /private channels are not supported/],
    [
      'a table that is not captured',
      {},
      channel => void channel.on('postgres_changes', { event: '*', schema: 'public', table: 'uncaptured' }, () => {}),
      /not captured; run svc install/,
    ],
    [
      'an unknown table',
      {},
      channel => void channel.on('postgres_changes', { event: '*', schema: 'public', table: 'nothing' }, () => {}),
      /no table "nothing"/,
    ],
    [
      'a schema that is not served',
      {},
      channel => void channel.on('postgres_changes', { event: '*', schema: 'pg_catalog' }, () => {}),
      /schema "pg_catalog" is not served/,
    ],
    [
      'another operator',
      {},
      channel =>
        void channel.on(
          'postgres_changes',
          { event: '*', schema: 'public', table: 'notes', filter: 'body=like.a*' },
          () => {},
        ),
      /"like" is not supported/,
    ],
  ])('%s', async (_, config, on, message) => {
    const channel = open(ann()).channel('refused', { config } as never)
    on(channel)
    await expect(joined(channel)).rejects.toThrow(message)
  })
})

/** A message that joins a channel for changes with this filter. */
function joinWithFilter(filter: string): string {
  const changes = [{ event: '*', schema: 'public', table: 'notes', filter }]
  return JSON.stringify(['1', '1', 'realtime:a', 'phx_join', { config: { postgres_changes: changes } }])
}

describe('frames', () => {
  const connect = async (query = 'vsn=2.0.0', token = ann()) => {
    const socket = await openSocket(gateway.url, { path: `/realtime/v1/websocket?apikey=${token}&${query}` })
    sockets.push(socket)
    return socket
  }
  const push = (socket: TestSocket, ...frame: readonly unknown[]) => socket.socket.send(JSON.stringify(frame))

  test('a heartbeat is answered', async () => {
    const socket = await connect()
    push(socket, null, '7', 'phoenix', 'heartbeat', {})
    expect(await socket.next()).toEqual(['7', '7', 'phoenix', 'phx_reply', { status: 'ok', response: {} }])
    const old = await connect('vsn=1.0.0')
    old.say({ topic: 'phoenix', event: 'heartbeat', payload: {}, ref: '1' })
    expect(await old.next()).toMatchObject({
      topic: 'phoenix',
      event: 'phx_reply',
      ref: '1',
      payload: { status: 'ok' },
    })
  })

  test('a second join replaces the first, and messages for the first are refused', async () => {
    const socket = await connect()
    push(socket, '1', '1', 'realtime:a', 'phx_join', { config: {} })
    expect((await socket.next()).slice(3)).toEqual(['phx_reply', { status: 'ok', response: { postgres_changes: [] } }])
    push(socket, '2', '2', 'realtime:a', 'phx_join', { config: {} })
    expect(await socket.next()).toEqual(['1', null, 'realtime:a', 'phx_close', {}])
    expect((await socket.next()).slice(0, 4)).toEqual(['2', '2', 'realtime:a', 'phx_reply'])
    push(socket, '1', '3', 'realtime:a', 'phx_leave', {})
    expect((await socket.next()).at(-1)).toMatchObject({ status: 'error' })
    push(socket, '2', '4', 'realtime:a', 'phx_leave', {})
    expect(await socket.next()).toEqual(['2', '4', 'realtime:a', 'phx_reply', { status: 'ok', response: {} }])
    expect(await socket.next()).toEqual(['2', null, 'realtime:a', 'phx_close', {}])
  })

  test.each<[name: string, frame: string | Buffer]>([
    ['text that is not JSON', '{'],
    ['an object instead of an array', '{"topic":"phoenix","event":"heartbeat"}'],
    ['too few members', '["1","1","realtime:a"]'],
    ['a payload that is not an object', '["1","1","realtime:a","phx_join",5]'],
    ['a reference that is not a text', '[1,1,"realtime:a","phx_join",{}]'],
    ['another topic', '["1","1","other","phx_join",{}]'],
    ['an unknown event', '["1","1","phoenix","explode",{}]'],
    ['a channel that was not joined', '["1","1","realtime:b","broadcast",{"event":"x"}]'],
    ['a configuration of another type', '["1","1","realtime:a","phx_join",{"config":[]}]'],
    ['changes of another type', '["1","1","realtime:a","phx_join",{"config":{"postgres_changes":{}}}]'],
    [
      'an event of another type',
      '["1","1","realtime:a","phx_join",{"config":{"postgres_changes":[{"event":"TRUNCATE"}]}}]',
    ],
    ['a filter without an operator', joinWithFilter('id')],
    ['a filter by an unknown column', joinWithFilter('nothing=eq.1')],
    ['a filter that is SQL', joinWithFilter('id=eq.1 or true')],
    ['an empty binary message', Buffer.alloc(0)],
    ['an unknown kind of binary message', Buffer.from([9, 0, 0, 0, 0, 0, 1])],
    ['lengths beyond the message', Buffer.from([3, 255, 255, 255, 255, 255, 1, 65])],
    ['a binary payload', Buffer.from([3, 0, 0, 1, 1, 0, 0, 97, 98, 0])],
    ['a payload that is not JSON', Buffer.from([3, 0, 0, 1, 1, 0, 1, 97, 98, 123])],
  ])('%s is answered with an error, and the socket stays open', async (_, frame) => {
    const socket = await connect()
    socket.socket.send(frame)
    expect((await socket.next()).slice(3)).toEqual([
      'phx_reply',
      { status: 'error', response: { reason: expect.any(String) } },
    ])
    push(socket, null, '2', 'phoenix', 'heartbeat', {})
    expect((await socket.next())[1]).toBe('2')
  })

  test('an unknown version of the serializer closes the socket', async () => {
    const socket = await connect('vsn=9')
    expect(await socket.closed).toEqual([1003, 'vsn must be 1.0.0 or 2.0.0'])
  })

  test('a message beyond the limit closes the socket', async () => {
    const socket = await connect()
    socket.socket.send('x'.repeat(70_000))
    expect((await socket.closed)[0]).toBe(1009)
  })

  test('a socket has a limit on its channels', async () => {
    const socket = await connect()
    let refused: Any = null
    for (let index = 0; index < 2_000 && refused === null; index++) {
      push(socket, '1', String(index), `realtime:${index}`, 'phx_join', { config: {} })
      const reply = await socket.next()
      if (reply[4].status === 'error') refused = reply[4].response.reason
    }
    expect(refused).toMatch(/socket_max_subscriptions/)
  }, 30_000)

  test('sockets that are closed while they join leave nothing behind', async () => {
    const listening = async () =>
      execute(adminUrl(), `select pid from pg_stat_activity where query ilike 'listen %svc_broadcast%'`)
    const changes = [{ event: '*', schema: 'public', table: 'notes' }]
    for (let n = 0; n < 5; n++) {
      const socket = await connect()
      push(socket, '1', '1', `realtime:${n}`, 'phx_join', {
        access_token: ann(),
        config: { postgres_changes: changes },
      })
      socket.socket.terminate()
    }
    // Joins later, with more steps.
    const later = open(ann())
    await watching(later, {})
    // A join for changes does not wait for the connection that hears broadcasts.
    await vi.waitFor(async () => expect(await listening()).toHaveLength(1), PATIENT)
    await later.removeAllChannels()
    await vi.waitFor(async () => expect(await listening()).toEqual([]), PATIENT)
  }, 30_000)
})

test('anonymous sockets have no more rights than anon_role', async () => {
  expect(anon).not.toBe(author)
  const received = await watching(open(tokenOf(anon, 'ann')), {})
  await run(`insert into notes (id, owner) values (1, 'ann'), (2, 'everyone')`)
  await shortly(() => expect(received.map(payload => payload.new.id)).toEqual([2]))
}, 30_000)
