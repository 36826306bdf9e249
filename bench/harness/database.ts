/**
 * The benchmarks' private PostgreSQL: the demo's cluster with the demo's data and a large table. It
 * acknowledges commits before they are on disk.
 */
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { type Embedded, startEmbedded } from '../../src/demo/embedded.ts'
import { cacheFolder } from '../../src/demo/folders.ts'
import { OWNER_ROLE, SAMPLE_TENANTS } from '../../src/demo/sample.ts'

export interface Database {
  /** Connects as the gateway's role. */
  readonly url: string
  /** Connects as superuser. */
  readonly adminUrl: string
  readonly logFile: string
  readonly version: string
  /** Runs one statement as superuser. */
  admin(sql: string): Promise<readonly Record<string, unknown>[]>
  close(): Promise<void>
}

export const STREAM_TABLE = 'bench_measurements'
export const STREAM_ROWS = 1_000_000

/** The largest shop of the sample. Everything is measured as one of its clerks. */
export const TENANT: (typeof SAMPLE_TENANTS)[number] = largest()

export async function startDatabase(print: (line: string) => void): Promise<Database> {
  const cache = join(await cacheFolder(process.env), 'bench')
  await mkdir(cache, { recursive: true, mode: 0o755 })
  const { embedded, client } = await startLogical(() => startEmbedded({ fresh: false, cache, print }))
  const admin = async (sql: string) => (await client.query<Record<string, unknown>>(sql)).rows
  // A run that was killed can leave some, which would keep everything that is written.
  await admin('select pg_drop_replication_slot(slot_name) from pg_replication_slots where not active')
  // The transaction of each logged statement, which `capture` uses.
  await admin("alter system set log_line_prefix = '%m [%p] %v '")
  // If it were on, lanes that write single rows would mostly wait for the disk and be equally slow.
  await admin('alter system set synchronous_commit = off')
  await admin('select pg_reload_conf()')
  const [version] = await admin('show server_version')
  return {
    url: embedded.url,
    adminUrl: embedded.adminUrl,
    logFile: join(embedded.folder, 'server.log'),
    version: String(version?.server_version),
    admin,
    async close() {
      await client.end()
      await embedded.close()
    },
  }
}

/** Starts the server with logical decoding; the first start of a new cluster is followed by another one. */
async function startLogical(start: () => Promise<Embedded>): Promise<{ embedded: Embedded; client: pg.Client }> {
  const embedded = await start()
  const client = new pg.Client({ connectionString: embedded.adminUrl })
  await client.connect()
  const { rows } = await client.query<{ wal_level: string }>('show wal_level')
  if (rows[0]?.wal_level === 'logical') return { embedded, client }
  await client.query("alter system set wal_level = 'logical'")
  await client.end()
  await embedded.close()
  return startLogical(start)
}

/** Figures of a database without row-level security would be worthless. */
export async function assertIsolated(database: Database): Promise<void> {
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  try {
    const { rows } = await client.query<{ relname: string }>(
      `select relname from pg_class
        where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not row_security_active(oid)`,
    )
    if (rows.length > 0)
      throw new Error(`no row-level security is in force on ${rows.map(row => row.relname).join(', ')}`)
  } finally {
    await client.end()
  }
}

/**
 * Rows of moderate width with the same row-level security as the sample's tables. Created once, within
 * seconds, completely or not at all.
 */
export async function ensureStreamTable(database: Database, print: (line: string) => void): Promise<void> {
  const [found] = await database.admin(`select to_regclass('${STREAM_TABLE}') is not null as complete`)
  if (found?.complete === true) return
  print(`Making ${STREAM_ROWS} rows (once, some seconds) …`)
  for (const statement of streamTable(new URL(database.url).username)) await database.admin(statement)
}

function streamTable(role: string): readonly string[] {
  return [
    'begin',
    `set local role ${OWNER_ROLE}`,
    `create table ${STREAM_TABLE} (
      id bigint primary key,
      tenant_id uuid not null,
      sensor text not null,
      value numeric(10, 3) not null,
      taken_at timestamptz not null
    )`,
    `insert into ${STREAM_TABLE}
      select n, '${TENANT.id}', 'sensor-' || n % 500, (n * 7919::bigint % 1000000) / 1000.0,
        timestamptz '2026-01-01 00:00:00+00' + n * interval '1 second'
      from generate_series(1, ${STREAM_ROWS}) n`,
    `alter table ${STREAM_TABLE} enable row level security`,
    `alter table ${STREAM_TABLE} force row level security`,
    `create policy own_tenant on ${STREAM_TABLE} using (tenant_id = (select
      nullif(current_setting('app.current_tenant_id', true), '')::uuid))`,
    `grant select on ${STREAM_TABLE} to ${role}`,
    'commit',
    `vacuum (analyze) ${STREAM_TABLE}`,
    'checkpoint',
  ]
}

/** PostgreSQL's log from `offset` on. */
export async function readLog(database: Database, offset: number): Promise<string> {
  return (await readFile(database.logFile)).subarray(offset).toString()
}

function largest(): (typeof SAMPLE_TENANTS)[number] {
  const [tenant] = SAMPLE_TENANTS
  if (tenant === undefined) throw new Error('the sample has no tenants')
  return tenant
}
