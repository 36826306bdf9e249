/** docs/guides/coming-from-postgrest.md: headers of every response, and requests of browsers. */
import { describe, expect, test } from 'vitest'
import { postgrestFixture } from '../support/postgrest.ts'

const SCHEMA = `
  create table stops (id int primary key, name text);
  insert into stops values (1, 'Depot'), (2, 'Harbour');
  create function nearest() returns text stable language sql as $$select 'Depot'::text$$;
  create function varied() returns void language sql
    as $$select set_config('response.headers', '[{"Vary": "X-Own"}]', true)$$;
  grant select, insert, update, delete on stops to :anon`

const PHASES = ['jwt', 'parse', 'plan', 'transaction', 'response']
const phasesOf = (headers: Headers) =>
  [...(headers.get('server-timing') ?? '').matchAll(/(\w+);dur=\d+\.\d/g)].map(([, name]) => name)

describe('by default', () => {
  const { ask } = postgrestFixture(SCHEMA)
  const ORIGIN = { Origin: 'https://app.example' }

  test('a preflight is answered without a token, for any origin', async () => {
    const { status, headers, text } = await ask('/stops', {
      method: 'OPTIONS',
      headers: {
        ...ORIGIN,
        'Access-Control-Request-Method': 'PATCH',
        'Access-Control-Request-Headers': 'apikey, x-client-info, bad header',
      },
    })
    expect([status, text]).toEqual([200, ''])
    expect(Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control')))).toEqual({
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'GET, POST, PATCH, PUT, DELETE, OPTIONS, HEAD',
      'access-control-allow-headers': 'Authorization, apikey, x-client-info, Accept, Accept-Language, Content-Language',
      'access-control-max-age': '86400',
    })
  })

  test('responses and errors can be read by pages of any origin', async () => {
    for (const [path, status] of [
      ['/stops', 200],
      ['/nothing', 404],
    ] as const) {
      const reply = await ask(path, { headers: ORIGIN })
      expect([reply.status, reply.headers.get('access-control-allow-origin')]).toEqual([status, '*'])
      expect(reply.headers.get('access-control-expose-headers')).toContain('Content-Range')
    }
    expect((await ask('/stops')).headers.get('access-control-expose-headers')).toBeNull()
  })

  test('Vary names the headers that choose the response, unless a function sets it', async () => {
    expect((await ask('/stops')).headers.get('vary')).toBe('Accept, Prefer, Range')
    expect((await ask('/rpc/varied', { method: 'POST' })).headers.get('vary')).toBe('X-Own')
  })

  test('nothing is timed', async () => {
    expect((await ask('/stops')).headers.get('server-timing')).toBeNull()
  })
})

describe('with server_timing and trace_header', () => {
  const { ask } = postgrestFixture(SCHEMA, 'server_timing = true\ntrace_header = "X-Trace-Id"')

  test('every kind of request reports its phases', async () => {
    const body = '{"id": 3, "name": "Quay"}'
    const headers = { 'Content-Type': 'application/json' }
    const replies = await Promise.all([
      ask('/stops?id=eq.1'),
      ask('/stops', { method: 'POST', body, headers }),
      ask('/stops?id=eq.2', { method: 'PATCH', body: '{"name": "Pier"}', headers }),
      ask('/stops?id=eq.9', { method: 'DELETE' }),
      ask('/rpc/nearest'),
      ask('/', { method: 'HEAD' }),
    ])
    expect(replies.map(reply => phasesOf(reply.headers))).toEqual(replies.map(() => PHASES))
    const options = await Promise.all(['/', '/stops', '/rpc/nearest'].map(path => ask(path, { method: 'OPTIONS' })))
    expect(options.map(reply => phasesOf(reply.headers))).toEqual(options.map(() => ['jwt', 'parse', 'response']))
  })

  test.each<[path: string, status: number, phases: string[]]>([
    ['/stops?select=(', 400, ['jwt', 'parse']],
    ['/stops?nothing=eq.1', 400, ['jwt', 'parse', 'plan']],
    ['/stops?id=eq.x', 400, ['jwt', 'parse', 'plan', 'transaction']],
  ])('an error reports the phases until it occurred: %s', async (path, status, phases) => {
    const reply = await ask(path)
    expect([reply.status, phasesOf(reply.headers)]).toEqual([status, phases])
  })

  test('a token that is refused reports its verification only', async () => {
    const reply = await ask('/stops', { token: 'x' })
    expect([reply.status, phasesOf(reply.headers)]).toEqual([401, ['jwt']])
  })

  test('the trace header is repeated', async () => {
    const sent = { 'X-Trace-Id': 'a1 b2' }
    expect((await ask('/stops', { headers: sent })).headers.get('x-trace-id')).toBe('a1 b2')
    expect((await ask('/nothing', { headers: sent })).headers.get('x-trace-id')).toBe('a1 b2')
    expect((await ask('/stops')).headers.get('x-trace-id')).toBeNull()
  })
})
