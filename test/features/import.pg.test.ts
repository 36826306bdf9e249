/**
 * docs/reference/import.md: `POST /api/{table}` with CSV or NDJSON of any length, in one transaction. Columns
 * are checked before any row. An error names its line; with `Prefer: on-error=continue` the rows that fail
 * are left out and reported.
 */
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { watchActivity } from '../support/activity.ts'
import { executeOn } from '../support/execute.ts'
import { clientFixture, databaseFixture, fixture, gatewayFixture } from '../support/fixtures.ts'
import { type AskOptions, type Reply, SECRET, testGateway } from '../support/gateway.ts'
import { residentBytes, startSvc } from '../support/process.ts'

const database = databaseFixture(`
  create type mood as enum ('sad', 'happy');
  create domain code as varchar(4) check (value <> 'bad');
  create table notes (
    id int primary key, title text, mood mood, stars numeric(4, 2), tags text[], doc jsonb, code code, short char(2),
    flags bit(4), at timestamptz, raw bytea, shout text generated always as (upper(title)) stored);
  create table secrets (id int primary key, tenant_id text not null default current_setting('request.tenant_id', true));
  alter table secrets enable row level security;
  create policy own on secrets using (tenant_id = current_setting('app.tenant_id', true)) with check (id < 100);
  create table tree (id int primary key, up int references tree deferrable initially deferred);
  create table pairs (id int primary key, name varchar(5) not null, unique (name));
  create table big (id bigint, a text, b text);
  create sequence made;
  create type stop as enum ('north', 'south');
  create function made_json(stop) returns json language plpgsql as $$
    begin perform nextval('made'); return to_json($1::text); end $$;
  create function made_jsonb(stop) returns jsonb language plpgsql as $$
    begin perform nextval('made'); return to_jsonb($1::text); end $$;
  create cast (stop as json) with function made_json(stop);
  create cast (stop as jsonb) with function made_jsonb(stop);
  create table stops (stop stop primary key);
  grant usage on sequence made to app;
  grant select, insert on stops to app;
  grant select, insert, update on notes, secrets, tree, pairs, big to app`)
const admin = clientFixture(() => database.adminUrl)
const activity = fixture(() => watchActivity(database.adminUrl))
const gateway = gatewayFixture(database, { toml: 'max_result_bytes = 100000' })
const sql = (text: string) => executeOn(admin, text)

function post(path: string, body: string | Buffer, headers: Readonly<Record<string, string>> = {}): Promise<Reply> {
  return gateway.get(`/api/${path}`, {
    method: 'POST',
    body: typeof body === 'string' ? body : new Uint8Array(body),
    headers: { 'Content-Type': 'text/csv', ...headers },
  })
}
const json = (path: string, body: string, headers: Readonly<Record<string, string>> = {}) =>
  post(path, body, { 'Content-Type': 'application/x-ndjson', ...headers })
const CONTINUE = { Prefer: 'on-error=continue' }

beforeEach(async () => {
  await admin.query('truncate notes, secrets, tree, pairs, big')
})

test('without subscribers, no notifications are made of the rows', async () => {
  const isMade = () => sql('select is_called from made')
  expect((await post('stops', 'stop\nnorth\nsouth\n')).json).toEqual({ count: 2, errors: [] })
  expect(await isMade()).toEqual([{ is_called: false }])
  await sql('select jsonb_build_object(1, stop) from stops')
  expect(await isMade()).toEqual([{ is_called: true }])
})

describe('the progress of an import', () => {
  const statusOf = async (id: string, as: AskOptions['as'] = { tenantId: 't1' }) =>
    (await gateway.get(`/api/_imports/${id}`, { as })).json
  const upload = async (id: string) => {
    const authorization = `Bearer ${await gateway.token({ tenantId: 't1' })}`
    return httpRequest(`${gateway.url}/api/notes`, {
      ...{ method: 'POST', headers: { authorization, 'Content-Type': 'text/csv', 'X-Request-Id': id } },
    })
  }

  test('is answered while it runs and afterwards, to its caller only', async () => {
    const sent = await upload('progress-1')
    const lines = Array.from({ length: 20_000 }, (_, n) => `${n},${'x'.repeat(90)}\n`).join('')
    sent.write(`id,title\n${lines}`)
    const running = await vi.waitUntil(async () => {
      const { data } = await statusOf('progress-1')
      return data?.count > 0 ? data : null
    })
    expect(running).toMatchObject({
      id: 'progress-1',
      table: 'notes',
      state: 'running',
      total_bytes: null,
      error: null,
    })
    expect(running.bytes).toBeGreaterThan(0)
    expect(await sql('select count(*)::int from notes')).toEqual([{ count: 0 }])
    expect((await statusOf('progress-1', { tenantId: 't2' })).error.code).toBe('NOT_FOUND')
    expect((await statusOf('progress-1', { tenantId: 't1', userId: 'other' })).error.code).toBe('NOT_FOUND')
    sent.end()
    const [response] = await once(sent, 'response')
    expect(response.resume().statusCode).toBe(201)
    expect((await statusOf('progress-1')).data).toEqual({
      ...{ id: 'progress-1', table: 'notes', state: 'done', total_bytes: null, errors: 0, error: null },
      ...{ bytes: 9 + lines.length, count: 20_000 },
    })
  })

  test('can take longer than statement_timeout_ms, which applies to each statement', async () => {
    const hasty = await testGateway(database.url, { toml: 'statement_timeout_ms = 400' })
    try {
      const authorization = `Bearer ${await hasty.token({ tenantId: 't1' })}`
      const headers = { authorization, 'Content-Type': 'text/csv', 'X-Request-Id': 'progress-3' }
      const sent = httpRequest(`${hasty.url}/api/notes`, { method: 'POST', headers })
      const lines = (from: number) =>
        Array.from({ length: 5_000 }, (_, n) => `${from + n},${'x'.repeat(90)}\n`).join('')
      sent.write(`id,title\n${lines(0)}`)
      await vi.waitUntil(async () => (await hasty.get('/api/_imports/progress-3')).json.data?.count > 0)
      await admin.query('select pg_sleep(0.6)')
      sent.end(lines(5_000))
      const [response] = await once(sent, 'response')
      expect(response.resume().statusCode).toBe(201)
      expect(await sql('select count(*)::int from notes')).toEqual([{ count: 10_000 }])
    } finally {
      await hasty.close()
    }
  })

  test('ends with the error, or with the number of rows left out', async () => {
    const failed = await post('notes', 'id,title\nx,a\n', { 'X-Request-Id': 'progress-2' })
    const { code, status, message } = failed.json.error
    expect((await statusOf('progress-2')).data).toMatchObject({
      ...{ state: 'failed', total_bytes: 13, count: 0, error: { code, status, message } },
    })
    await post('notes', 'id,title\nx,a\n1,b\n', { 'X-Request-Id': 'progress-2', ...CONTINUE })
    expect((await statusOf('progress-2')).data).toMatchObject({ state: 'done', count: 1, errors: 1, error: null })
  })

  test('is unknown for other ids, and only read', async () => {
    expect((await gateway.get('/api/_imports/none')).status).toBe(404)
    const { status, headers } = await gateway.get('/api/_imports/none', { method: 'DELETE' })
    expect([status, headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  })
})

describe('CSV', () => {
  test('inserts rows of every type, with NULL as an unquoted empty field and "" as the empty text', async () => {
    const csv =
      'id,title,mood,stars,tags,doc,code,short,flags,at,raw\r\n' +
      '1,"a ""b"", c",happy,1.005,"{x,""y z""}","{""a"": [1]}",abcd,ab,1010,2024-01-02T03:04:05Z,\\x00ff\r\n' +
      '2,"two\nlines \\ {NULL}",,,,,,,,,\n3,"",sad,99,{},null,a,b,0001,2024-01-02,\\x\n4,NULL,,,,,,,,,'
    const { status, json: report } = await post('notes', csv)
    expect([status, report]).toEqual([201, { count: 4, errors: [] }])
    expect(
      await sql('select id, title, mood, stars, tags, doc, code, short, flags, raw from notes order by id'),
    ).toEqual([
      {
        ...{ id: 1, title: 'a "b", c', mood: 'happy', stars: '1.01', tags: ['x', 'y z'], doc: { a: [1] } },
        ...{ code: 'abcd', short: 'ab', flags: '1010', raw: Buffer.from([0, 255]) },
      },
      {
        ...{ id: 2, title: 'two\nlines \\ {NULL}', mood: null, stars: null, tags: null, doc: null },
        ...{ code: null, short: null, flags: null, raw: null },
      },
      {
        ...{ id: 3, title: '', mood: 'sad', stars: '99.00', tags: [], doc: null, code: 'a', short: 'b ' },
        ...{ flags: '0001', raw: Buffer.alloc(0) },
      },
      {
        ...{ id: 4, title: 'NULL', mood: null, stars: null, tags: null, doc: null },
        ...{ code: null, short: null, flags: null, raw: null },
      },
    ])
  })

  test.each([
    ['an empty file', '', 'line 1: the header is missing'],
    ['an empty line', '\n1,2', 'line 1: the header is missing'],
    ['an unknown column', 'id,titel\n1,a', 'titel'],
    ['a repeated column', 'id,id\n1,1', 'names column "id" twice'],
    ['an empty name', 'id,\n1,1', 'field 2 of the header is empty'],
    ['a generated column', 'id,shout\n1,A', 'shout'],
  ])('is checked before any row: %s', async (_, csv, message) => {
    const { status, json: body } = await post('notes', csv, CONTINUE)
    expect(status).toBeGreaterThanOrEqual(400)
    expect(body.error.message).toContain(message)
  })

  test('with a header and no rows inserts nothing', async () => {
    for (const csv of ['id,title', 'id,title\n', '\ufeffid,title\r\n'])
      expect((await post('notes', csv)).json).toEqual({ count: 0, errors: [] })
  })

  test('can begin with a byte order mark, and its last line needs no line break', async () => {
    expect((await post('notes', '\ufeff"id",title\r\n1,a\r\n2,b')).json.count).toBe(2)
  })

  test.each([
    ['a field too few', 'id,title\n1,a\n2\n', 3, null, 'has 1 fields, but the header has 2'],
    ['a field too many', 'id,title\n1,a,b\n', 2, null, 'has 3 fields'],
    ['a value of another type', 'id,title\n1,"x\ny"\nz,b\n', 4, 'id', 'column "id" is integer and cannot hold "z"'],
    ['a value that is too long', 'id,code\n1,abcde\n', 2, null, 'too long'],
    ['a value that a domain refuses', 'id,code\n1,bad\n', 2, null, 'code'],
    ['invalid JSON', 'id,doc\n1,"{""a"""\n', 2, null, 'json'],
    ['an unknown label', 'id,mood\n1,glad\n', 2, 'mood', 'expected one of sad, happy'],
    ['a repeated key', 'id,title\n1,a\n1,b\n', 3, 'id', 'duplicate key'],
    ['invalid UTF-8', Buffer.from('id,title\n1,ok\n2,\xff\n', 'latin1'), 3, null, 'field 2 is not valid UTF-8'],
    ['a NUL character', 'id,title\n1,a\0b\n', 2, null, 'NUL'],
  ])('names the line and the column of %s', async (_, csv, line, column, message) => {
    const { status, json: body } = await post('notes', csv)
    expect(status).toBe(400)
    expect(body.error.message).toMatch(new RegExp(`^line ${line}: `))
    expect(body.error.message).toContain(message)
    expect(body.error.details).toMatchObject({ line, ...(column === null ? {} : { column }) })
    expect(await sql('select * from notes')).toEqual([])
    const report = await post('notes', csv, CONTINUE)
    expect(report.status).toBe(200)
    expect(report.headers.get('preference-applied')).toBe('on-error=continue')
    expect(report.json.errors).toMatchObject([{ line }])
    expect(await sql('select count(*)::int as n from notes')).toEqual([{ n: report.json.count }])
  })

  test.each([
    ['a quote that is not closed', 'id,title\n1,a\n2,"b\n', 'line 3'],
    ['a quote inside a field', 'id,title\n1,a"b\n', 'line 2'],
    ['text after a quote', 'id,title\n1,"a"b\n', 'line 2'],
    ['a lone carriage return', 'id,title\r1,a\r', 'line 1'],
  ])('that is malformed ends even an import that continues: %s', async (_, csv, line) => {
    const { status, json: body } = await post('notes', csv, CONTINUE)
    expect([status, body.error.code]).toEqual([400, 'PARSE_ERROR'])
    expect(body.error.message).toContain(line)
    expect(await sql('select * from notes')).toEqual([])
  })

  test('has records of limited size', async () => {
    const { status, json: body } = await post('notes', `id,title\n1,a\n2,"${'x'.repeat(10_000_000)}"\n`)
    expect([status, body.error.code]).toEqual([413, 'PAYLOAD_TOO_LARGE'])
    expect(body.error.message).toContain('line 3')
  })
})

describe('NDJSON', () => {
  test('inserts objects with different keys, and skips empty lines', async () => {
    const lines = '{"id":1,"title":"a","tags":["x"],"doc":{"b":[1]}}\r\n\n{"id":2}\n{"title":"c","id":3}'
    expect((await json('notes', lines)).json).toEqual({ count: 3, errors: [] })
    expect(await sql('select id, title, tags, doc from notes order by id')).toEqual([
      { id: 1, title: 'a', tags: ['x'], doc: { b: [1] } },
      { id: 2, title: null, tags: null, doc: null },
      { id: 3, title: 'c', tags: null, doc: null },
    ])
  })

  test('reports each line that fails', async () => {
    const lines = [
      '{"id":1}',
      '{"id":2},{"id":99}',
      '[{"id":3}]',
      '{"id":"x"}',
      '{"id":4,"titel":"a"}',
      '{"id":1,"title":"again"}',
      '{"id":5',
      '{"id":6}',
    ]
    const { status, json: report } = await json('notes', lines.join('\n'), CONTINUE)
    expect(status).toBe(200)
    expect(report).toMatchObject({
      count: 2,
      errors: [
        { line: 2, column: null },
        { line: 3, column: null, message: 'found an array; each line must be an object' },
        { line: 4, column: 'id' },
        { line: 5, column: null, message: expect.stringContaining('did you mean "title"?') },
        { line: 6, column: 'id' },
        { line: 7, column: null, message: expect.stringMatching(/^character 8: /) },
      ],
    })
    expect(await sql('select id from notes order by id')).toEqual([{ id: 1 }, { id: 6 }])
  })
})

describe('rules of other writes hold', () => {
  test('row-level security is applied to each row', async () => {
    const csv = 'id,tenant_id\n1,t1\n200,t1\n3,t1\n'
    const refused = await post('secrets', csv)
    expect(refused.status).toBe(403)
    expect(refused.json.error.message).toMatch(/^line 3: /)
    expect((await post('secrets', csv, CONTINUE)).json).toMatchObject({ count: 2, errors: [{ line: 3 }] })
  })

  test('an upsert applies the later of two lines', async () => {
    await post('pairs', 'id,name\n1,one\n')
    const csv = 'id,name\n1,uno\n2,dos\n2,two\n'
    const { status, json: report } = await post('pairs', csv, { 'X-Upsert': 'true' })
    expect([status, report]).toEqual([200, { count: 4 - 1, errors: [] }])
    expect(await sql('select * from pairs order by id')).toEqual([
      { id: 1, name: 'uno' },
      { id: 2, name: 'two' },
    ])
  })

  test('deferred constraints are checked at the end', async () => {
    expect((await post('tree', 'id,up\n1,2\n2,1\n')).json.count).toBe(2)
    const refused = await post('tree', 'id,up\n3,9\n', CONTINUE)
    expect(refused.status).toBe(400)
    expect(await sql('select count(*)::int as n from tree')).toEqual([{ n: 2 }])
  })

  test('parameters and headers that do not apply to an import are refused', async () => {
    expect((await post('pairs?returning=id', 'id\n1')).status).toBe(400)
    expect((await post('pairs', 'id\n1', { Prefer: 'return=representation' })).status).toBe(400)
    expect((await post('pairs', 'id\n1', { 'Content-Type': 'text/csv; charset=latin1' })).status).toBe(415)
    expect((await post('pairs', 'id\n1', { 'Content-Encoding': 'gzip' })).status).toBe(415)
    expect((await post('nothing', 'id\n1')).status).toBe(404)
    expect(
      (await gateway.get('/api/pairs', { as: null, method: 'POST', headers: { 'Content-Type': 'text/csv' } })).status,
    ).toBe(401)
  })

  test('a report has a limited number of errors', async () => {
    const csv = `id,name\n${'x,y\n'.repeat(1_001)}`
    const { status, json: body } = await post('pairs', csv, CONTINUE)
    expect([status, body.error.code]).toEqual([400, 'PARSE_ERROR'])
    expect(body.error.message).toContain('more than 1000 rows fail')
  })
})

/** An upload whose parts are sent one at a time. */
async function openUpload(url: string, headers: Readonly<Record<string, string>> = {}) {
  const upload = httpRequest(`${url}/api/big`, {
    method: 'POST',
    headers: {
      'Content-Type': 'text/csv',
      Authorization: `Bearer ${await gateway.token({ tenantId: 't1' })}`,
      ...headers,
    },
  })
  upload.on('error', () => {})
  const answered = once(upload, 'response').then(async ([response]) => {
    const chunks: Buffer[] = []
    for await (const chunk of response) chunks.push(chunk)
    return { status: response.statusCode, json: JSON.parse(Buffer.concat(chunks).toString()) }
  })
  answered.catch(() => {})
  return { upload, answered }
}

const ROW = `1,${'a'.repeat(500)},"${'b'.repeat(480)}"\n`
const ROWS = ROW.repeat(1_000)
const OPEN = `select count(*)::int from pg_stat_activity
  where datname = current_database() and xact_start is not null and pid <> pg_backend_pid()
    and backend_type = 'client backend'`

describe('a long upload', () => {
  test('is rolled back when the client disconnects', async () => {
    const { upload } = await openUpload(gateway.url)
    upload.write(`id,a,b\n${ROWS}`)
    await activity.until(OPEN, count => count === 1)
    upload.destroy()
    await activity.until(OPEN, count => count === 0)
    expect(await sql('select count(*)::int as n from big')).toEqual([{ n: 0 }])
  })

  test('that is refused is answered while the client still sends', async () => {
    const { upload, answered } = await openUpload(gateway.url)
    upload.write(`id,wrong\n${ROWS}`)
    // The gateway waits for the rest only for a short time.
    expect(await answered).toMatchObject({ status: 400 })
    upload.destroy()
  })

  test('has limits on its bytes, its time, its speed and the number of uploads', async () => {
    const limited = await testGateway(database.url, {
      toml: `max_import_bytes = 100000\nmax_imports = 2\ntenant_max_imports = 1\nimport_timeout_ms = 1000
        stream_min_bytes_per_sec = 1000\nstream_min_rate_window_secs = 1`,
    })
    try {
      const first = await openUpload(limited.url)
      first.upload.write('id,a,b\n')
      await expect
        .poll(async () => {
          const second = await openUpload(limited.url)
          second.upload.end('id,a,b\n')
          return (await second.answered).status
        })
        .toBe(429)
      expect(await first.answered).toMatchObject({ status: 408, json: { error: { code: 'TIMEOUT' } } })
      const large = await openUpload(limited.url)
      large.upload.end(`id,a,b\n${ROWS}`)
      expect(await large.answered).toMatchObject({ status: 413 })
      const announced = await openUpload(limited.url, { 'Content-Length': '200000' })
      announced.upload.write('id,a,b\n')
      expect(await announced.answered).toMatchObject({ status: 413 })
    } finally {
      await limited.close()
    }
  })

  test('of two tenants leaves one of the running imports for a third', async () => {
    const limited = await testGateway(database.url, { toml: 'max_imports = 4\ntenant_max_imports = 2' })
    const uploads: Awaited<ReturnType<typeof openUpload>>['upload'][] = []
    /** Begins an import that does not end, and returns its status once it is running or refused. */
    const begin = async (tenant: string): Promise<number> => {
      const id = `import-${uploads.length}-of-${tenant}`
      const token = await limited.token({ tenantId: tenant })
      const headers = { 'X-Request-Id': id, Authorization: `Bearer ${token}` }
      const { upload, answered } = await openUpload(limited.url, headers)
      uploads.push(upload)
      upload.write('id,a,b\n')
      const refused = answered.then(({ status }) => status)
      refused.catch(() => {})
      for (;;) {
        const running = limited.get(`/api/_imports/${id}`, { headers }).then(({ status }) => status)
        const status = await Promise.race([refused, running])
        if (status !== 404) return status
      }
    }
    try {
      expect([await begin('t1'), await begin('t1'), await begin('t1')]).toEqual([200, 200, 429])
      expect([await begin('t2'), await begin('t2')]).toEqual([200, 503])
      expect([await begin('t3'), await begin('t4')]).toEqual([200, 503])
    } finally {
      for (const upload of uploads) upload.destroy()
      await limited.close()
    }
  })

  test('of 100 MB takes little memory and leaves other requests their turn', async () => {
    const svc = startSvc(['serve'], { DATABASE_URL: database.url, JWT_SECRET: SECRET, SVC_BIND: '127.0.0.1:0' })
    const url = await svc.says(/(http:\/\/127\.0\.0\.1:\d+)/)
    try {
      const send = async (blocks: number, measure: () => Promise<void>) => {
        const { upload, answered } = await openUpload(url)
        upload.write('id,a,b\n')
        for (let block = 0; block < blocks; block++) {
          if (!upload.write(ROWS)) await once(upload, 'drain')
          if (block % 5 === 0) await measure()
        }
        upload.end()
        return answered
      }
      // The first rows warm up what is compiled and allocated once.
      expect(await send(10, async () => {})).toMatchObject({ status: 201 })
      const pid = svc.child.pid ?? 0
      const before = await residentBytes(pid)
      let most = before
      const measure = async () => {
        most = Math.max(most, await residentBytes(pid))
      }
      expect(await send(105, measure)).toEqual({ status: 201, json: { count: 105_000, errors: [] } })
      await measure()
      expect((most - before) / 1024 / 1024).toBeLessThan(64)
      // An import that is under way when the process is killed is rolled back.
      const { upload } = await openUpload(url)
      upload.write(`id,a,b\n${ROWS}`)
      await activity.until(OPEN, count => count === 1)
      svc.child.kill('SIGKILL')
      await activity.until(OPEN, count => count === 0)
      expect(await sql('select count(*)::int as n from big')).toEqual([{ n: 115_000 }])
      upload.destroy()
    } finally {
      svc.child.kill('SIGKILL')
      await svc.exited
    }
  })
})
