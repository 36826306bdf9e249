/**
 * The demo's PostgreSQL: a cluster with the sample data in the user's cache folder, created at the first
 * start and reused. A second demo running at the same time gets its own cluster (a *slot*), so that they do
 * not affect each other.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Binaries, locateBinaries } from './binaries.ts'
import { createCluster, secret } from './cluster.ts'
import { EmbeddedError } from './error.ts'
import { freeDataFolder } from './orphan.ts'
import { runStatements } from './run-statements.ts'
import { OWNER_ROLE, SAMPLE_VERSION, sampleStatements } from './sample.ts'
import { DataFolderInUse, type Server, startServer, urlOf } from './server.ts'
import { createStaged, pathExists, removeAbandoned } from './staged-folder.ts'

export interface EmbeddedOptions {
  /** True to create the data again, discarding changes. */
  readonly fresh: boolean
  /** The folder of the data, and of copied binaries (see folders.ts). */
  readonly cache: string
  print(line: string): void
}

export interface Embedded {
  /** The URL with the gateway's role: it is not a superuser, has no BYPASSRLS, and owns nothing. */
  readonly url: string
  /** As superuser. */
  readonly adminUrl: string
  /** The secret for tokens; the same at every start of this slot, so that tokens survive a restart. */
  readonly jwtSecret: string
  readonly folder: string
  /** Resolves when the server has ended, for whatever reason. */
  readonly ended: Promise<void>
  close(): Promise<void>
}

export const APP_ROLE = 'svc_app'
const DATABASE = 'demo'
/** Limit on the concurrent demos of one user. */
const SLOTS_MAX = 8

interface Secrets {
  readonly superuserPassword: string
  readonly appPassword: string
  readonly jwtSecret: string
}

export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const binaries = await locateBinaries(options.cache)
  const base = join(options.cache, `postgresql-${binaries.major}-sample-${SAMPLE_VERSION}`)
  await mkdir(base, { recursive: true, mode: 0o755 })
  await removeAbandoned(base)

  for (let slot = 1; slot <= SLOTS_MAX; slot++) {
    const folder = join(base, String(slot))
    if (!(await freeDataFolder(join(folder, 'data')))) continue
    if (options.fresh) await rm(folder, { recursive: true, force: true })
    if (!(await pathExists(folder))) {
      options.print('Preparing PostgreSQL with sample data (once, some seconds) …')
      await createStaged(base, folder, aside => prepare(binaries, aside))
    }
    try {
      return await start(binaries, folder)
    } catch (error) {
      // Another demo has taken the slot; PostgreSQL's own lock decides.
      if (!(error instanceof DataFolderInUse)) throw error
    }
  }
  throw new EmbeddedError(`${SLOTS_MAX} demos of this user are running (${base}); stop one of them`)
}

async function prepare(binaries: Binaries, folder: string): Promise<void> {
  const secrets: Secrets = { superuserPassword: secret(), appPassword: secret(), jwtSecret: secret() }
  await writeFile(join(folder, 'secrets.json'), JSON.stringify(secrets), { mode: 0o600 })
  await createCluster(binaries, {
    dataDirectory: join(folder, 'data'),
    password: secrets.superuserPassword,
    durable: true,
  })
  const server = await launch(binaries, folder)
  try {
    await runStatements(urlOf(server, 'postgres', secrets.superuserPassword, 'postgres'), [
      `create role ${OWNER_ROLE} nologin`,
      `create role ${APP_ROLE} login password '${secrets.appPassword}'`,
      `create database ${DATABASE} owner ${OWNER_ROLE}`,
    ])
    await runStatements(urlOf(server, 'postgres', secrets.superuserPassword, DATABASE), sampleStatements(APP_ROLE))
  } finally {
    await server.stop('fast')
  }
}

async function start(binaries: Binaries, folder: string): Promise<Embedded> {
  const secrets = JSON.parse(await readFile(join(folder, 'secrets.json'), 'utf8')) as Secrets
  const server = await launch(binaries, folder)
  return {
    url: urlOf(server, APP_ROLE, secrets.appPassword, DATABASE),
    adminUrl: urlOf(server, 'postgres', secrets.superuserPassword, DATABASE),
    jwtSecret: secrets.jwtSecret,
    folder,
    ended: server.ended,
    close: () => server.stop('fast'),
  }
}

function launch(binaries: Binaries, folder: string): Promise<Server> {
  return startServer(binaries, {
    dataDirectory: join(folder, 'data'),
    logFile: join(folder, 'server.log'),
    // Little write-ahead log is retained: the sample data is small, and the folder is in a user's cache.
    settings: { log_min_messages: 'warning', max_wal_size: '96MB', min_wal_size: '32MB' },
  })
}
