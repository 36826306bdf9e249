/** A terminal with a shell in it: what is entered runs in the foreground, also what does not end by itself. */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { ROOT } from '../tidy/tree.ts'
import { BUILT_MAIN } from './process.ts'

export interface Terminal {
  /** The last that was entered. */
  command: string
  readonly shell: ChildProcessByStdio<Writable, Readable, Readable>
  readonly closed: Promise<unknown>
  /** What that has said. */
  out: string
  error: string
}

/** Far longer than any step takes; it is there to say what was said instead. */
const STEP_MS_MAX = 300_000
const CLOSE_MS_MAX = 20_000
/** What a shell of a reader has, and nothing of the test's own settings. */
const ENVIRONMENT = ['PATH', 'HOME', 'LANG', 'TMPDIR', 'XDG_CACHE_HOME']
const ENDED = /\u0001ended (\d+)\n$/

/** `more`: what its shell has in its environment besides. */
export function openTerminal(cwd: string, more: Readonly<Record<string, string>> = {}): Terminal {
  const own = Object.fromEntries(ENVIRONMENT.flatMap(name => (name in process.env ? [[name, process.env[name]]] : [])))
  // A group of its own: Ctrl-C goes to the shell and to whatever it runs.
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

export interface Said {
  readonly said: string
  /** Of the last command. */
  readonly status: number
}

/** What the command said before it ended, and its status; null while it runs. */
export function answerOf({ out }: Terminal): Said | null {
  const ended = ENDED.exec(out)
  return ended === null ? null : { said: out.slice(0, ended.index), status: Number(ended[1]) }
}

/** Resolves when it is so; rejects when it throws, the shell ends, or it takes too long. */
export async function until(terminal: Terminal, what: string, isSo: () => boolean): Promise<void> {
  const { shell, closed } = terminal
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(), STEP_MS_MAX)
  try {
    while (!isSo()) {
      const { signal } = late
      await Promise.race([once(shell.stdout, 'data', { signal }), closed.then(() => late.abort())])
    }
  } catch (cause) {
    throw new Error(`${what}: ${(cause as Error).message}\n${terminal.out}\n${terminal.error}`, { cause })
  } finally {
    clearTimeout(timer)
  }
}

/** Enters whole lines, and resolves when the last of them has ended: with all that was said, on both outputs. */
export async function paste(terminal: Terminal, lines: string): Promise<Said> {
  enter(terminal, `{ ${lines}\n} 2>&1`)
  await until(terminal, lines, () => answerOf(terminal) !== null)
  const answer = answerOf(terminal)
  if (answer === null) throw new Error('it has ended, and so has its answer')
  return answer
}

/** Ctrl-C, and the end of the shell. */
export async function closeTerminal({ shell, closed }: Terminal): Promise<void> {
  const signal = (name: NodeJS.Signals) => {
    try {
      process.kill(-(shell.pid ?? 0), name)
    } catch {
      // It has ended already.
    }
  }
  shell.stdin.end()
  signal('SIGINT')
  const timer = setTimeout(() => signal('SIGKILL'), CLOSE_MS_MAX)
  await closed
  clearTimeout(timer)
}

/** As `npm install` of the package leaves a folder. */
export async function installSvc(folder: string): Promise<void> {
  const modules = join(folder, 'node_modules')
  await mkdir(join(modules, '.bin'), { recursive: true })
  await symlink(ROOT, join(modules, 'svc-gateway'))
  await symlink(join(ROOT, 'node_modules/ws'), join(modules, 'ws'))
  await symlink(BUILT_MAIN, join(modules, '.bin/svc'))
}
