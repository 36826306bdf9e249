/**
 * docs/reference/limits.md#expanded-rows: PostgreSQL fails at the related row with which an array becomes too
 * large, before it uses the memory for the array.
 */
import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { clientFixture, databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import type { Reply } from '../support/gateway.ts'
import { ask } from '../support/raw-http.ts'
import { sender } from '../support/send.ts'
import { uniqueName } from '../support/server.ts'

const LIMIT = 100_000
const MEBIBYTE = 1024 * 1024
const reader = uniqueName('reader')

// Values compress to a hundredth, so nothing in the catalog or in the sizes of the tables shows their length.
const database = databaseFixture(`
  create table shelves (id int primary key, name text not null);
  create table books (id int primary key, shelf_id int references shelves, weight real, body text not null);
  create table reviews (id int primary key, book_id int references books, shelf_id int references shelves,
    body text not null);
  insert into shelves values (1, 'half'), (2, 'full'), (3, 'empty'), (4, 'reviewed'), (5, 'huge');
  insert into books select n, 1, 1, repeat('x', 5000) from generate_series(101, 110) n;
  insert into books select n, 2, 1, repeat('x', 5000) from generate_series(201, 230) n;
  insert into books values (401, 4, 1, ''), (402, 4, 1, '');
  insert into books select n, 5, 1, repeat('x', 1000000) from generate_series(501, 800) n;
  insert into reviews select n, 401, 1, repeat('x', 5000) from generate_series(1, 12) n;
  insert into reviews select n, 402, 1, repeat('x', 5000) from generate_series(21, 32) n;
  create index on books (shelf_id);
  create index on reviews (book_id);
  create function heavy(weight real) returns real immutable language plpgsql as
    $$ begin return 1e38::real * (weight * 10); end $$;
  create view weights with (security_invoker = true) as select id, heavy(weight) from books;
  grant select, update on all tables in schema public to app;
  create role ${reader} nologin;
  grant usage on schema public to ${reader};
  grant select on all tables in schema public to ${reader};
  grant ${reader} to app;
`)
const doors = `\n[postgrest]\nenabled = true\nanon_role = "${reader}"\naggregates_enabled = true`
const gateway = gatewayFixture(database, {
  toml: `max_collected_bytes = ${LIMIT}\nmax_result_bytes = 400000\nexplain_max_cost = 0\nexplain_max_rows = 0${doors}`,
})
const post = sender(() => gateway, 'POST')
const patch = sender(() => gateway, 'PATCH')

const query = (text: string): Promise<Reply> => post('/api/_query', { query: text })
const expand = (shelf: number, relations = 'books') =>
  gateway.get(`/api/shelves?id=${shelf}&expand=nested:${relations}`)
const embed = (path: string) => gateway.get(`/rest/v1/${path}`, { as: null })

function expectRefused(reply: Reply): void {
  expect([reply.status, reply.json.error?.code], reply.text.slice(0, 300)).toEqual([400, 'PARSE_ERROR'])
  expect(reply.json.error.message).toBe(
    'the related rows of one row have more bytes than max_collected_bytes allows; request fewer rows or columns',
  )
}

describe('an array above max_collected_bytes', () => {
  test('is refused in a list, a single row, and the response to a write', async () => {
    expectRefused(await expand(2))
    expectRefused(await gateway.get('/api/shelves/2?expand=nested:books'))
    expectRefused(await patch('/api/shelves/2?expand=nested:books', { name: 'changed' }))
    expect((await gateway.get('/api/shelves/2')).json.data.name).toBe('full')
  })
  test('is refused in a query text', async () => {
    expectRefused(await query('get shelves nest many books where id = 2'))
    expectRefused(await query('get shelves nest many books { order by id } where id > 0 order by name offset 1'))
  })
  test('is refused in the dialect of PostgREST, also as jsonb', async () => {
    for (const select of ['id,books(*)', 'books(*),count()', 'id,...books(body)']) {
      const reply = await embed(`shelves?select=${select}&id=eq.5`)
      expect([reply.status, reply.json.code, reply.json.message], select).toEqual([
        ...[400, 'PARSE_ERROR', expect.stringContaining('max_collected_bytes allows')],
      ])
    }
  })
  test('ends a stream', async () => {
    expectRefused(await gateway.get('/api/shelves?id=2&stream=true&expand=nested:books'))
    const stream = await ask(
      `${gateway.url}/api/shelves?id=in.(2,3)&sort=-id&stream=true&expand=nested:books`,
      await gateway.token({ tenantId: 't1' }),
    )
    const [row = '', error = ''] = await stream.lines()
    expect(JSON.parse(row)).toEqual({ id: 3, name: 'empty', books: [] })
    expect(JSON.parse(error).error.message).toContain('max_collected_bytes')
  })
  test('is counted in a metric', async () => {
    expectRefused(await expand(2))
    const { text } = await gateway.get('/metrics', { as: null })
    expect(text).toMatch(/^svc_statements_refused_total\{limit="max_collected_bytes"\} [1-9]/m)
  })
})

describe('an array within max_collected_bytes', () => {
  test('is unchanged, empty or not, however many rows have one', async () => {
    const { json } = await gateway.get('/api/shelves?id=in.(1,3,4)&sort=id&expand=nested:books(id)')
    expect(json.data.map((row: { books: unknown[] }) => row.books.length)).toEqual([10, 0, 2])
    expect(json.data[2].books).toEqual([{ id: 401 }, { id: 402 }])
    const many = await gateway.get('/api/books?id.lt=300&expand=shelves,nested:reviews&limit=100')
    expect([many.status, many.json.count]).toEqual([200, 40])
    expect((await expand(1)).json.data[0].books[0].body).toHaveLength(5000)
    const embedded = await embed('shelves?select=id,books(id)&id=in.(3,4)&order=id')
    expect(embedded.json).toEqual([
      { id: 3, books: [] },
      { id: 4, books: [{ id: 401 }, { id: 402 }] },
    ])
    expect((await embed('shelves?select=books(id),count()&id=in.(3,4)')).json).toEqual(
      expect.arrayContaining([
        { books: [], count: 1 },
        { books: [{ id: 401 }, { id: 402 }], count: 1 },
      ]),
    )
  })
  test('can have fewer columns or rows of the same relation', async () => {
    expect((await expand(2, 'books(id)')).json.data[0].books).toHaveLength(30)
    const few = await query('get shelves nest many books { limit 15 } where id = 2')
    expect(few.json.data[0].books).toHaveLength(15)
  })
  test('has no limit if the limit is 0', async () => {
    const open = gatewayWithoutLimit
    const reply = await open.get('/api/shelves?id=2&expand=nested:books')
    expect(reply.json.data[0].books).toHaveLength(30)
  })
})
const gatewayWithoutLimit = gatewayFixture(database, { toml: 'max_collected_bytes = 0' })

describe('the limit', () => {
  test('is shared by the arrays of one row', async () => {
    expect((await expand(1)).status).toBe(200)
    expect((await expand(1, 'reviews(id)')).status).toBe(200)
    expectRefused(await gateway.get('/api/shelves?id=1&expand=nested:books,nested:reviews(id)'))
  })
  test('is shared by the arrays of all subqueries', async () => {
    const rows = '(get shelves nest many books { fields id, body } fields id where id = 1)'
    expect((await query(`get ${rows} a fields a.id, a.books`)).status).toBe(200)
    expectRefused(await query(`get ${rows} a inner join ${rows} b on a.id = b.id fields a.books, b.books as other`))
  })
  test('includes the arrays within the rows', async () => {
    // 60 000 bytes of each book, 120 000 of the shelf.
    expect((await gateway.get('/api/books/401?expand=nested:reviews')).status).toBe(200)
    expect((await gateway.get('/api/books?id.gte=401&id.lte=402&expand=nested:reviews')).status).toBe(200)
    expectRefused(await expand(4, 'books(id).nested:reviews'))
    expect((await expand(4, 'books(id).nested:reviews(id)')).status).toBe(200)
  })
})

test('an overflow in a function is not the limit', async () => {
  const reply = await query('get shelves nest many weights on weights.id > shelves.id where id = 1')
  expect([reply.status, reply.json.error.code, reply.json.error.details.sqlstate]).toEqual([
    400,
    'QUERY_ERROR',
    '22003',
  ])
})

test('a response above max_result_bytes has the status 400 in the dialect of PostgREST, too', async () => {
  const reply = await embed('books?select=body&limit=100')
  expect([reply.status, reply.json.message]).toEqual([400, expect.stringContaining('(max_result_bytes)')])
})

describe('with 300 MB of related rows', () => {
  const own = gatewayFixture(database, { toml: 'max_connections = 1\nexplain_max_cost = 0\nexplain_max_rows = 0' })
  const admin = clientFixture(() => database.adminUrl)

  // Other systems have no /proc.
  test.skipIf(process.platform !== 'linux')('PostgreSQL needs no more memory than the limit', async () => {
    expectRefused(await own.get('/api/shelves?id=5&expand=nested:books'))
    const used = await Promise.all((await pids()).map(peakBytes))
    expect(Math.max(...used)).toBeGreaterThan(MEBIBYTE)
    // Without the limit, it is more than 2 GB.
    expect(Math.max(...used)).toBeLessThan(320 * MEBIBYTE)
  })

  async function pids(): Promise<readonly number[]> {
    const { rows } = await admin.query<{ pid: number }>(
      `select pid from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`,
    )
    return rows.map(({ pid }) => pid)
  }

  /** The peak memory of the process. */
  async function peakBytes(pid: number): Promise<number> {
    const status = await readFile(`/proc/${pid}/status`, 'utf8')
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]) * 1024
  }
})
