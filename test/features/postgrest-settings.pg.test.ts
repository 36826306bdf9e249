/** docs/reference/configuration.md#postgrest: settings that change which requests are accepted. */
import { describe, expect, test } from 'vitest'
import { SECRET } from '../support/gateway.ts'
import { postgrestFixture } from '../support/postgrest.ts'
import { signed } from '../support/postgrest-token.ts'

const SCHEMA = `
  create table pens (id int primary key, colour text default 'blue');
  create table caps (id int primary key, pen_id int references pens);
  insert into pens values (1, 'red'), (2, 'green');
  insert into caps values (1, 1), (2, 1), (3, 2);
  grant select, insert, update, delete on pens, caps to :anon`

const JSON_TYPE = { 'Content-Type': 'application/json' }
const ALIASED = '/pens?select=id,tops:caps(id)&id=eq.1&caps.order=id.desc&tops.limit=1'

describe('by default', () => {
  const { ask } = postgrestFixture(SCHEMA)

  test('all rows can be changed, and parameters can use both names of an aliased relation', async () => {
    const changed = await ask('/pens', { method: 'PATCH', headers: JSON_TYPE, body: '{"colour": "black"}' })
    expect(changed.status).toBe(204)
    const { status, headers, json } = await ask(ALIASED)
    expect([status, json]).toEqual([200, [{ id: 1, tops: [{ id: 2 }] }]])
    expect(headers.get('warning')).toMatch(
      /^299 PostgREST "Embedded resource .* Update `caps` to `tops` in query string/,
    )
    expect((await ask(ALIASED.replace('caps.order', 'tops.order'))).headers.get('warning')).toBeNull()
  })
  test('a warning encodes names that a header cannot contain', async () => {
    const { headers } = await ask('/pens?select=id,"é%0D%0Ax":caps(id)&caps.limit=1')
    expect(headers.get('warning')).toContain('Update `caps` to `%C3%A9%0D%0Ax` in')
  })
})

describe('with safe_updates and without legacy_target_names', () => {
  const { ask } = postgrestFixture(SCHEMA, 'safe_updates = true\nlegacy_target_names = false')

  test.each([
    ['PATCH', 'UPDATE', '{"colour": "black"}'],
    ['DELETE', 'DELETE', undefined],
  ])('%s needs a filter', async (method, statement, body) => {
    const send = (path: string) => ask(path, { method, headers: JSON_TYPE, ...(body === undefined ? {} : { body }) })
    const { status, json } = await send('/pens')
    expect([status, json]).toEqual([
      ...[400, { code: '21000', details: null, hint: null, message: `${statement} requires a WHERE clause` }],
    ])
    expect((await ask('/pens?order=id')).json).toEqual([
      { id: 1, colour: 'red' },
      { id: 2, colour: 'green' },
    ])
    expect((await send('/pens?id=eq.99')).status).toBe(204)
  })

  test('parameters use the alias of a relation', async () => {
    const { status, json } = await ask(ALIASED)
    expect([status, json]).toEqual([
      400,
      {
        code: 'PGRST108',
        message: "'caps' is not an embedded resource in this request",
        details: 'Target names are not allowed in filters if they have an alias',
        hint: "Change 'caps' to 'tops' in filters, orders or limits.",
      },
    ])
  })
})

describe('with more app_settings than a function of PostgreSQL can have arguments', () => {
  const names = Array.from({ length: 120 }, (_, index) => `n${index}`)
  const { ask } = postgrestFixture(
    // A better match for 100 texts than the built-in function.
    `create function num_nulls(${Array.from({ length: 100 }, () => 'text').join(', ')}) returns int language plpgsql
       as $$ begin raise exception 'called'; end $$;
     create view app as select array_agg(current_setting('app.settings.n' || n, true) order by n) as values
       from generate_series(0, 119) as n;
     grant select on app to :anon`,
    `app_settings = { ${names.map(name => `"app.settings.${name}" = "is ${name}"`).join(', ')} }`,
  )

  test('all of them can be read', async () => {
    const { status, json } = await ask('/app')
    expect([status, json]).toEqual([200, [{ values: names.map(name => `is ${name}`) }]])
  })
})

describe('with jwt_audience', () => {
  const { ask, author } = postgrestFixture(`${SCHEMA}; grant select on pens to :author`, 'jwt_audience = "shop"')

  test.each<[aud: unknown, status: number]>([
    ['shop', 200],
    [['other', 'shop'], 200],
    ['other', 401],
    [['other'], 401],
    ['', 401],
    [undefined, 200],
    [null, 200],
    [[], 200],
  ])('a token for %j is answered with %i', async (aud, expected) => {
    const { status, json } = await ask('/pens', { token: signed({ role: author, aud }, SECRET) })
    expect([status, status === 401 && json.message]).toEqual([expected, expected === 401 && 'JWT not in audience'])
  })
})
