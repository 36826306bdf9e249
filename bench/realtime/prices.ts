/** A captured table of prices, and a client that changes them. */
import pg from 'pg'
import { openServerCpu } from '../harness/cpu-time.ts'
import type { Database } from '../harness/database.ts'
import { installedDatabase } from './installed.ts'

const ROWS_PER_TENANT = 50
const CONNECTIONS = 4

export interface Prices {
  /** Connects as the gateway's role. */
  readonly url: string
  /** Changes one row of each tenant in turn. */
  change(n: number): Promise<unknown>
  /** When each row was last changed, by its key; null for never. */
  changedAt(): Promise<ReadonlyMap<number, number | null>>
  /** CPU time of all processes of the server. */
  cpuSeconds(): Promise<number>
}

/** `shownTo`: those who see a row. */
export async function openPrices(
  database: Database,
  tenants: number,
  shownTo: 'its tenant' | 'everyone' = 'its tenant',
): Promise<Prices> {
  const { url, adminUrl } = await installedDatabase(database, {
    // Not shared: benchmarks of one run have different numbers of tenants.
    name: `bench_prices_${shownTo === 'everyone' ? 'public' : tenants}`,
    captured: ['prices'],
    statements: [
      'create table prices (id int primary key, tenant_id text not null, price numeric not null, at float8)',
      `insert into prices select n, 'tenant-' || n % ${tenants}, n from generate_series(0,
        ${tenants * ROWS_PER_TENANT - 1}) n`,
      ...(shownTo === 'everyone' ? [] : ['alter table prices enable row level security']),
      'alter table prices force row level security',
      `create policy own on prices using (tenant_id = (select current_setting('app.current_tenant_id', true)))`,
      'grant usage on schema public to $role',
      'grant select on prices to $role',
      'analyze prices',
    ],
  })
  const pool = new pg.Pool({ connectionString: adminUrl, max: CONNECTIONS, allowExitOnIdle: true })
  // The server ends before it.
  pool.on('error', () => {})
  const server = await openServerCpu(adminUrl)
  return {
    url,
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
