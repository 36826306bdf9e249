/**
 * The time to read a large schema, and the memory to keep it: 5 000 tables, 60 000 columns.
 * Run with `npx tsx --expose-gc bench/catalog.ts`. Starts a private PostgreSQL and removes it. Targets: under
 * 3 s, under 150 MB.
 */
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { buildCatalog } from '../src/catalog/build.ts'
import { introspect, readFingerprint } from '../src/catalog/introspect.ts'
import type { Catalog } from '../src/catalog/model.ts'
import { queryThrough } from '../src/catalog/query.ts'
import { catalogStatement } from '../src/catalog/statement.ts'
import { createPool } from '../src/postgres/pool.ts'
import { parseUrl } from '../src/postgres/url.ts'
import { createTemplate, startTestServer } from '../test/support/server.ts'

const TABLES = 5_000
const ROUNDS = 7
const LOAD_MS_MAX = 3_000
const MEMORY_MB_MAX = 150
const OPTIONS = { schemas: ['public'], exposedViews: [] }

const collect = globalThis.gc
if (collect === undefined) throw new Error('run with --expose-gc: npx tsx --expose-gc bench/catalog.ts')

const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'))
// PostgreSQL may run as another user than this process.
await chmod(folder, 0o755)
try {
  const template = join(folder, 'template')
  await createTemplate(template)
  const server = await startTestServer(template)
  try {
    await makeSchema(server.adminUrl)
    await measure(server.url)
  } finally {
    await server.close()
  }
} finally {
  await rm(folder, { recursive: true, force: true })
}

/**
 * Twelve columns per table of many types. Each table, except every hundredth, refers to the previous one.
 * Three comments per table.
 */
async function makeSchema(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`
    create type status as enum ('new', 'paid', 'shipped');
    create domain email as text check (value like '%@%')`)
  for (let first = 1; first <= TABLES; first += 100) {
    const numbers = Array.from({ length: Math.min(100, TABLES - first + 1) }, (_, n) => first + n)
    await client.query(numbers.map(n => tableText(n, n === first ? null : `table_${n - 1}`)).join(';'))
  }
  await client.query('vacuum analyze')
  await client.end()
}

function tableText(n: number, parent: string | null): string {
  return `
    create table table_${n} (
      id bigint generated always as identity primary key, tenant_id uuid not null, name text not null,
      parent_id bigint ${parent === null ? '' : `references ${parent}`},
      email email, status status not null default 'new',
      tags text[], total numeric(10,2) not null default 0, meta jsonb not null default '{}',
        code_${n} varchar(20) unique,
      created_at timestamptz not null default now(), twice numeric generated always as (total * 2) stored);
    comment on table table_${n} is 'Table number ${n}';
    comment on column table_${n}.name is 'The name of a row of table ${n}';
    comment on column table_${n}.total is 'What it costs, in table ${n}'`
}

async function measure(url: string): Promise<void> {
  const pool = createPool({ target: parseUrl(url), maxConnections: 1 })
  await pool.ready()
  const query = queryThrough(pool)
  const before = memory()
  const [catalog, firstMs] = await timed(() => introspect(query, OPTIONS))
  const after = memory()
  const peakMb = process.resourceUsage().maxRSS / 1024

  const loads: number[] = []
  const looks: number[] = []
  const builds: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    loads.push((await timed(() => introspect(query, OPTIONS)))[1])
    looks.push((await timed(() => readFingerprint(query, OPTIONS)))[1])
    const { text, parameters } = catalogStatement(OPTIONS)
    const rows = await query(text, parameters)
    builds.push((await timed(async () => buildCatalog(rows, OPTIONS)))[1])
  }
  await pool.close({ deadlineMs: 1_000 })

  const loadMs = median(loads)
  const memoryMb = Math.max(after.heapMb - before.heapMb, after.rssMb - before.rssMb)
  console.table({
    ...contents(catalog),
    'first load, ms': round(firstMs),
    [`load, ms (median of ${ROUNDS})`]: round(loadMs),
    'of it building, the event loop stands still, ms': round(median(builds)),
    'fingerprint, ms': round(median(looks)),
    'heap growth, MB': round(after.heapMb - before.heapMb),
    'rss growth, MB': round(after.rssMb - before.rssMb),
    'rss peak of the process, MB': round(peakMb),
  })
  // The catalog must stay alive until its memory has been measured.
  if (catalog.tables.size !== TABLES) throw new Error(`read ${catalog.tables.size} tables, not ${TABLES}`)
  verdict('load', Math.max(firstMs, loadMs), LOAD_MS_MAX, 'ms')
  verdict('memory', memoryMb, MEMORY_MB_MAX, 'MB')
}

function contents(catalog: Catalog): Record<string, number> {
  const tables = [...catalog.tables.values()]
  const sum = (count: (table: (typeof tables)[number]) => number) =>
    tables.reduce((total, one) => total + count(one), 0)
  return {
    tables: tables.length,
    columns: sum(table => table.columns.length),
    relations: sum(table => table.relations.length),
  }
}

function memory(): { heapMb: number; rssMb: number } {
  collect?.()
  const { heapUsed, rss } = process.memoryUsage()
  return { heapMb: heapUsed / 2 ** 20, rssMb: rss / 2 ** 20 }
}

async function timed<T>(work: () => Promise<T>): Promise<[T, number]> {
  const startedAt = performance.now()
  return [await work(), performance.now() - startedAt]
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

function verdict(what: string, value: number, limit: number, unit: string): void {
  const met = value < limit
  console.log(`${met ? 'met' : 'MISSED'}: ${what} ${round(value)} ${unit}, under ${limit} ${unit} wanted`)
  if (!met) process.exitCode = 1
}
