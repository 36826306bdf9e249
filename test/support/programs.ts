/**
 * Other programs that tests use: from Debian's packages, which `.ci/run` installs. Tests of a missing program
 * are skipped, and the message names its package.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Folders of administration programs, which are not always on the PATH. */
const MORE_PATHS = ['/usr/sbin', '/usr/local/sbin', '/usr/lib/postgresql/15/bin']

/** The program's path; null if it is not installed. */
export function findProgram(name: string): string | null {
  const folders = [...(process.env.PATH ?? '').split(delimiter), ...MORE_PATHS]
  return folders.map(folder => join(folder, name)).find(isExecutable) ?? null
}

export function programPath(name: string): string {
  const path = findProgram(name)
  if (path === null) throw new Error(`${name} is not installed`)
  return path
}

/** The reason why tests of these programs cannot run here; null if all are installed. */
export function missingPrograms(packageOf: Readonly<Record<string, string>>): string | null {
  const missing = Object.entries(packageOf).filter(([program]) => findProgram(program) === null)
  if (missing.length === 0) return null
  const packages = [...new Set(missing.map(([, name]) => name))]
  return `${missing.map(([program]) => program).join(', ')} missing (Debian: apt-get install ${packages.join(' ')})`
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

export interface Running {
  /** The output so far, on both streams. */
  said(): string
  close(): Promise<void>
}

export interface ProgramOptions {
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly uid?: number
  readonly gid?: number
  /** A pattern: the program is ready when its output matches. */
  readonly ready: RegExp
  /** Stops the program and its children. */
  readonly stopSignal?: NodeJS.Signals
}

/** Starts a program and resolves when it is ready. Rejects with its output if it exits before that. */
export async function startProgram(program: string, options: ProgramOptions): Promise<Running> {
  const { args, env = {}, ready, stopSignal = 'SIGKILL', ...user } = options
  const child = spawn(program, args, {
    ...user,
    cwd: '/',
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = new Promise<void>(resolve => child.once('close', () => resolve()))
  // An interrupted run leaves no processes behind.
  const onExit = (): void => stop(child, stopSignal)
  process.once('exit', onExit)
  let said = ''
  await new Promise<void>((resolve, reject) => {
    const hear = (chunk: Buffer): void => {
      said += chunk.toString()
      if (ready.test(said)) resolve()
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.once('error', reject)
    void ended.then(() => reject(new Error(`${program} exited before it was ready:\n${said}`)))
  })
  return {
    said: () => said,
    async close() {
      stop(child, stopSignal)
      await ended
      process.off('exit', onExit)
    },
  }
}

function stop(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.exitCode === null && child.signalCode === null) child.kill(signal)
}
