/** Databases with schema `svc`, separate from the shared one, which is measured without triggers. */
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { CAPTURED_TABLES } from '../../src/install/captured-tables.ts'
import { installScript } from '../../src/install/script.ts'
import type { Database } from '../harness/database.ts'
import type { Service } from '../harness/processes.ts'

/** How changes are captured, as for `svc install --capture`. */
export type Capture = 'triggers' | 'wal'

export interface InstalledDatabase {
  /** Connects as the gateway's role. */
  readonly url: string
  /** Connects as superuser. */
  readonly adminUrl: string
}

export interface InstalledParts {
  readonly name: string
  /** SQL that creates its tables, with `$role` for the gateway's role. */
  readonly statements: readonly string[]
  /** Tables of `public`. */
  readonly captured: readonly string[]
  /** By triggers if absent. */
  readonly capture?: Capture
}

export async function installedDatabase(
  database: Database,
  { name, statements, captured, capture = 'triggers' }: InstalledParts,
): Promise<InstalledDatabase> {
  const role = decodeURIComponent(new URL(database.url).username)
  await database.admin(`drop database if exists ${name} with (force)`)
  await database.admin(`create database ${name}`)
  const chosen = captured.map(table => ({ schema: 'public', table }))
  const script = [
    ...statements.map(text => text.replaceAll('$role', role)),
    ...installScript({ role, selected: chosen, superuser: true, capture }),
  ]
  const installed = { url: withName(database.url, name), adminUrl: withName(database.adminUrl, name) }
  await asAdmin(installed, async client => {
    await client.query(['begin', ...script, 'commit'].join(';\n'))
    const { rows } = await client.query<{ source: Capture }>(CAPTURED_TABLES)
    const isSo = rows.length === captured.length && rows.every(({ source }) => source === capture)
    if (!isSo) throw new Error(`${captured.join(', ')} of ${name} should be captured by ${capture}`)
  })
  return installed
}

/**
 * Starts a gateway that reads the write-ahead log, which creates the slot, and drops the slot afterwards: a
 * slot without a reader would keep what other lanes write.
 */
export async function withReader<T>(
  database: Pick<InstalledDatabase, 'adminUrl'>,
  start: () => Promise<Service>,
  use: (gateway: Service) => Promise<T>,
): Promise<T> {
  const gateway = await start()
  try {
    await asAdmin(database, client =>
      until(client, 'select from pg_replication_slots where active and database = current_database()'),
    )
    return await use(gateway)
  } finally {
    await gateway.stop()
    await asAdmin(database, dropSlot)
  }
}

/** Nothing is lost: the next gateway starts with a new log. */
async function dropSlot(client: pg.Client): Promise<void> {
  await until(client, 'select where not exists (select from pg_replication_slots where active)')
  await client.query(`select pg_drop_replication_slot(slot_name) from pg_replication_slots
    where database = current_database()`)
  await client.query(`update svc.wal set stored = '0/0'`)
}

async function until(client: pg.Client, query: string): Promise<void> {
  while ((await client.query(query)).rowCount === 0) await delay(10)
}

async function asAdmin<T>(
  { adminUrl }: Pick<InstalledDatabase, 'adminUrl'>,
  use: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ connectionString: adminUrl })
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

function withName(url: string, name: string): string {
  const named = new URL(url)
  named.pathname = `/${name}`
  return named.href
}
