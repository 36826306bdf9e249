/**
 * `svc postgres`: the embedded PostgreSQL, empty, in a folder of the user. It listens on 127.0.0.1 and
 * requires a password, which is generated with the data and stored next to it.
 *
 *   FOLDER/cluster/data         the data folder of PostgreSQL
 *   FOLDER/cluster/password     of the superuser `postgres`
 *   FOLDER/cluster/server.log   its messages since the last start
 *   FOLDER/url                  the URL of the running server
 */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Binaries, locateBinaries } from './binaries.ts'
import { createCluster, secret } from './cluster.ts'
import { EmbeddedError } from './error.ts'
import { obstacleTo } from './free-port.ts'
import { freeDataFolder } from './orphan.ts'
import { DataFolderInUse, type Server, startServer, urlOf } from './server.ts'
import { createStaged, isAside, pathExists, removeAbandoned } from './staged-folder.ts'

export interface LocalOptions {
  /** An absolute path; created if necessary. */
  readonly folder: string
  readonly port: number
  /** The folder for binaries if they must be copied (see folders.ts). */
  readonly cache: string
  print(line: string): void
}

export interface Local {
  /** As superuser. */
  readonly url: string
  /** PostgreSQL's major version. */
  readonly major: number
  /** Rejects if the server ends before `close` is called. */
  readonly failed: Promise<never>
  close(): Promise<void>
}

/** The part of the server's last messages that an error quotes. */
const LOG_QUOTED_MAX = 1_000

export async function startLocal(options: LocalOptions): Promise<Local> {
  const { folder, port, print } = options
  const binaries = await locateBinaries(options.cache)
  const cluster = join(folder, 'cluster')
  if (!(await freeDataFolder(join(cluster, 'data')))) throw alreadyRunning(folder)
  await assertFree(port)
  await claim(folder)
  if (!(await pathExists(cluster))) {
    print('Preparing PostgreSQL (once, some seconds) …')
    await createStaged(folder, cluster, aside => prepare(binaries, aside))
  }
  const server = await launch(binaries, { folder, cluster, port })
  const url = urlOf(server, 'postgres', await readFile(join(cluster, 'password'), 'utf8'), 'postgres')
  const urlFile = join(folder, 'url')
  try {
    await rm(urlFile, { force: true })
    await writeFile(urlFile, `${url}\n`, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    await server.stop('fast')
    throw error
  }

  server.hold()
  let closing = false
  const failed = server.ended.then(async () => {
    if (closing) return new Promise<never>(() => {})
    await rm(urlFile, { force: true })
    throw new EmbeddedError(`PostgreSQL has ended. Its last messages:\n${await lastMessages(cluster)}`)
  })
  // A caller that closes the server need not handle the rejection.
  failed.catch(() => {})
  return {
    ...{ url, major: binaries.major, failed },
    async close() {
      closing = true
      await rm(urlFile, { force: true })
      await server.stop('fast')
    },
  }
}

/** Claims an empty folder, or one that was claimed before; a folder with other files is left unchanged. */
async function claim(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const names = await readdir(folder)
    if (!names.includes('cluster') && names.some(name => !isAside(name))) {
      throw new EmbeddedError(`${folder} contains other files; choose an empty or a new folder with --data`)
    }
    await removeAbandoned(folder)
  } catch (cause) {
    if (cause instanceof EmbeddedError) throw cause
    const { code, message } = cause as NodeJS.ErrnoException
    const what = code === 'EEXIST' || code === 'ENOTDIR' ? 'is not a folder' : `cannot be used: ${message}`
    throw new EmbeddedError(`${folder} ${what}; choose another folder for the data with --data`, { cause })
  }
}

async function assertFree(port: number): Promise<void> {
  const obstacle = await obstacleTo(port)
  if (obstacle === null) return
  const why =
    obstacle === 'EADDRINUSE' ? 'is already in use, perhaps by another PostgreSQL' : `cannot be used (${obstacle})`
  throw new EmbeddedError(`port ${port} of 127.0.0.1 ${why}; choose another with --port`)
}

async function prepare(binaries: Binaries, folder: string): Promise<void> {
  const password = secret()
  await writeFile(join(folder, 'password'), password, { mode: 0o600 })
  await createCluster(binaries, { dataDirectory: join(folder, 'data'), password, durable: true })
}

interface Where {
  readonly folder: string
  readonly cluster: string
  readonly port: number
}

async function launch(binaries: Binaries, { folder, cluster, port }: Where): Promise<Server> {
  const [dataDirectory, logFile] = [join(cluster, 'data'), join(cluster, 'server.log')]
  try {
    return await startServer(binaries, { dataDirectory, logFile, port, settings: {} })
  } catch (error) {
    // If two start concurrently, PostgreSQL's own lock decides.
    throw error instanceof DataFolderInUse ? alreadyRunning(folder) : error
  }
}

function alreadyRunning(folder: string): EmbeddedError {
  return new EmbeddedError(
    `PostgreSQL is already running in ${folder} (its URL is in ${join(folder, 'url')}); ` +
      'stop it first, or choose another folder with --data',
  )
}

async function lastMessages(cluster: string): Promise<string> {
  const log = await readFile(join(cluster, 'server.log'), 'utf8').catch((error: Error) => error.message)
  return log.slice(-LOG_QUOTED_MAX).trim()
}
