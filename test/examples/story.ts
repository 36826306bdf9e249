/**
 * Executes a README of examples/ as written. Each `console` block is pasted into a separate terminal, and the
 * output shown below a command must match, with `…` for any text. If the last command of a block is a server,
 * it keeps running, and a `text` block is its next output. Everything runs in a copy of the clone in which
 * every port is a free one.
 */
import { spawnSync } from 'node:child_process'
import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { freePort } from '../../src/demo/free-port.ts'
import { printedAs } from '../support/page.ts'
import { closeTerminal, enter, openTerminal, resultOf, type Terminal, until } from '../support/terminal.ts'
import { ROOT } from '../tidy/tree.ts'

/** The reason why no shell is available; null if one is. */
export const SHELL_MISSING: string | null = ['bash', 'curl'].every(
  program => spawnSync(program, ['--version']).status === 0,
)
  ? null
  : 'bash or curl is not installed'

export interface Story {
  /** The copy of the example. */
  readonly folder: string
  /** The port used instead of the one in the files. */
  port(shown: number): number
  play(): Promise<void>
  /** Pastes another block into another terminal. */
  paste(block: string): Promise<void>
  /** Resolves when one of the running commands has printed this. */
  hear(shown: string): Promise<void>
  /** Sends Ctrl-C to the terminal in which a command runs. */
  stop(command: string): Promise<void>
  /** The output of a command on both streams, and its exit status. */
  run(command: string): Promise<{ readonly status: number | null; readonly said: string }>
  close(): Promise<void>
}

interface Step {
  readonly command: string
  readonly shown: string
}

/** All ports that occur in the examples. */
const PORTS = [5173, 8080, 8090, 9000, 54_320]

export async function openStory(name: string): Promise<Story> {
  const ports = new Map<number, number>()
  for (const port of PORTS) ports.set(port, await freePort())
  const clone = await mkdtemp(join(tmpdir(), `svc-story-${name}-`))
  for (const shared of ['dist', 'node_modules', 'package.json']) await symlink(join(ROOT, shared), join(clone, shared))
  const examples = join(clone, 'examples')
  const folder = join(examples, name)
  // Without what a reader has built there.
  const filter = (path: string) => basename(path) !== 'dist'
  await cp(join(ROOT, 'examples', name), folder, { recursive: true, filter })
  await cp(join(ROOT, 'examples/postgres.js'), join(examples, 'postgres.js'))
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter(entry => entry.isFile()).map(({ parentPath, name: file }) => join(parentPath, file))
  for (const file of [join(examples, 'postgres.js'), ...files])
    await writeFile(file, withPorts(await readFile(file, 'utf8'), ports))
  const readme = await readFile(join(folder, 'README.md'), 'utf8')
  const terminals: Terminal[] = []

  async function paste(block: string): Promise<void> {
    const terminal = openTerminal(folder)
    terminals.push(terminal)
    const steps = stepsOf(block)
    for (const [index, { command, shown }] of steps.entries()) {
      enter(terminal, command)
      const goesOn = index === steps.length - 1 && shown !== ''
      await until(terminal, command, () => {
        const answer = resultOf(terminal)
        if (answer === null) return goesOn && begins(terminal.out, shown)
        if (answer.status !== 0) throw new Error(`it ended with ${answer.status}`)
        if (!matches(answer.said, shown)) throw new Error(`it did not say\n${shown}\nbut`)
        return true
      })
    }
  }

  async function hear(shown: string): Promise<void> {
    const running = terminals.filter(terminal => resultOf(terminal) === null)
    const heard = running.map(terminal => until(terminal, 'what runs', () => contains(terminal.out, shown)))
    await Promise.any(heard).catch(({ errors }: AggregateError) => {
      throw new Error(`no command printed:\n${shown}\n\n${errors.map(({ message }) => message).join('\n')}`)
    })
  }

  return {
    folder,
    paste,
    hear,
    port: shown => ports.get(shown) ?? 0,
    async play() {
      for (const [, kind, block = ''] of readme.matchAll(/^```(console|text)\n([\s\S]*?)^```/gm)) {
        await (kind === 'console' ? paste(block) : hear(block.trimEnd()))
      }
    },
    async stop(command) {
      const running = terminals.find(terminal => terminal.command === command)
      if (running === undefined) throw new Error(`nothing runs ${command}`)
      terminals.splice(terminals.indexOf(running), 1)
      await closeTerminal(running)
    },
    async run(command) {
      const terminal = openTerminal(folder)
      terminal.shell.stdin.end(`${command}\n`)
      await terminal.closed
      return { status: terminal.shell.exitCode, said: terminal.out + terminal.error }
    },
    async close() {
      for (const terminal of terminals.reverse()) await closeTerminal(terminal)
      await rm(clone, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/** `$ command` and its output below. A comment after two or more blanks is for the reader. */
function stepsOf(block: string): readonly Step[] {
  return [...block.matchAll(/^\$ (.*)\n((?:(?!\$ ).*\n)*)/gm)].map(([, command = '', shown = '']) => ({
    command: command.replace(/ {2,}# .*$/, ''),
    shown: shown.trimEnd(),
  }))
}

function matches(said: string, shown: string): boolean {
  return shown === '' || new RegExp(`^${printedAs(shown)}$`).test(said.trimEnd())
}

function begins(said: string, shown: string): boolean {
  return new RegExp(`^${printedAs(shown)}`).test(said)
}

function contains(said: string, shown: string): boolean {
  return new RegExp(`^${printedAs(shown)}$`, 'm').test(said)
}

function withPorts(text: string, ports: ReadonlyMap<number, number>): string {
  return text.replace(/\b(5173|8080|8090|9000|54320)\b/g, shown => String(ports.get(Number(shown))))
}
