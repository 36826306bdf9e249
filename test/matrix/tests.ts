/** Runs test files in a separate vitest process, and leaves none of its processes behind. */
import { spawn } from 'node:child_process'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { ROOT } from '../tidy/tree.ts'
import type { FileResult } from './results.ts'
import { openScratch } from './scratch.ts'

export interface TestRun {
  readonly node: string
  readonly environment: Readonly<Record<string, string>>
  readonly files: readonly string[]
  /** The file for vitest's output, which is truncated first. */
  readonly log: string
  /** Ends the run; results so far are kept. */
  readonly signal: AbortSignal
  finished(result: FileResult): Promise<void>
}

/** Long timeouts, because a busy machine must not fail the matrix. */
const PATIENCE = ['--testTimeout=90000', '--hookTimeout=180000']

/** Resolves with the exit status of vitest; null if it was interrupted. */
export async function runTests({ node, environment, files, log, signal, finished }: TestRun): Promise<number | null> {
  const scratch = await openScratch()
  const output = await open(log, 'w')
  try {
    const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs')
    const reporters = ['--reporter=default', `--reporter=${join(ROOT, 'test/matrix/reporter.ts')}`]
    const child = spawn(node, [vitest, 'run', ...reporters, ...PATIENCE, ...files], {
      cwd: ROOT,
      env: { ...process.env, SVC_TEST_POSTGRESQL: undefined, TMPDIR: scratch.folder, ...environment },
      stdio: ['ignore', output.fd, output.fd, 'pipe'],
      // A process group, so that vitest ends together with its workers and their children.
      detached: process.platform !== 'win32',
    })
    const stop = (): boolean => child.kill('SIGTERM')
    signal.addEventListener('abort', stop)
    if (signal.aborted) stop()
    const exit = new Promise<number | null>((resolve, reject) => child.once('error', reject).once('exit', resolve))
    for await (const line of createInterface({ input: child.stdio[3] as Readable })) {
      await finished(JSON.parse(line) as FileResult)
    }
    const status = await exit
    signal.removeEventListener('abort', stop)
    if (process.platform !== 'win32') killGroup(child.pid)
    return signal.aborted ? null : status
  } finally {
    await output.close()
    await scratch.close()
  }
}

/** Workers of an interrupted vitest can wait for something that never happens. */
function killGroup(leader: number | undefined): void {
  try {
    if (leader !== undefined) process.kill(-leader, 'SIGKILL')
  } catch {
    // All processes have exited.
  }
}
