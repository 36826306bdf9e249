/**
 * Views are resources only if they are `security_invoker` or listed (docs/reference/reading.md#names). Others
 * are reported with the reason (docs/reference/checks.md#view-unpublished).
 */
import { expect, test } from 'vitest'
import type { Event } from '../../src/events.ts'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'

const database = databaseFixture(`create table notes (id int primary key);
     create view plain as select id from notes;
     create materialized view kept as select id from notes;
     create view listed as select id from notes;
     create view invoker with (security_invoker) as select id from notes;
     grant select on all tables in schema public to app`)
const events: Event[] = []

const gateway = gatewayFixture(database, () => ({
  toml: 'exposed_views = ["listed"]',
  emit: event => events.push(event),
}))

test.each([
  ['plain', 'the view "plain" is not published: it is not security_invoker, and exposed_views does not list it'],
  ['kept', 'the view "kept" is not published: it is a materialized view that exposed_views does not list'],
])('a request for %s is answered with 404 and the reason', async (view, message) => {
  const reply = await gateway.get(`/api/${view}`)
  expect([reply.status, reply.json.error.code, reply.json.error.message]).toEqual([404, 'NOT_FOUND', message])
})

test('a query text is rejected with the same reason', async () => {
  const reply = await gateway.get('/api/_query', {
    ...{ method: 'POST', body: JSON.stringify({ query: 'get plain' }) },
    headers: { 'Content-Type': 'application/json' },
  })
  expect([reply.status, reply.json.error.message]).toEqual([404, expect.stringContaining('"plain" is not published')])
})

test('published views can be read', async () => {
  expect((await gateway.get('/api/listed')).status).toBe(200)
  expect((await gateway.get('/api/invoker')).status).toBe(200)
})

test('the log lists them at start-up', () => {
  expect(events).toContainEqual({
    kind: 'catalog',
    event: 'views that are not published',
    detail: {
      views: expect.arrayContaining([expect.stringMatching(/^plain: /), expect.stringMatching(/^kept: /)]),
      count: 2,
    },
  })
})
