/**
 * docs/reference/errors.md#examples: an example of every error code, with the message that a gateway sends.
 */
import { beforeAll, expect, test } from 'vitest'
import { type ErrorCode, STATUS_OF } from '../../src/errors.ts'
import { watchActivity } from '../support/activity.ts'
import { databaseFixture, fixture, gatewayFixture } from '../support/fixtures.ts'
import type { Reply, TestGateway } from '../support/gateway.ts'
import { installed } from '../support/install.ts'
import { pageWithParts } from '../support/page.ts'

const PAGE = 'docs/reference/errors.md'
const JSON_TYPE = { 'Content-Type': 'application/json' }

const database = databaseFixture(`
create table notes (id int primary key, body text not null);
insert into notes values (1, 'first');
create table hidden (id int primary key);
create table events (id int primary key, body text);
insert into events select n, 'event ' || n from generate_series(1, 5000) n;
analyze events;
create table loops (id int primary key);
alter table loops enable row level security;
create policy own on loops using (exists (select from loops other where other.id = loops.id));
create function nap() returns int volatile language plpgsql as $$ begin perform pg_sleep(60); return 1; end $$;
grant all on notes, events, loops to app`)
const activity = fixture(() => watchActivity(database.adminUrl))
const gateway = gatewayFixture(database, {
  toml: 'explain_max_rows = 1000\n[gateway.tables.notes]\nrequire_if_match = true',
})
const hasty = gatewayFixture(database, { toml: 'statement_timeout_ms = 200' })
const single = gatewayFixture(database, { toml: 'max_connections = 1\nacquire_timeout_ms = 200' })
const lone = gatewayFixture(database, { toml: 'tenant_max_concurrent = 1' })
const rated = gatewayFixture(database, { toml: 'rate_limit_rate = 0.001\nrate_limit_burst = 1' })

const stored = databaseFixture(`
create table notes (id int primary key, body text);
create function nap() returns int volatile language plpgsql as $$ begin perform pg_sleep(60); return 1; end $$;
grant all on notes to app`)
const storedActivity = fixture(() => watchActivity(stored.adminUrl))
beforeAll(() => installed(stored))
const keyed = gatewayFixture(stored)
const withKey = (path: string, body: string, from = keyed) =>
  from.get(path, { method: 'POST', headers: { ...JSON_TYPE, 'Idempotency-Key': 'k1' }, body })

interface Example {
  /** The request as the page shows it. */
  readonly request: string
  send(): Promise<Reply>
}

const call = (from: TestGateway) => from.get('/api/rpc/nap', { method: 'POST', headers: JSON_TYPE, body: '{}' })

const change = (headers: Readonly<Record<string, string>>) =>
  gateway.get('/api/notes/1', { method: 'PATCH', headers: { ...JSON_TYPE, ...headers }, body: '{"body": "x"}' })

const operate = (operation: object) =>
  gateway.get('/api/notes/1', {
    ...{ method: 'PATCH', headers: { 'Content-Type': 'application/json-patch+json', 'If-Match': '*' } },
    body: JSON.stringify([operation, { op: 'replace', path: '/body', value: 'y' }]),
  })

/** Sends a request while a call of `nap` by the same gateway is running. The call is cancelled afterwards. */
async function duringCall(from: TestGateway, path: string): Promise<Reply> {
  const running = call(from)
  await activity.started(/nap/)
  const reply = await from.get(path)
  await activity.value(`select pg_cancel_backend(pid) from pg_stat_activity
    where datname = current_database() and state = 'active' and query ~ 'nap' and pid <> pg_backend_pid()`)
  await running
  return reply
}

const EXAMPLES: Readonly<Record<ErrorCode, Example>> = {
  PARSE_ERROR: { request: 'GET /api/notes?boddy=first', send: () => gateway.get('/api/notes?boddy=first') },
  QUERY_ERROR: {
    request: 'POST /api/notes {"id": 1, "body": "again"}',
    send: () => gateway.get('/api/notes', { method: 'POST', headers: JSON_TYPE, body: '{"id": 1, "body": "again"}' }),
  },
  UNAUTHORIZED: { request: 'GET /api/notes without a token', send: () => gateway.get('/api/notes', { as: null }) },
  FORBIDDEN: { request: 'GET /api/hidden without SELECT privilege', send: () => gateway.get('/api/hidden') },
  NOT_FOUND: { request: 'GET /api/notes/2', send: () => gateway.get('/api/notes/2') },
  METHOD_NOT_ALLOWED: {
    request: 'DELETE /api/_schema',
    send: () => gateway.get('/api/_schema', { method: 'DELETE' }),
  },
  TIMEOUT: { request: 'POST /api/rpc/nap, which takes a minute', send: () => call(hasty) },
  TEST_FAILED: {
    request: 'PATCH /api/notes/1 with a JSON Patch that tests for another body',
    send: () => operate({ op: 'test', path: '/body', value: 'x' }),
  },
  IDEMPOTENCY_KEY_IN_USE: {
    request: 'POST /api/rpc/nap while one with the same Idempotency-Key is running',
    async send() {
      const running = withKey('/api/rpc/nap', '{}')
      await storedActivity.started(/nap/)
      const reply = await withKey('/api/rpc/nap', '{}')
      await storedActivity.value(`select pg_cancel_backend(pid) from pg_stat_activity
        where datname = current_database() and state = 'active' and query ~ 'nap' and pid <> pg_backend_pid()`)
      await running
      return reply
    },
  },
  PRECONDITION_FAILED: {
    request: 'PATCH /api/notes/1 with an old ETag in If-Match',
    send: () => change({ 'If-Match': '"a"' }),
  },
  PAYLOAD_TOO_LARGE: {
    request: 'POST /api/notes with a body of 3 MiB',
    send: () =>
      gateway.get('/api/notes', { method: 'POST', headers: JSON_TYPE, body: `{"body":"${'x'.repeat(3 << 20)}"}` }),
  },
  UNSUPPORTED_MEDIA_TYPE: {
    request: 'POST /api/notes with Content-Type: text/plain',
    send: () => gateway.get('/api/notes', { method: 'POST', headers: { 'Content-Type': 'text/plain' }, body: '{}' }),
  },
  QUERY_TOO_EXPENSIVE: {
    request: 'GET /api/events?sort=body with explain_max_rows = 1000',
    send: () => gateway.get('/api/events?sort=body'),
  },
  PATH_NOT_FOUND: {
    request: 'PATCH /api/notes/1 with a JSON Patch of a member that is missing',
    send: () => operate({ op: 'add', path: '/body/a', value: 1 }),
  },
  IDEMPOTENCY_KEY_REUSED: {
    request: 'POST /api/notes with the Idempotency-Key of another creation',
    async send() {
      await withKey('/api/notes', '{"id": 1}')
      return withKey('/api/notes', '{"id": 2}')
    },
  },
  PRECONDITION_REQUIRED: { request: 'PATCH /api/notes/1, with require_if_match', send: () => change({}) },
  HEADERS_TOO_LARGE: {
    request: 'GET /api/notes with a header of 70 KB',
    send: () => gateway.get('/api/notes', { headers: { 'X-Note': 'x'.repeat(70_000) } }),
  },
  RATE_LIMITED: {
    request: 'GET /api/notes above the rate limit',
    async send() {
      await rated.get('/api/notes')
      return rated.get('/api/notes')
    },
  },
  CONCURRENCY_LIMIT: {
    request: 'GET /api/notes during a call, with tenant_max_concurrent = 1',
    send: () => duringCall(lone, '/api/notes'),
  },
  INTERNAL: { request: 'GET /api/loops, whose policy refers to itself', send: () => gateway.get('/api/loops') },
  NOT_IMPLEMENTED: {
    request: 'POST /api/notes with an Idempotency-Key, without svc install',
    send: () => withKey('/api/notes', '{"id": 9, "body": "x"}', gateway),
  },
  UNAVAILABLE: {
    request: 'GET /api/notes during a call, with max_connections = 1',
    send: () => duringCall(single, '/api/notes'),
  },
}

test(`${PAGE} shows the message of every code as a gateway sends it`, { timeout: 60_000 }, async () => {
  const rows: string[] = []
  for (const [code, status] of (Object.entries(STATUS_OF) as [ErrorCode, number][]).toSorted(([, a], [, b]) => a - b)) {
    const { request, send } = EXAMPLES[code]
    const reply = await send()
    expect([reply.status, reply.json.error.code], request).toEqual([status, code])
    rows.push(`| \`${code}\` | ${request} | ${reply.json.error.message.replaceAll('|', '\\|')} |`)
  }
  const examples = ['| Code | Request | Message |', '|---|---|---|', ...rows].join('\n')
  await expect(pageWithParts(PAGE, { examples })).toMatchFileSnapshot(`../../${PAGE}`)
})
