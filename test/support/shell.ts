/** A shell into which a test pastes, as a reader does: one after the other, everything that was set stays. */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { ROOT } from '../tidy/tree.ts'
import { BUILT_MAIN } from './process.ts'

export interface Pasted {
  /** Standard output and standard error, as a terminal shows them. */
  readonly output: string
  /** Of the last command. */
  readonly status: number
}

export interface Shell {
  /** Whole lines, which may be several commands. */
  paste(lines: string): Promise<Pasted>
  /** Ends it, and whatever it has started. */
  close(): Promise<void>
}

export function openShell(folder: string, environment: NodeJS.ProcessEnv): Shell {
  // A group of its own, so that what runs in the background can be ended with it.
  const bash = spawn('bash', ['--noprofile', '--norc'], { cwd: folder, env: environment, detached: true })
  const exited = once(bash, 'exit')
  bash.stdin.write('exec 2>&1\n')
  let heard = ''
  let wake = () => {}
  bash.stdout.on('data', (chunk: Buffer) => {
    heard += chunk.toString()
    wake()
  })
  bash.on('exit', () => wake())
  return {
    async paste(lines) {
      const end = randomUUID()
      heard = ''
      bash.stdin.write(`${lines}\nprintf '\\n%s %d\\n' ${end} $?\n`)
      const ended = new RegExp(`\\n${end} (\\d+)\\n`)
      for (;;) {
        const found = ended.exec(heard)
        if (found !== null) return { output: heard.slice(0, found.index), status: Number(found[1]) }
        if (bash.exitCode !== null || bash.signalCode !== null) throw new Error(`the shell has ended: ${heard}`)
        await new Promise<void>(resolve => {
          wake = resolve
        })
      }
    },
    async close() {
      try {
        if (bash.pid !== undefined) process.kill(-bash.pid, 'SIGKILL')
      } catch {
        // Nobody of the group is left.
      }
      await exited
    },
  }
}

/** As `npm install` of the package leaves a folder. */
export async function installSvc(folder: string): Promise<void> {
  const modules = join(folder, 'node_modules')
  await mkdir(join(modules, '.bin'), { recursive: true })
  await symlink(ROOT, join(modules, 'svc-gateway'))
  await symlink(BUILT_MAIN, join(modules, '.bin/svc'))
}
