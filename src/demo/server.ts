/** A running PostgreSQL: started through the watcher, and reported when it is ready. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type FileHandle, open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Binaries } from './binaries.ts'
import { CHILD_ENVIRONMENT } from './cluster.ts'
import { dataPathOf } from './data-path.ts'
import { EmbeddedError } from './error.ts'
import { freePort } from './free-port.ts'
import { spawnAs } from './run-as.ts'
import { WATCHER_PROGRAM, type WatcherTask } from './watcher.ts'

export interface ServerOptions {
  readonly dataDirectory: string
  /** The file for the server's messages; truncated at every start. */
  readonly logFile: string
  /** The port; a free one if absent. */
  readonly port?: number
  /** Settings for the command line, which take precedence over postgresql.conf. */
  readonly settings: Readonly<Record<string, string>>
  /** A folder that the watcher removes if this process ends without closing the server. */
  readonly removeWhenOrphaned?: string
}

export interface Server {
  readonly host: '127.0.0.1'
  readonly port: number
  /** The process id of the postmaster. */
  readonly pid: number
  /** The folder of the Unix socket, null where paths are too long for one or the system has none. */
  readonly socketDirectory: string | null
  /** Resolves when the server has ended, for whatever reason. */
  readonly ended: Promise<void>
  /** Keeps this process alive as long as the server; otherwise a server that is not stopped does not. */
  hold(): void
  /**
   * `fast` rolls back and writes a checkpoint, `immediate` leaves recovery to the next start, `kill` is a
   * crash.
   */
  stop(mode: StopMode): Promise<void>
}

export type StopMode = keyof typeof SIGNAL_OF

const SIGNAL_OF = { fast: 'SIGINT', immediate: 'SIGQUIT', kill: 'SIGKILL' } as const

/** Another process already serves this data folder. */
export class DataFolderInUse extends EmbeddedError {}

const START_TIMEOUT_MS = 60_000
const STOP_TIMEOUT_MS = 15_000
const POLL_MS = 15
/** Another process may take a free port before the server binds it. */
const PORT_TRIES_MAX = 5
const LOG_QUOTED_MAX = 2_000
/** `sun_path` has 104 bytes on macOS and 108 on Linux; the name of the socket file needs some of them. */
const SOCKET_DIRECTORY_BYTES_MAX = 80

export async function startServer(binaries: Binaries, options: ServerOptions): Promise<Server> {
  const deadline = Date.now() + START_TIMEOUT_MS
  for (let tries = 1; ; tries++) {
    const port = options.port ?? (await freePort())
    const attempt = await tryStart(binaries, options, port, deadline)
    if (attempt.kind === 'started') return attempt.server

    const log = attempt.log
    if (/lock file ".*" (already exists|is empty)/.test(log)) {
      throw new DataFolderInUse(`PostgreSQL is already running in ${options.dataDirectory}`)
    }
    const portTaken = /could not bind|Address already in use/.test(log)
    if (portTaken && options.port === undefined && tries < PORT_TRIES_MAX) continue
    // After a crash, the processes of the old server need a moment to release memory and port.
    const crashed = /is still in use|still (being )?used/.test(log)
    if ((crashed || portTaken) && Date.now() < deadline) {
      await delay(POLL_MS)
      continue
    }
    throw new EmbeddedError(`PostgreSQL did not start in ${options.dataDirectory}:\n${log.slice(-LOG_QUOTED_MAX)}`)
  }
}

type Attempt = { readonly kind: 'started'; readonly server: Server } | { readonly kind: 'failed'; readonly log: string }

async function tryStart(binaries: Binaries, options: ServerOptions, port: number, deadline: number): Promise<Attempt> {
  const place = dataPathOf(binaries, options.dataDirectory)
  const socketDirectory = place.isReal ? socketDirectoryOf(options.dataDirectory) : null
  // If two start in one folder concurrently, the second must not write into the log of the first.
  const logFile = `${options.logFile}.${process.pid}-${port}`
  const log = await open(logFile, 'w', 0o600)
  const watcher = spawnWatcher(log, {
    program: binaries.postgres,
    args: [
      ...['-D', place.path, '-p', String(port)],
      ...settingArguments({
        // It is in the command line so that the next start can identify the server (orphan.ts).
        ...(place.isReal ? {} : { 'svc.data_directory': options.dataDirectory }),
        listen_addresses: '127.0.0.1',
        unix_socket_directories: socketDirectory === null ? '' : `"${socketDirectory.replaceAll('"', '""')}"`,
        ...options.settings,
      }),
    ],
    cwd: place.cwd,
    ...spawnAs(binaries.runAs),
    removeWhenOrphaned: options.removeWhenOrphaned ?? null,
    stopTimeoutMs: STOP_TIMEOUT_MS,
  })
  const ended = once(watcher, 'exit').then(() => {})
  await log.close()

  let pid = 0
  watcher.stdout?.setEncoding('utf8').on('data', (text: string) => {
    pid = Number(/pid (\d+)/.exec(text)?.[1] ?? pid)
  })
  while (!(pid !== 0 && (await isReady(options.dataDirectory, pid)))) {
    const over = await Promise.race([ended.then(() => true), delay(POLL_MS, false)])
    if (over) return { kind: 'failed', log: await takeLog(logFile) }
    if (Date.now() > deadline) {
      watcher.stdin?.end()
      await ended
      return { kind: 'failed', log: `not ready after ${START_TIMEOUT_MS} ms\n${await takeLog(logFile)}` }
    }
  }
  await rename(logFile, options.logFile)
  // A server that is not stopped must not keep the process alive; the watcher stops it when this process
  // ends.
  unreference(watcher)

  const stop = async (mode: StopMode): Promise<void> => {
    watcher.ref()
    watcher.stdin?.write(`${SIGNAL_OF[mode]}\n`)
    const force = setTimeout(() => watcher.stdin?.write('SIGQUIT\n'), STOP_TIMEOUT_MS)
    await ended
    clearTimeout(force)
  }
  const hold = (): void => watcher.ref()
  return { kind: 'started', server: { host: '127.0.0.1', port, pid, socketDirectory, ended, hold, stop } }
}

async function takeLog(logFile: string): Promise<string> {
  const text = await readFile(logFile, 'utf8')
  await rm(logFile, { force: true })
  return text
}

function spawnWatcher(log: FileHandle, task: WatcherTask): ChildProcess {
  const watcher = spawn(process.execPath, ['-e', WATCHER_PROGRAM, JSON.stringify(task)], {
    cwd: '/',
    env: CHILD_ENVIRONMENT,
    detached: true,
    windowsHide: true,
    stdio: ['pipe', 'pipe', log.fd],
  })
  // The input closes when the watcher ends, possibly during a write.
  watcher.stdin?.on('error', () => {})
  return watcher
}

function unreference(child: ChildProcess): void {
  child.unref()
  for (const pipe of [child.stdin, child.stdout]) (pipe as unknown as { unref?(): void } | null)?.unref?.()
}

export function urlOf({ host, port }: Server, role: string, password: string, database: string): string {
  return `postgres://${role}:${password}@${host}:${port}/${database}`
}

function settingArguments(settings: Readonly<Record<string, string>>): string[] {
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}

function socketDirectoryOf(dataDirectory: string): string | null {
  if (process.platform === 'win32') return null
  return Buffer.byteLength(dataDirectory) <= SOCKET_DIRECTORY_BYTES_MAX ? dataDirectory : null
}

/** Detects the state as `pg_ctl` does: line 1 of postmaster.pid is the process, line 8 its state. */
async function isReady(dataDirectory: string, pid: number): Promise<boolean> {
  let lines: string[]
  try {
    lines = (await readFile(join(dataDirectory, 'postmaster.pid'), 'utf8')).split('\n')
  } catch {
    return false
  }
  return Number(lines[0]) === pid && lines[7]?.trim() === 'ready'
}
