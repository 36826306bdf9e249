/** docs/guides/coming-from-postgrest.md: execution plans in PostgREST's dialect. */
import { describe, expect, test } from 'vitest'
import { SECRET } from '../support/gateway.ts'
import { postgrestFixture } from '../support/postgrest.ts'
import { signed } from '../support/postgrest-token.ts'

const SQL = `create table items (id int primary key, name text);
   insert into items select n, 'item ' || n from generate_series(1, 50) n;
   create table lines (id int primary key, item_id int references items);
   insert into lines select n, n from generate_series(1, 50) n;
   create table notes (id int primary key, owner name default current_user);
   insert into notes select n from generate_series(1, 50) n;
   alter table notes enable row level security;
   create policy own on notes using (owner = current_user);
   create function some_items(n int) returns setof items language sql stable as 'select * from items limit n';
   create function remove_items() returns void language sql volatile as 'delete from items';
   grant usage on schema public to :anon, :author;
   grant select, insert, update, delete on items, lines, notes to :anon, :author`

const PLAN = 'application/vnd.pgrst.plan'
const json = (more = '') => ({ Accept: `${PLAN}+json${more}` })

describe('with plan_enabled', () => {
  const { ask, author } = postgrestFixture(SQL, 'plan_enabled = true')

  test('a read is answered with its plan', async () => {
    const reply = await ask('/items?id=in.(1,2,3)&select=id', { headers: json() })
    expect(reply.status).toBe(200)
    expect(reply.headers.get('content-type')).toBe(`${PLAN}+json; for="application/json"; charset=utf-8`)
    expect(reply.json[0].Plan['Total Cost']).toBeGreaterThan(0)
  })

  test('the format is text unless json is requested', async () => {
    const reply = await ask('/items', { headers: { Accept: PLAN } })
    expect(reply.headers.get('content-type')).toBe(`${PLAN}+text; for="application/json"; charset=utf-8`)
    expect(reply.text).toMatch(/ on items .*\(cost=\d/)
    expect((await ask('/items', { headers: { Accept: `${PLAN}+text` } })).text).toBe(reply.text)
  })

  test('a condition on an embedded relation is a join', async () => {
    const { text } = await ask('/lines?select=id,items()&items=not.is.null', { headers: { Accept: PLAN } })
    expect(text).toMatch(/Join/)
    expect(text).not.toContain('SubPlan')
  })

  test.each<[options: string, (plan: { Plan: Record<string, unknown>; [key: string]: unknown }) => unknown]>([
    ['verbose', ({ Plan }) => Plan.Output],
    ['settings', ({ Settings }) => (Settings as Record<string, string>).search_path],
    ['buffers', ({ Planning }) => Planning],
    ['analyze', ({ Plan }) => Plan['Actual Rows']],
    ['analyze|wal', ({ Plan }) => (Plan['WAL Records'] === 0 ? 'none' : undefined)],
  ])('options=%s', async (options, shown) => {
    const reply = await ask('/items', { headers: json(`; options=${options}`) })
    expect(reply.headers.get('content-type')).toBe(
      `${PLAN}+json; for="application/json"; options=${options}; charset=utf-8`,
    )
    expect(shown(reply.json[0])).toBeDefined()
  })

  test.each([
    ['application/vnd.pgrst.object', 'application/vnd.pgrst.object+json'],
    ['application/vnd.pgrst.array+json;nulls=stripped', 'application/vnd.pgrst.array+json;nulls=stripped'],
    ['text/csv', 'text/csv'],
  ])('for="%s" is the media type of the result', async (given, shown) => {
    const reply = await ask('/items?id=eq.1', { headers: json(`; for="${given}"`) })
    expect(reply.headers.get('content-type')).toBe(`${PLAN}+json; for="${shown}"; charset=utf-8`)
  })

  test('a media type of the result that does not exist is refused', async () => {
    const { status, json: error } = await ask('/items', { headers: json('; for="text/unknown"') })
    expect([status, error.code]).toEqual([406, 'PGRST107'])
  })

  test('a write and a call are planned, not executed', async () => {
    const writes = [
      ['POST', '/items', '{"id": 100, "name": "new"}'],
      ['PATCH', '/items?id=eq.1', '{"name": "changed"}'],
      ['PUT', '/items?id=eq.2', '{"id": 2, "name": "changed"}'],
      ['DELETE', '/items', ''],
      ['POST', '/rpc/remove_items', '{}'],
    ] as const
    for (const [method, path, body] of writes) {
      const headers = { ...json(), 'Content-Type': 'application/json', Prefer: 'return=representation' }
      const reply = await ask(path, { method, headers, ...(body === '' ? {} : { body }) })
      expect([method, reply.status, reply.json[0].Plan['Total Cost'] > 0]).toEqual([method, 200, true])
    }
    expect((await ask('/items?name=in.(new,changed)')).json).toEqual([])
    expect((await ask('/items')).json).toHaveLength(50)
  })

  test('analyze is refused for what can change data', async () => {
    const headers = { ...json('; options=analyze'), 'Content-Type': 'application/json' }
    for (const path of ['/items', '/rpc/remove_items']) {
      const reply = await ask(path, { method: 'POST', headers, body: '{}' })
      expect([path, reply.status, reply.json.code]).toEqual([path, 400, 'PGRST127'])
    }
    const read = await ask('/rpc/some_items?n=3', { headers: json('; options=analyze') })
    expect(read.json[0].Plan['Actual Rows']).toBe(3)
  })

  test('HEAD has no body', async () => {
    const reply = await ask('/items', { method: 'HEAD', headers: json() })
    expect([reply.status, reply.text]).toEqual([200, ''])
  })

  describe('if row-level security hides rows', () => {
    const figures = /Cost|Rows|Width|Time|Buffers|Workers|cost=|rows=/

    test('the plan has no figures, and is not executed', async () => {
      const reply = await ask('/notes?id=gt.1', { headers: json('; options=analyze|buffers|verbose') })
      expect(reply.status).toBe(200)
      expect(reply.headers.get('content-type')).toContain('; options=verbose;')
      expect(reply.text).toContain('"Relation Name":"notes"')
      expect(reply.text).not.toMatch(figures)
      const text = await ask('/notes?id=gt.1', { headers: { Accept: `${PLAN}; options=analyze` } })
      expect(text.text).toContain(' on notes')
      expect(text.text).not.toMatch(figures)
    })

    test('also in an embedded relation, and in a write', async () => {
      const reply = await ask('/notes?id=eq.1', { method: 'DELETE', headers: json() })
      expect(reply.text).toContain('"Relation Name":"notes"')
      expect(reply.text).not.toMatch(figures)
    })

    test('the scope svc:explain reveals the figures', async () => {
      const token = signed({ role: author, scope: 'svc:explain' }, SECRET)
      const reply = await ask('/notes', { headers: json('; options=analyze'), token })
      expect(reply.json[0].Plan['Actual Rows']).toBe(0)
      const without = signed({ role: author }, SECRET)
      expect((await ask('/notes', { headers: json(), token: without })).text).not.toMatch(figures)
    })
  })
})

describe('without plan_enabled', () => {
  const { ask } = postgrestFixture(SQL)

  test.each([
    ['GET', '/items'],
    ['GET', '/rpc/some_items?n=1'],
    ['DELETE', '/items'],
  ])('a plan of %s %s is not acceptable', async (method, path) => {
    const { status, json: error } = await ask(path, { method, headers: { Accept: PLAN } })
    expect([status, error]).toEqual([
      406,
      { code: 'PGRST107', details: null, hint: null, message: `None of these media types are available: ${PLAN}` },
    ])
  })
})
