/**
 * The folder for temporary files of a run, and the processes in it. Tests create their servers' folders
 * there, so a process with the folder in its command line belongs to the run, however the run has ended.
 */
import { execFile } from 'node:child_process'
import { chmod, mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'

const POLL_MS = 100
/** A test server's watchdog that has lost its parent stops the server within 15 s. */
const LEAVE_MS = 20_000

export interface Scratch {
  readonly folder: string
  /** Waits for the processes of the run, kills those that remain, and removes the folder. */
  close(): Promise<void>
}

/** The name is short, because the path of a Unix socket below it is limited to about 100 bytes. */
const PREFIX = 'svcm-'

/** @param leaveMs How long processes of the run may take to end by themselves. */
export async function openScratch(parent: string = tmpdir(), leaveMs: number = LEAVE_MS): Promise<Scratch> {
  await removeAbandoned(parent)
  const folder = join(parent, `${PREFIX}${process.pid}`)
  await mkdir(folder)
  // PostgreSQL runs as another user if the tests run as root.
  await chmod(folder, 0o755)
  return { folder, close: () => clear(folder, leaveMs) }
}

/** Removes folders left behind by killed runs. */
async function removeAbandoned(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    const pid = Number(new RegExp(`^${PREFIX}(\\d+)$`).exec(name)?.[1] ?? 0)
    if (pid === 0 || (pid !== process.pid && isAlive(pid))) continue
    // The folder may belong to another user, who has to remove it.
    await clear(join(parent, name), LEAVE_MS).catch(() => {})
  }
}

async function clear(folder: string, leaveMs: number): Promise<void> {
  await ended(folder, leaveMs)
  for (const signal of ['SIGQUIT', 'SIGKILL'] as const) {
    const left = await processesNaming(folder)
    for (const pid of left) kill(pid, signal)
    if (left.length > 0) await ended(folder, LEAVE_MS)
  }
  await rm(folder, { recursive: true, force: true, maxRetries: 10 })
}

async function ended(folder: string, timeoutMs: number): Promise<void> {
  const deadline = Date.now() + timeoutMs
  while ((await processesNaming(folder)).length > 0 && Date.now() < deadline) await delay(POLL_MS)
}

/** Processes with a path below a folder in their command line. */
export async function processesNaming(folder: string): Promise<readonly number[]> {
  if (process.platform === 'win32') return []
  const commands = process.platform === 'linux' ? await commandsOfLinux() : await commandsByPs()
  return commands.filter(([, command]) => command.includes(`${folder}/`)).map(([pid]) => pid)
}

type Command = readonly [pid: number, command: string]

/** Containers often have no `ps`. */
async function commandsOfLinux(): Promise<readonly Command[]> {
  const pids = (await readdir('/proc')).map(Number).filter(pid => pid > 0)
  return Promise.all(
    pids.map(async pid => [pid, await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')] as const),
  )
}

async function commandsByPs(): Promise<readonly Command[]> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,args='], { maxBuffer: 16_777_216 })
  return stdout.split('\n').map(line => [Number.parseInt(line, 10), line] as const)
}

/** Whether the process exists, whichever user runs it. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // The process has already exited, or belongs to another user.
  }
}
