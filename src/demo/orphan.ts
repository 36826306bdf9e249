/**
 * The state of a data folder's postmaster.pid. The watcher stops the server when this process dies; if the
 * watcher was killed too, the server continues, and the next start detects it here.
 */
import { readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { EmbeddedError } from './error.ts'
import { describeProcess } from './process.ts'
import { WATCHER_MARK } from './watcher.ts'

const STOP_TIMEOUT_MS = 20_000
const POLL_MS = 50
/** Much longer than a server takes to write the lock file that it has created. */
const EMPTY_LOCK_MS = 10_000

/** Frees an unused folder; returns false if a watched server is running in it. */
export async function freeDataFolder(dataDirectory: string): Promise<boolean> {
  const pid = await recordedPid(dataDirectory)
  if (pid === null) return true
  if (process.platform === 'win32') return !isAlive(pid)

  const server = await describeProcess(pid)
  if (server === null || !server.command.includes(dataDirectory)) {
    // The file remained after a crash; the process id may now belong to another program, which PostgreSQL
    // would mistake for a running server.
    await rm(join(dataDirectory, 'postmaster.pid'), { force: true })
    return true
  }
  const parent = await describeProcess(server.parent)
  if (parent?.command.includes(WATCHER_MARK)) return false
  await stopOrphan(pid, dataDirectory)
  return true
}

async function stopOrphan(pid: number, dataDirectory: string): Promise<void> {
  const deadline = Date.now() + STOP_TIMEOUT_MS
  process.kill(pid, 'SIGINT')
  while ((await describeProcess(pid)) !== null) {
    if (Date.now() > deadline) {
      throw new EmbeddedError(
        `a PostgreSQL that was left running (process ${pid}) in ${dataDirectory} does not stop; end it and try again`,
      )
    }
    await delay(POLL_MS)
  }
}

async function recordedPid(dataDirectory: string): Promise<number | null> {
  const file = join(dataDirectory, 'postmaster.pid')
  try {
    const pid = Number.parseInt(await readFile(file, 'utf8'), 10)
    if (pid > 1) return pid
    // PostgreSQL does not start with an empty lock file, and does not remove it either: a server may be about
    // to write it.
    if (Date.now() - (await stat(file)).mtimeMs > EMPTY_LOCK_MS) await rm(file, { force: true })
  } catch {
    // Without a lock file, no server is running.
  }
  return null
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
