/**
 * A terminal with a shell, which runs commands in the foreground, including those that do not end by
 * themselves.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { ROOT } from '../tidy/tree.ts'
import { BUILT_MAIN } from './process.ts'

export interface Terminal {
  /** The last command entered. */
  command: string
  readonly shell: ChildProcessByStdio<Writable, Readable, Readable>
  readonly closed: Promise<unknown>
  /** The output of that command. */
  out: string
  error: string
}

/** Far longer than any step takes. When it expires, the error quotes the output so far. */
const STEP_MS_MAX = 300_000
const CLOSE_MS_MAX = 20_000
/** The environment variables of a reader's shell, without the test's own settings. */
const ENVIRONMENT = ['PATH', 'HOME', 'LANG', 'TMPDIR', 'XDG_CACHE_HOME']
const ENDED = /\u0001ended (\d+)\n$/

/** `more`: additional environment variables for the shell. */
export function openTerminal(cwd: string, more: Readonly<Record<string, string>> = {}): Terminal {
  const own = Object.fromEntries(ENVIRONMENT.flatMap(name => (name in process.env ? [[name, process.env[name]]] : [])))
  // A separate process group: Ctrl-C reaches the shell and the programs it runs.
  const shell = spawn('bash', ['--norc'], {
    cwd,
    env: { ...own, ...more },
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const terminal: Terminal = { shell, closed: once(shell, 'close'), command: '', out: '', error: '' }
  shell.stdout.on('data', (chunk: Buffer) => {
    terminal.out += chunk.toString()
  })
  shell.stderr.on('data', (chunk: Buffer) => {
    terminal.error += chunk.toString()
  })
  return terminal
}

export function enter(terminal: Terminal, command: string): void {
  terminal.command = command
  terminal.out = ''
  terminal.shell.stdin.write(`${command}\nprintf '\\001ended %d\\n' $?\n`)
}

export interface CommandResult {
  readonly said: string
  /** The status of the last command. */
  readonly status: number
}

/** The command's output and status; null while it runs. */
export function resultOf({ out }: Terminal): CommandResult | null {
  const ended = ENDED.exec(out)
  return ended === null ? null : { said: out.slice(0, ended.index), status: Number(ended[1]) }
}

/** Resolves when the predicate is true. Rejects when it throws, the shell exits, or it takes too long. */
export async function until(terminal: Terminal, what: string, isMet: () => boolean): Promise<void> {
  const { shell, closed } = terminal
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(), STEP_MS_MAX)
  try {
    while (!isMet()) {
      const { signal } = late
      await Promise.race([once(shell.stdout, 'data', { signal }), closed.then(() => late.abort())])
    }
  } catch (cause) {
    throw new Error(`${what}: ${(cause as Error).message}\n${terminal.out}\n${terminal.error}`, { cause })
  } finally {
    clearTimeout(timer)
  }
}

/** Runs complete lines and resolves when the last of them has ended, with the output on both streams. */
export async function paste(terminal: Terminal, lines: string): Promise<CommandResult> {
  enter(terminal, `{ ${lines}\n} 2>&1`)
  await until(terminal, lines, () => resultOf(terminal) !== null)
  const result = resultOf(terminal)
  if (result === null) throw new Error('the command has ended without a result')
  return result
}

/** Sends Ctrl-C and ends the shell. */
export async function closeTerminal({ shell, closed }: Terminal): Promise<void> {
  const signal = (name: NodeJS.Signals) => {
    try {
      process.kill(-(shell.pid ?? 0), name)
    } catch {
      // The process group has already exited.
    }
  }
  shell.stdin.end()
  signal('SIGINT')
  const timer = setTimeout(() => signal('SIGKILL'), CLOSE_MS_MAX)
  await closed
  clearTimeout(timer)
}

/** Lays out a folder as `npm install` of the package would. */
export async function installSvc(folder: string): Promise<void> {
  const modules = join(folder, 'node_modules')
  await mkdir(join(modules, '.bin'), { recursive: true })
  await symlink(ROOT, join(modules, 'svc-gateway'))
  await symlink(join(ROOT, 'node_modules/ws'), join(modules, 'ws'))
  await symlink(BUILT_MAIN, join(modules, '.bin/svc'))
}
