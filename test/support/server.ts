/**
 * PostgreSQL servers for tests: copies of one prepared cluster, configured for speed instead of durability,
 * and removed after the run.
 */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { appendFile, chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Binaries, locateBinaries } from '../../src/demo/binaries.ts'
import { createCluster, makeServerFolder, writeServerFile } from '../../src/demo/cluster.ts'
import { cacheFolder } from '../../src/demo/folders.ts'
import { spawnAs } from '../../src/demo/run-as.ts'
import { type Server, type StopMode, startServer } from '../../src/demo/server.ts'
import { execute } from './execute.ts'
import { POSTGRES_FOLDER, POSTGRES_MAJOR } from './postgres-version.ts'
import { PLAIN_ROLE } from './roles.ts'

/** One password for all servers: they listen on loopback, contain no real data and run for minutes. */
export const PASSWORD = 'for-tests-only'

/**
 * How tests with captured tables capture changes; `SVC_TEST_CAPTURE=wal` runs them with the write-ahead log.
 */
export const CAPTURE: 'wal' | 'triggers' = process.env.SVC_TEST_CAPTURE === 'wal' ? 'wal' : 'triggers'

const SETTINGS: Readonly<Record<string, string>> = {
  fsync: 'off',
  full_page_writes: 'off',
  max_connections: '300',
  max_locks_per_transaction: '256',
  shared_buffers: '128MB',
  max_wal_size: '4GB',
  autovacuum_naptime: '10s',
  log_min_messages: 'warning',
  ...(CAPTURE === 'wal' ? { wal_level: 'logical', max_replication_slots: '100', max_wal_senders: '100' } : {}),
}

export interface TestServerOptions {
  /** Additional lines of postgresql.conf, which override the defaults above. */
  readonly settings?: readonly string[]
  /** Lines of pg_hba.conf before the default (SCRAM for all users on loopback and the Unix socket). */
  readonly hba?: readonly string[]
  /** Files to create in the data directory (keys, certificates), readable only by the server's user. */
  readonly files?: Readonly<Record<string, string>>
}

export interface TestServer {
  readonly host: '127.0.0.1'
  readonly port: number
  readonly url: string
  readonly adminUrl: string
  readonly dataDirectory: string
  readonly socketDirectory: string | null
  readonly logFile: string
  /** The process id of the postmaster. It changes with every start. */
  pid(): number
  start(): Promise<void>
  stop(mode?: StopMode): Promise<void>
  restart(): Promise<void>
  /** Sends SIGKILL to the postmaster, as in a crash. `start` recovers. */
  kill(): Promise<void>
  close(): Promise<void>
}

export async function locateTestBinaries(): Promise<Binaries> {
  const cache = await cacheFolder(process.env)
  const binaries = await (POSTGRES_FOLDER === undefined
    ? locateBinaries(cache)
    : locateBinaries(cache, join(POSTGRES_FOLDER, 'package.json')))
  // A missing package must not fall back to the embedded PostgreSQL.
  if (binaries.major !== POSTGRES_MAJOR) throw new Error(`${binaries.postgres} is not PostgreSQL ${POSTGRES_MAJOR}`)
  return binaries
}

/** Creates the cluster that all servers of a run are copied from. */
export async function createTemplate(folder: string): Promise<void> {
  const binaries = await locateTestBinaries()
  await createCluster(binaries, { dataDirectory: folder, password: PASSWORD, durable: false })
  const settings = Object.entries(SETTINGS).map(([name, value]) => `${name} = '${value}'\n`)
  await appendFile(join(folder, 'postgresql.conf'), settings.join(''))
  const server = await startServer(binaries, { dataDirectory: folder, logFile: `${folder}.log`, settings: {} })
  await execute(
    urlOf(server.port, 'postgres', 'postgres'),
    `create role ${PLAIN_ROLE} login password '${PASSWORD}' nosuperuser nobypassrls nocreatedb nocreaterole`,
  )
  await server.stop('fast')
}

export async function startTestServer(template: string, options: TestServerOptions = {}): Promise<TestServer> {
  const binaries = await locateTestBinaries()
  const base = await mkdtemp(join(tmpdir(), 'svc-pg-'))
  await chmod(base, 0o755)
  const dataDirectory = join(base, 'data')
  const logFile = join(base, 'server.log')
  await makeServerFolder(binaries, dataDirectory)
  await promisify(execFile)('cp', ['-R', `${template}/.`, dataDirectory], { ...spawnAs(binaries.runAs), cwd: '/' })
  await appendFile(join(dataDirectory, 'postgresql.conf'), (options.settings ?? []).map(line => `${line}\n`).join(''))
  const defaults = await readFile(join(dataDirectory, 'pg_hba.conf'), 'utf8')
  await writeFile(join(dataDirectory, 'pg_hba.conf'), [...(options.hba ?? []), defaults].join('\n'))
  for (const [name, content] of Object.entries(options.files ?? {})) {
    await writeServerFile(binaries, join(dataDirectory, name), content)
  }

  const launch = (port?: number): Promise<Server> =>
    startServer(binaries, {
      dataDirectory,
      logFile,
      settings: {},
      removeWhenOrphaned: base,
      ...(port === undefined ? {} : { port }),
    })
  let server: Server | null = null
  try {
    server = await launch()
  } catch (error) {
    await rm(base, { recursive: true, force: true })
    throw error
  }
  const { host, port, socketDirectory } = server

  const stop = async (mode: StopMode): Promise<void> => {
    await server?.stop(mode)
    server = null
  }
  const start = async (): Promise<void> => {
    server ??= await launch(port)
  }
  return {
    ...{ host, port, dataDirectory, socketDirectory, logFile },
    url: urlOf(port, PLAIN_ROLE, 'postgres'),
    adminUrl: urlOf(port, 'postgres', 'postgres'),
    pid: () => server?.pid ?? 0,
    start,
    stop: (mode = 'fast') => stop(mode),
    async restart() {
      await stop('fast')
      await start()
    },
    kill: () => stop('kill'),
    async close() {
      await stop('immediate')
      await rm(base, { recursive: true, force: true, maxRetries: 10 })
    },
  }
}

export function urlOf(port: number, role: string, database: string): string {
  return `postgres://${role}:${PASSWORD}@127.0.0.1:${port}/${database}`
}

export function uniqueName(prefix: string): string {
  return `${prefix}_${randomBytes(6).toString('hex')}`
}
