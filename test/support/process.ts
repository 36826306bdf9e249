/** The program `svc` as a process of its own: what a shell starts, signals end, and the log tells. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))

/** As users get it; what is made when the package is built is only there. */
export const BUILT_MAIN: string = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

export interface Svc {
  readonly child: ChildProcess
  readonly exited: Promise<readonly [code: number | null, signal: NodeJS.Signals | null]>
  /** What has been said so far. */
  readonly said: { out: string; error: string }
  /** Resolves when standard output matches, with the first group; rejects when the process ends before. */
  says(pattern: RegExp): Promise<string>
}

const started = new Set<ChildProcess>()

/** Starts `svc` with nothing in its environment but `PATH` and what is given. */
export function startSvc(argv: readonly string[], environment: Readonly<Record<string, string>>): Svc {
  return start(['--import', 'tsx', MAIN, ...argv], environment)
}

/** The same from `dist/`, which `npm test` keeps fresh, or where else it was installed. */
export function startBuiltSvc(
  argv: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  main: string = BUILT_MAIN,
): Svc {
  return start([main, ...argv], environment)
}

function start(argv: readonly string[], environment: Readonly<Record<string, string>>): Svc {
  const child = spawn(process.execPath, argv, {
    env: { PATH: process.env.PATH ?? '', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  started.add(child)
  const said = { out: '', error: '' }
  child.stderr.on('data', (chunk: Buffer) => {
    said.error += chunk.toString()
  })
  child.stdout.on('data', (chunk: Buffer) => {
    said.out += chunk.toString()
  })
  // Not at `exit`: what was said last may still be on its way.
  const exited = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>
  const says = async (pattern: RegExp): Promise<string> => {
    for (;;) {
      const found = pattern.exec(said.out)
      if (found !== null) return found[1] ?? ''
      const ended = await Promise.race([once(child.stdout, 'data').then(() => false), exited.then(() => true)])
      if (ended && !pattern.test(said.out))
        throw new Error(`it ended before it said ${pattern}: ${said.out}${said.error}`)
    }
  }
  return { child, exited, said, says }
}

/** Ends what a failed test left running. */
export function killSvc(): void {
  for (const child of started) child.kill('SIGKILL')
  started.clear()
}

/** Memory of a process that is in RAM, in bytes. */
export async function residentBytes(pid: number): Promise<number> {
  try {
    const status = await readFile(`/proc/${pid}/status`, 'utf8')
    return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) * 1024
  } catch {
    // Not Linux.
    const { stdout } = await promisify(execFile)('ps', ['-o', 'rss=', '-p', String(pid)])
    return Number(stdout) * 1024
  }
}
