/** docs/guides/coming-from-postgrest.md: roles, settings, schemas and transactions of requests. */
import { Agent, type OutgoingHttpHeaders, request } from 'node:http'
import { describe, expect, test } from 'vitest'
import { SECRET } from '../support/gateway.ts'
import { sqlSince } from '../support/postgres-version.ts'
import { type AskOptions, postgrestFixture } from '../support/postgrest.ts'
import { signed } from '../support/postgrest-token.ts'

const { ask, author, anon, gateway } = postgrestFixture(
  `create schema v2;
   create table v2.items (id int primary key); insert into v2.items values (7);
   create table public.items (id int primary key); insert into public.items values (1);
   create view settings as select
     current_user::text as role,
     current_setting('search_path') as path,
     current_setting('request.method', true) as method,
     current_setting('request.path', true) as request_path,
     current_setting('request.jwt.claims', true)::json ->> 'role' as claimed,
     current_setting('request.headers', true)::json ->> 'x-test' as header,
     current_setting('request.cookies', true)::json ->> 'name' as cookie,
     current_setting('app.settings.host', true) as host,
     current_setting('app.current_tenant_id', true) as tenant,
     current_setting('timezone') as timezone;
   ${sqlSince(15, 'alter view settings set (security_invoker = true);')}
   create table own (id int primary key, owner text);
   insert into own values (1, ':author'), (2, 'someone');
   alter table own enable row level security;
   create policy own on own using (owner = current_user);
   create table private (id int primary key generated always as identity, of text not null default
     concat_ws(' ', current_user, current_setting('request.jwt.claims')::json ->> 'sub',
       current_setting('request.headers')::json ->> 'x-test'));
   -- PostgreSQL replaces the function by its body, and checks the right to call it when it plans.
   create function whoami() returns text stable language sql as $$
     select concat_ws(' ', current_user, current_setting('request.jwt.claims')::json ->> 'sub',
       current_setting('request.headers')::json ->> 'x-test')
   $$;
   revoke execute on function whoami() from public;
   grant execute on function whoami() to :author;
   create function greet() returns void language plpgsql as $$
   begin
     if current_setting('request.headers')::json ->> 'x-blocked' is not null then
       raise sqlstate 'PT402' using message = 'Payment Required', detail = 'Quota exceeded', hint = 'Upgrade';
     end if;
     if current_setting('request.headers')::json ->> 'x-raise' is not null then
       raise sqlstate 'PGRST' using message = '{"code":"123","message":"ABC","details":"DEF","hint":"XYZ"}',
         detail = '{"status":332,"status_text":"As Raised","headers":{"X-Header":"value"}}';
     end if;
     if current_setting('request.headers')::json ->> 'x-broken' is not null then
       raise sqlstate 'PGRST' using message = '{"code":"123","message":"ABC"}',
         detail = '{"status":400,"status_text":"two\\nlines","headers":{}}';
     end if;
     perform set_config('response.headers', '[{"X-Greeting":"hello"},{"Cache-Control":"public"}]', true);
     if current_setting('request.headers')::json ->> 'x-cookies' is not null then
       perform set_config('response.headers', '[
         {"Set-Cookie":"a=1; Expires=Wed, 21 Oct 2015 07:28:00 GMT"}, {"X-Many":"1"}, {"set-cookie":"b=2"},
         {"x-many":"2"}
       ]', true);
     end if;
   end $$;
   grant usage on schema public, v2 to :anon, :author;
   grant select, insert on private to :author;
   grant select on items, settings, v2.items, own to :anon, :author`,
  `schemas = ["public", "v2"]
   pre_request = "public.greet"
   app_settings = { "app.settings.host" = "localhost" }`,
)

describe('the role', () => {
  test('is the anonymous role without a token', async () => {
    const { json } = await ask('/settings?select=role,claimed')
    expect(json).toEqual([{ role: anon, claimed: anon }])
  })

  test('is that of the token, and row-level security applies to it', async () => {
    const token = signed({ role: author }, SECRET)
    expect((await ask('/settings?select=role', { token })).json).toEqual([{ role: author }])
    expect((await ask('/own?select=id', { token })).json).toEqual([{ id: 1 }])
    expect((await ask('/own?select=id')).json).toEqual([])
  })

  test('of a token must exist', async () => {
    const { status, json } = await ask('/items', { token: signed({ role: 'nobody_at_all' }, SECRET) })
    expect([status, json.code]).toEqual([401, '22023'])
  })

  test('does not outlive its transaction', async () => {
    const token = signed({ role: author }, SECRET)
    const roles = await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        ask('/settings?select=role', n % 2 === 0 ? { token } : {}).then(({ json }) => json[0].role),
      ),
    )
    expect(roles).toEqual(Array.from({ length: 40 }, (_, n) => (n % 2 === 0 ? author : anon)))
  })
})

test('requests of one connection share nothing that belongs to a role, its claims, grants or headers', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const sockets = new Set<unknown>()
  type Kind = 'read' | 'write' | 'call'
  const send = (kind: Kind, token: string | null, test: string | null) =>
    new Promise<readonly [number | undefined, string]>((resolve, reject) => {
      const headers: OutgoingHttpHeaders = { Prefer: 'return=representation', 'Content-Type': 'application/json' }
      if (token !== null) headers.Authorization = `Bearer ${token}`
      if (test !== null) headers['X-Test'] = test
      const path = { read: 'settings?select=role,header', write: 'private?select=of', call: 'rpc/whoami' }[kind]
      const method = kind === 'read' ? 'GET' : 'POST'
      const sent = request(`${gateway.url}/rest/v1/${path}`, { agent, method, headers }, response => {
        sockets.add(response.socket)
        response
          .setEncoding('utf8')
          .toArray()
          .then(parts => resolve([response.statusCode, parts.join('')]), reject)
      })
      sent.on('error', reject).end(method === 'POST' ? '{}' : undefined)
    })
  const ann = signed({ role: author, sub: 'ann' }, SECRET)
  const bob = signed({ role: author, sub: 'bob' }, SECRET)
  const callers = [
    ...([
      [ann, 'ann', null],
      [bob, 'bob', null],
      [ann, 'ann', '1'],
      [null, '', '1'],
      [ann, 'ann', '2'],
    ] as const),
    ...([
      [null, '', null],
      [bob, 'bob', '2'],
    ] as const),
  ]
  for (const kind of ['read', 'write', 'call'] as const) {
    for (const [token, name, test] of [...callers, ...callers]) {
      const [status, text] = await send(kind, token, test)
      const described = [author, name, ...(test === null ? [] : [test])].join(' ')
      if (kind === 'read') {
        expect([status, JSON.parse(text)]).toEqual([200, [{ role: token === null ? anon : author, header: test }]])
      } else if (token === null) {
        expect([status, JSON.parse(text).code]).toEqual([401, '42501'])
      } else {
        const rows = kind === 'write' ? [201, [{ of: described }]] : [200, described]
        expect([status, JSON.parse(text)]).toEqual(rows)
      }
    }
  }
  expect(sockets.size).toBe(1)
  agent.destroy()
})

describe('a token', () => {
  const [, payload] = signed({ role: 'x' }, SECRET).split('.')
  const declaring = (alg: string, signature: string) => {
    const header = Buffer.from(JSON.stringify({ alg })).toString('base64url')
    return `${header}.${payload}.${signature}`
  }
  test.each<[token: string, code: string, message: string, details?: string]>([
    ['', 'PGRST301', 'Empty JWT is sent in Authorization header'],
    ['a.b', 'PGRST301', 'Expected 3 parts in JWT; got 2'],
    [
      signed({ role: 'x' }, 'another secret of at least 32 bytes, which is not it'),
      'PGRST301',
      'No suitable key or wrong key type',
      'None of the keys was able to decode the JWT',
    ],
    [
      declaring('RS256', 'c2ln'),
      'PGRST301',
      'No suitable key or wrong key type',
      'No suitable key was found to decode the JWT',
    ],
    ['a.b.c', 'PGRST301', 'JWT cryptographic operation failed'],
    [
      declaring('none', ''),
      'PGRST301',
      'Wrong or unsupported encoding algorithm',
      "JWT is unsecured but expected 'alg' was not 'none'",
    ],
    [signed({ role: 'x', exp: 1 }, SECRET), 'PGRST303', 'JWT expired'],
    [signed({ role: 'x', nbf: 99999999999 }, SECRET), 'PGRST303', 'JWT not yet valid'],
    [signed({ role: 'x', iat: 99999999999 }, SECRET), 'PGRST303', 'JWT issued at future'],
    [signed({ role: 'x', iat: 'now' }, SECRET), 'PGRST303', "The JWT 'iat' claim must be a number"],
    [
      signed({ role: 'x', aud: ['svc', 1] }, SECRET),
      'PGRST303',
      "The JWT 'aud' claim must be a string or an array of strings",
    ],
  ])('%s is refused, and again when it is repeated', async (token, code, message, details = '') => {
    for (const _ of [1, 2]) {
      const { status, json, headers } = await ask('/items', { headers: { Authorization: `Bearer ${token}` } })
      expect([status, json]).toEqual([401, { code, details: details || null, hint: null, message }])
      expect(headers.get('www-authenticate')).toBe(`Bearer error="invalid_token", error_description="${message}"`)
      expect(headers.get('proxy-status')).toBe(`PostgREST; error=${code}`)
    }
  })
})

test('settings describe the request', async () => {
  const token = signed({ role: author, tenant_id: 't1' }, SECRET)
  const { json } = await ask('/settings', {
    token,
    headers: { 'X-Test': 'yes', Cookie: 'a=b; name=value', Prefer: 'timezone=America/Los_Angeles' },
  })
  expect(json).toEqual([
    {
      ...{ role: author, claimed: author, tenant: 't1', host: 'localhost', header: 'yes', cookie: 'value' },
      ...{ path: '"public", "public"', method: 'GET', request_path: '/settings', timezone: 'America/Los_Angeles' },
    },
  ])
})

test('settings of earlier requests are not those of one that differs in one respect', async () => {
  const token = signed({ role: author, tenant_id: 't2' }, SECRET)
  const seen = async (options: AskOptions, path = '/settings') => {
    const [row] = (await ask(`${path}?select=*`, options)).json
    return [row.role, row.header, row.cookie, row.request_path, row.timezone, row.tenant]
  }
  const zone = 'America/Los_Angeles'
  const first = { token, headers: { 'X-Test': 'one', Cookie: 'name=a', Prefer: `timezone=${zone}` } }
  const headers = { ...first.headers }
  for (let round = 0; round < 2; round++) {
    expect(await seen(first)).toEqual([author, 'one', 'a', '/settings', zone, 't2'])
    expect(await seen({ token, headers: { ...headers, 'X-Test': 'two' } })).toContain('two')
    expect(await seen({ token, headers: { ...headers, Cookie: 'name=b' } })).toContain('b')
    expect(await seen({ token, headers: { ...headers, Prefer: '' } })).not.toContain(zone)
    expect(await seen({ headers })).toEqual([anon, 'one', 'a', '/settings', zone, ''])
    expect(await seen(first, '/setting%73')).toContain('/setting%73')
  }
})

describe('schemas', () => {
  test('Accept-Profile selects one', async () => {
    const { json, headers } = await ask('/items', { headers: { 'Accept-Profile': 'v2' } })
    expect([json, headers.get('content-profile')]).toEqual([[{ id: 7 }], 'v2'])
  })
  test('the first is the default', async () => {
    const { json, headers } = await ask('/items')
    expect([json, headers.get('content-profile')]).toEqual([[{ id: 1 }], 'public'])
  })
  test('another one is refused', async () => {
    const { status, json } = await ask('/items', { headers: { 'Accept-Profile': 'pg_catalog' } })
    expect([status, json]).toEqual([
      406,
      {
        code: 'PGRST106',
        details: null,
        hint: 'Only the following schemas are exposed: public, v2',
        message: 'Invalid schema: pg_catalog',
      },
    ])
  })
})

test('OPTIONS lists the methods of a resource', async () => {
  const { status, headers } = await ask('/items', { method: 'OPTIONS' })
  expect([status, headers.get('allow')]).toEqual([200, 'OPTIONS,GET,HEAD,POST,PUT,PATCH,DELETE'])
  const view = await ask('/settings', { method: 'OPTIONS' })
  expect(view.headers.get('allow')).toBe('OPTIONS,GET,HEAD')
})

describe('pre_request', () => {
  test('sets headers of the response', async () => {
    const { headers } = await ask('/items')
    expect([headers.get('x-greeting'), headers.get('cache-control')]).toEqual(['hello', 'public'])
  })
  test('can refuse a request with a status that it chooses', async () => {
    const { status, json } = await ask('/items', { headers: { 'X-Blocked': '1' } })
    expect([status, json]).toEqual([
      402,
      { code: 'PT402', details: 'Quota exceeded', hint: 'Upgrade', message: 'Payment Required' },
    ])
  })
  test('can choose the whole response to an error', async () => {
    const { status, reason, json, headers } = await ask('/items', { headers: { 'X-Raise': '1' } })
    expect([status, reason]).toEqual([332, 'As Raised'])
    expect(json).toEqual({ code: '123', details: 'DEF', hint: 'XYZ', message: 'ABC' })
    expect(headers.get('x-header')).toBe('value')
  })

  test('cannot choose a reason phrase with a line break', async () => {
    const { status, reason, json } = await ask('/items', { headers: { 'X-Broken': '1' } })
    expect([status, reason, json.code]).toEqual([500, 'Internal Server Error', 'PGRST121'])
  })

  test('can set several cookies', async () => {
    const { headers } = await ask('/items', { headers: { 'X-Cookies': '1' } })
    expect(headers.getSetCookie()).toEqual(['a=1; Expires=Wed, 21 Oct 2015 07:28:00 GMT', 'b=2'])
    expect(headers.get('x-many')).toBe('1, 2')
  })
})

describe('preferences', () => {
  test('are applied and reported', async () => {
    const { headers } = await ask('/items', { headers: { Prefer: 'handling=strict, count=exact' } })
    expect(headers.get('preference-applied')).toBe('count=exact, handling=strict')
  })
  test('that are unknown are refused with handling=strict', async () => {
    const { status, json } = await ask('/items', { headers: { Prefer: 'handling=strict, anything' } })
    expect([status, json.code, json.details]).toEqual([400, 'PGRST122', 'Invalid preferences: anything'])
  })
  test.each(['', 'handling=strict, ', 'handling=lenient, '])('%sa time zone must be known', async handling => {
    const { status, json } = await ask('/items', { headers: { Prefer: `${handling}timezone=Mars/Olympus` } })
    const message = 'invalid value for parameter "TimeZone": "Mars/Olympus"'
    expect([status, json]).toEqual([400, { code: '22023', details: null, hint: null, message }])
  })
})
