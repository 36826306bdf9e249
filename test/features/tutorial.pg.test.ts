/**
 * docs/tutorial.md: pasted from top to bottom into one shell, its commands have the results and output shown,
 * also with the oldest Node that it states.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../../src/demo/free-port.ts'
import { installLane, RegistryUnreachable } from '../matrix/install.ts'
import { minimumNode } from '../matrix/lanes.ts'
import { copyOfClone, npmEnvironment, unreachable } from '../support/npm.ts'
import { blocksOf, fileOf, pattern, printedAs } from '../support/page.ts'
import {
  type CommandResult,
  closeTerminal,
  installSvc,
  openTerminal,
  paste,
  type Terminal,
} from '../support/terminal.ts'
import { ROOT, read } from '../tidy/tree.ts'

const PAGE = read('docs/tutorial.md')
const BLOCKS = blocksOf(PAGE).map(block => ({ ...block, first: block.text.split('\n')[0] ?? '' }))
const missing = ['bash', 'curl', 'psql', 'openssl'].filter(program => spawnSync(program, ['--version']).error)
if (missing.length > 0) process.stderr.write(`tutorial.pg.test.ts: skipped, for want of ${missing.join(', ')}\n`)

/** The folder with the oldest Node that the tutorial supports, or why it is not there. */
async function oldestNode(): Promise<{ readonly path: string } | { readonly missing: string }> {
  const lane = minimumNode(process.platform, process.arch)
  if (process.versions.node === lane.version) return { missing: 'this process runs on it' }
  try {
    const { node } = await installLane(lane, {
      ...{ cache: join(ROOT, '.cache/matrix'), offline: true, print() {} },
      signal: AbortSignal.timeout(60_000),
    })
    return { path: dirname(node) }
  } catch (error) {
    if (error instanceof RegistryUnreachable) return { missing: `${error.message}; npm run test:matrix installs it` }
    throw error
  }
}

const oldest = missing.length === 0 ? await oldestNode() : { missing: 'programs are missing' }
if ('missing' in oldest) process.stderr.write(`tutorial.pg.test.ts: oldest Node skipped: ${oldest.missing}\n`)

// Without these programs the commands cannot be pasted.
describe.runIf(missing.length === 0)('pasted into a shell', () => pasted(null))

describe.runIf('path' in oldest)('pasted into a shell with the oldest Node', () => {
  const path = 'path' in oldest ? oldest.path : ''
  test('which is the one that the page states', () => {
    expect(execFileSync(join(path, 'node'), ['--version'], { encoding: 'utf8' })).toBe(
      `v${minimumNode(process.platform, process.arch).version}\n`,
    )
  })
  pasted(path)
})

/** `node`: a folder to find Node in. The package is then the one that is built here. */
function pasted(node: string | null): void {
  let home: string
  let terminal: Terminal
  let here: (text: string) => string
  /** The reason why packages cannot be installed, once known. */
  let offline: string | null = node === null ? null : 'the package is installed from here'
  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'svc-tutorial-'))
    const clone = join(home, 'clone')
    await copyOfClone(clone)
    const [database, gateway] = [await freePort(), await freePort()]
    here = text => text.replace(/(127\.0\.0\.1:|--port )5432\b/g, `$1${database}`).replaceAll(':8080', `:${gateway}`)
    const path = node === null ? {} : { PATH: `${node}:${process.env.PATH}` }
    terminal = openTerminal(clone, { HOME: home, ...npmEnvironment(), ...path })
  }, 60_000)
  afterAll(async () => {
    if (terminal !== undefined) await closeTerminal(terminal)
    await rm(home, { recursive: true, force: true, maxRetries: 10 })
  })

  // In sequence: each block depends on the ones before it.
  test.for(BLOCKS)('$first', { timeout: 600_000 }, async ({ language, text, output }, { skip }) => {
    if (language !== 'sh') {
      const file = fileOf(text)
      await writeFile(join(home, 'tutorial', file.name), here(file.content))
    } else if (/\bnpm /.test(text)) {
      await install(text)
      if (offline !== null && node === null) skip(offline)
    } else {
      const pasted = withoutServerVersion(await paste(terminal, here(text)))
      if (output?.language === 'json') expect(lastJson(pasted.said)).toEqual(pattern(JSON.parse(output.text)))
      if (output?.language === 'text') {
        const shown = withoutServerVersion({ said: here(output.text), status: 0 })
        expect(pasted.said.trimEnd()).toMatch(new RegExp(`^${printedAs(shown.said.trimEnd())}$`))
      }
      expect(pasted).toMatchObject({ status: 0 })
    }
  })

  /**
   * Runs line by line, so that no failure is hidden. If no registry is reachable, the package installed here
   * is used.
   */
  async function install(text: string): Promise<void> {
    for (const line of text.trimEnd().split('\n')) {
      const command = offline === null ? line : line.replace(/(^| && )npm .*/, '')
      const { said, status } = command === '' ? { said: '', status: 0 } : await paste(terminal, command)
      offline ??= unreachable(said)
      if (offline === null) expect({ said, status }).toMatchObject({ status: 0 })
      else if (line.includes('npm install')) await installSvc(join(home, 'tutorial'))
    }
  }
}

/** A note about PostgreSQL from npm, as long as it is older than the latest minor release. */
function withoutServerVersion({ said, status }: CommandResult): CommandResult {
  const others = said.replace(/^note: PostgreSQL older than .*\n {2}.*\n/m, '')
  return { said: others === said ? said : others.replace(/, 1 note$/m, ''), status }
}

/** Each response is one line; if there are several, the page shows the last. */
function lastJson(output: string): unknown {
  return JSON.parse(output.trimEnd().split('\n').at(-1) ?? '')
}
