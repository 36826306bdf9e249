/** A primary with a streaming standby: copies of one stopped server. */
import { execute } from './execute.ts'
import { privateServer } from './postgres.ts'
import { PASSWORD, startTestServer, type TestServer } from './server.ts'

export interface Replication {
  readonly primary: TestServer
  readonly standby: TestServer
  close(): Promise<void>
}

const HBA = ['host replication postgres 127.0.0.1/32 scram-sha-256']

export interface ReplicationOptions {
  /** True if a commit waits for the standby to flush it. */
  readonly synchronous: boolean
  /** Additional lines of the standby's postgresql.conf. */
  readonly settings?: readonly string[]
  /** Additional lines for both. */
  readonly commonSettings?: readonly string[]
}

/** Starts both, with the tables of `sql`. */
export async function startReplication(sql: string, options: ReplicationOptions): Promise<Replication> {
  const { synchronous, settings = [], commonSettings = [] } = options
  const replicates = ['wal_level = replica', 'max_wal_senders = 4', ...commonSettings]
  const primary = await privateServer({ hba: HBA, settings: replicates })
  const started = [primary]
  try {
    await execute(primary.adminUrl, sql)
    await primary.stop()
    const source =
      `host=127.0.0.1 port=${primary.port} user=postgres password=${PASSWORD} application_name=standby ` +
      // Only the synchronization of slots connects to it.
      'dbname=postgres'
    const copied = startTestServer(primary.dataDirectory, {
      settings: [`primary_conninfo = '${source}'`, `wal_retrieve_retry_interval = '100ms'`, ...settings],
      files: { 'standby.signal': '' },
    })
    const standby = await copied
    started.push(standby)
    await primary.start()
    await streaming(primary)
    if (synchronous) {
      await execute(primary.adminUrl, `alter system set synchronous_standby_names = 'standby'`)
      await execute(primary.adminUrl, 'select pg_reload_conf()')
      await until(primary, `select 1 from pg_stat_replication where sync_state = 'sync'`)
    }
    return { primary, standby, close: () => closeAll(started) }
  } catch (error) {
    await closeAll(started)
    throw error
  }
}

async function closeAll(servers: readonly TestServer[]): Promise<void> {
  for (const server of servers.toReversed()) await server.close()
}

const streaming = (primary: TestServer) => until(primary, `select 1 from pg_stat_replication where state = 'streaming'`)

async function until(server: TestServer, query: string): Promise<void> {
  while ((await execute(server.adminUrl, query)).length === 0);
}
