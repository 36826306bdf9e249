/**
 * docs/guides/caching.md#invalidation: many clients read while others write. A read that begins after a write
 * was acknowledged never returns the state before it.
 */
import { beforeAll, expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { execute } from '../support/postgres.ts'

const DURATION_MS = 20_000
const WRITERS = 8
const READERS = 32

/**
 * Each table has two writers. One of them writes without pausing; the other pauses after this many reads,
 * because results are only cached during pauses.
 */
const PAUSES = [0, 20, 100, 400]
/** Each writer changes one row in each of its tables. */
const ROWS = WRITERS

let headers: Readonly<Record<string, string>>
const database = databaseFixture()

beforeAll(async () => {
  const tables = PAUSES.map(
    (_, table) => `
      create table counters_${table} (id int primary key, n int not null);
      create table marks_${table} (id int primary key, n int not null, counter_id int not null
        references counters_${table} on delete cascade);
      create view seen_${table} with (security_invoker) as select id, n from counters_${table};
      insert into counters_${table} select id, 0 from generate_series(0, ${ROWS - 1}) id;
      insert into marks_${table} select id, 0, id from generate_series(0, ${ROWS - 1}) id;`,
  )
  await execute(
    database.adminUrl,
    `${tables.join('')}
     create function raise_to(row_id int, value int) returns void volatile
       language sql as 'update counters_3 set n = value where id = row_id';
     grant select, insert, update, delete on all tables in schema public to app`,
  )
})
const gateway = gatewayFixture(database, {
  toml: 'cache.enabled = true\nexplain_max_cost = 0\nexplain_max_rows = 0',
})

beforeAll(async () => {
  headers = { Authorization: `Bearer ${await gateway.token({ tenantId: 't1' })}` }
})

interface Answered {
  readonly status: number
  readonly cache: string | null
  // biome-ignore lint/suspicious/noExplicitAny: each kind of read knows what it asked for
  readonly json: any
}

async function ask(method: string, path: string, body?: unknown): Promise<Answered> {
  const response = await fetch(gateway.url + path, {
    method,
    headers: { ...headers, 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return {
    status: response.status,
    cache: response.headers.get('x-cache'),
    json: text === '' ? null : JSON.parse(text),
  }
}

/**
 * The acknowledged values, by table and row. The mark of a row is written together with the row, or before
 * it.
 */
const counters = PAUSES.map(() => new Array<number>(ROWS).fill(0))
const marks = PAUSES.map(() => new Array<number>(ROWS).fill(0))

interface Row {
  readonly id: number
  readonly n: number
}

/** Reads, and checks that the result is at least as new as the writes acknowledged when the read began. */
type Read = (table: number, row: number) => Promise<Answered>

function assertAtLeast(rows: readonly Row[], floor: readonly number[], what: string): void {
  for (const { id, n } of rows) {
    if (n < (floor[id] ?? 0)) throw new Error(`${what}: row ${id} is ${n}, and ${floor[id]} was acknowledged before`)
  }
}

const READS: readonly Read[] = [
  async (table, row) => {
    const floor = [...(counters[table] ?? [])]
    const found = await ask('GET', `/api/counters_${table}/${row}`)
    // The row does not exist between its deletion and its next insertion.
    if (found.status === 200) assertAtLeast([found.json.data], floor, `${found.cache} one`)
    return found
  },
  async table => {
    const floor = [...(counters[table] ?? [])]
    const found = await ask('GET', `/api/counters_${table}?sort=id`)
    assertAtLeast(found.json.data, floor, `${found.cache} list`)
    return found
  },
  async table => {
    const floor = [...(counters[table] ?? [])]
    const found = await ask('GET', `/api/seen_${table}?select=id,n`)
    assertAtLeast(found.json.data, floor, `${found.cache} view`)
    return found
  },
  async table => {
    const floor = [...(marks[table] ?? [])]
    const found = await ask('GET', `/api/marks_${table}?limit=100`)
    assertAtLeast(found.json.data, floor, `${found.cache} marks`)
    return found
  },
  async table => {
    const floor = [...(counters[table] ?? [])]
    const found = await ask('GET', `/api/marks_${table}?expand=counter`)
    const embedded = (found.json.data as { counter: Row | null }[]).flatMap(({ counter }) => counter ?? [])
    assertAtLeast(embedded, floor, `${found.cache} expand`)
    return found
  },
  async table => {
    const floor = [...(counters[table] ?? [])]
    const found = await ask('POST', '/api/_query', { query: `get counters_${table} where id >= $1`, parameters: [0] })
    assertAtLeast(found.json.data, floor, `${found.cache} query`)
    return found
  },
]

/** The writes of one writer, which set its row of a table to `n` in different ways. */
async function writeOnce(table: number, row: number, n: number): Promise<void> {
  const counter = `/api/counters_${table}/${row}`
  const acknowledge = (written: Answered, of: number[] | undefined) => {
    if (written.status >= 300) throw new Error(`${JSON.stringify(written.json)}`)
    if (of !== undefined) of[row] = n
  }
  switch (n % 5) {
    case 0: {
      // The mark is deleted with its counter by the foreign key, and inserted again with it.
      acknowledge(await ask('DELETE', counter), undefined)
      acknowledge(await ask('POST', `/api/counters_${table}`, { id: row, n }), counters[table])
      acknowledge(await ask('POST', `/api/marks_${table}`, { id: row, n, counter_id: row }), marks[table])
      return
    }
    case 1:
      return acknowledge(await ask('PATCH', `/api/marks_${table}/${row}`, { n }), marks[table])
    case 2: {
      const query = `set counters_${table} values n = ${n} where id = ${row}`
      return acknowledge(await ask('POST', '/api/_query', { query }), counters[table])
    }
    case 3:
      if (table === 3) return acknowledge(await ask('POST', '/api/rpc/raise_to', [row, n]), counters[table])
      return acknowledge(await ask('PATCH', `/api/seen_${table}?id=eq.${row}`, { n }), counters[table])
    default:
      return acknowledge(await ask('PATCH', counter, { n }), counters[table])
  }
}

test('a read that begins after an acknowledged write returns its result', { timeout: 4 * DURATION_MS }, async () => {
  const seen = { HIT: 0, MISS: 0, none: 0 }
  let reads = 0
  let writes = 0
  let failed = false
  const until = performance.now() + DURATION_MS
  const goesOn = () => !failed && performance.now() < until
  let waiting: { after: number; go: () => void }[] = []
  const letGo = (all: boolean) => {
    const ready = waiting.filter(({ after }) => all || after <= reads)
    waiting = waiting.filter(({ after }) => !all && after > reads)
    for (const { go } of ready) go()
  }

  async function writer(index: number): Promise<void> {
    const table = index % PAUSES.length
    for (let n = 1; goesOn(); n++) {
      await writeOnce(table, index, n)
      writes++
      const after = reads + (PAUSES[table] ?? 0)
      if (after > reads && goesOn()) await new Promise<void>(go => waiting.push({ after, go }))
    }
  }

  async function reader(index: number): Promise<void> {
    for (let i = index; goesOn(); i++) {
      const read = READS[i % READS.length]
      // Tables with longer pauses are read more often than those without.
      const table = Math.max(i % PAUSES.length, (i >> 2) % PAUSES.length)
      const { status, cache } = (await read?.(table, i % ROWS)) ?? { status: 0, cache: null }
      if (status !== 200 && status !== 404) throw new Error(`a read was answered ${status}`)
      seen[cache === 'HIT' ? 'HIT' : cache === 'MISS' ? 'MISS' : 'none']++
      reads++
      letGo(false)
    }
    letGo(true)
  }

  const workers = [
    ...Array.from({ length: WRITERS }, (_, index) => writer(index)),
    ...Array.from({ length: READERS }, (_, index) => reader(index)),
  ].map(work =>
    work.catch(error => {
      failed = true
      letGo(true)
      throw error
    }),
  )
  const outcomes = await Promise.allSettled(workers)
  const reasons = outcomes.flatMap(outcome => (outcome.status === 'rejected' ? [String(outcome.reason)] : []))
  expect(reasons).toEqual([])
  // Checks that reads and writes did overlap, even on a busy machine. An idle machine has a hundred times as
  // many.
  expect(writes).toBeGreaterThan(5 * WRITERS)
  expect(seen.HIT).toBeGreaterThan(5 * READERS)
  expect(seen.MISS).toBeGreaterThan(5 * READERS)
  // Finally, every reader agrees with the database.
  for (const [table, floor] of counters.entries()) {
    const { json } = await ask('GET', `/api/counters_${table}?sort=id`)
    assertAtLeast(json.data, floor, 'after the last write')
  }
})
