/** A captured table of prices, and a client that changes them. */
import pg from 'pg'
import { openServerCpu } from '../harness/cpu-time.ts'
import type { Database } from '../harness/database.ts'
import { type Capture, installedDatabase } from './installed.ts'

const ROWS_PER_TENANT = 50
const CONNECTIONS = 4

export interface Prices {
  /** Connects as the gateway's role. */
  readonly url: string
  /** Connects as superuser. */
  readonly adminUrl: string
  /** Changes one row of each tenant in turn. */
  change(n: number): Promise<unknown>
  /** When each row was last changed, by its key; null for never. */
  changedAt(): Promise<ReadonlyMap<number, number | null>>
  /** CPU time of all processes of the server. */
  cpuSeconds(): Promise<number>
}

export interface PricesOptions {
  /** Those who see a row; its tenant by default. */
  readonly shownTo?: 'its tenant' | 'everyone'
  /** By triggers if absent. */
  readonly capture?: Capture
}

export async function openPrices(
  database: Database,
  tenants: number,
  { shownTo = 'its tenant', capture = 'triggers' }: PricesOptions = {},
): Promise<Prices> {
  // Not shared: benchmarks of one run have different numbers of tenants.
  const name = `bench_prices_${shownTo === 'everyone' ? 'public' : tenants}_${capture}`
  const { url, adminUrl } = await installedDatabase(database, {
    name,
    captured: ['prices'],
    capture,
    statements: [
      'create table prices (id int primary key, tenant_id text not null, price numeric not null, at float8)',
      `insert into prices select n, 'tenant-' || n % ${tenants}, n from generate_series(0,
        ${tenants * ROWS_PER_TENANT - 1}) n`,
      ...(shownTo === 'everyone' ? [] : ['alter table prices enable row level security']),
      'alter table prices force row level security',
      `create policy own on prices using (tenant_id = (select current_setting('app.current_tenant_id', true)))`,
      'grant usage on schema public to $role',
      'grant select on prices to $role',
      // PostgreSQL decodes only changes that are on disk.
      ...(capture === 'wal' ? [`alter database ${name} set synchronous_commit = on`] : []),
      'analyze prices',
    ],
  })
  const pool = new pg.Pool({ connectionString: adminUrl, max: CONNECTIONS, allowExitOnIdle: true })
  // The server ends before it.
  pool.on('error', () => {})
  const server = await openServerCpu(adminUrl)
  return {
    ...{ url, adminUrl },
    change: n =>
      pool.query({
        name: 'change',
        text: `update prices set price = price + 1, at = extract(epoch from clock_timestamp()) * 1000 where id = $1`,
        values: [n % (tenants * ROWS_PER_TENANT)],
      }),
    async changedAt() {
      const { rows } = await pool.query<{ id: number; at: number | null }>('select id, at from prices')
      return new Map(rows.map(({ id, at }) => [id, at]))
    },
    cpuSeconds: server.seconds,
  }
}
