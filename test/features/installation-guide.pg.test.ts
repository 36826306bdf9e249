/** docs/guides/installation.md: its commands, pasted in order, have the described results. */
import { spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { blocksOf } from '../support/page.ts'
import { type SampleDatabase, sampleDatabase } from '../support/sample.ts'
import {
  type CommandResult,
  closeTerminal,
  installSvc,
  openTerminal,
  paste,
  type Terminal,
} from '../support/terminal.ts'
import { read } from '../tidy/tree.ts'

/**
 * Commands with the output shown on the page: a block of commands, or the lines after `$` in a block that
 * shows both.
 */
const COMMANDS = blocksOf(read('docs/guides/installation.md')).flatMap(({ language, text, output }) => {
  if (language === 'sh') return [{ command: text.trim(), shown: output?.text ?? '' }]
  const [, command, shown = ''] = /^\$ (.*)\n([\s\S]*)$/.exec(text) ?? []
  return command === undefined ? [] : [{ command, shown }]
})

const missing = ['bash', 'curl', 'jq'].filter(program => spawnSync(program, ['--version']).error)
if (missing.length > 0)
  process.stderr.write(`installation-guide.pg.test.ts: skipped, for want of ${missing.join(', ')}\n`)

// Without these programs the commands cannot be pasted.
describe.runIf(missing.length === 0)('pasted into a shell', () => {
  let database: SampleDatabase
  let folder: string
  let terminal: Terminal
  let gateway: TestGateway | undefined
  const pasted = new Map<string, CommandResult>()

  beforeAll(async () => {
    database = await sampleDatabase()
    folder = await mkdtemp(join(tmpdir(), 'svc-installation-'))
    await installSvc(folder)
    terminal = openTerminal(folder, {
      ...{ HOME: folder, DATABASE_URL: database.url },
      SVC_ADMIN_DATABASE_URL: database.adminUrl,
    })
    for (const { command } of COMMANDS) {
      if (command.includes('$URL')) {
        gateway = await testGateway(database.url)
        await paste(terminal, `export URL=${gateway.url}`)
      }
      const here = command.replace('postgres://postgres@localhost/shop', database.adminUrl)
      pasted.set(command, await paste(terminal, here))
    }
  }, 120_000)
  afterAll(async () => {
    if (terminal !== undefined) await closeTerminal(terminal)
    await gateway?.close()
    await database?.drop()
    await rm(folder, { recursive: true, force: true })
  })

  test('every kind of command was found', () => expect(COMMANDS).toHaveLength(6))

  test.each(COMMANDS)('$command', ({ command, shown }) => {
    const { said, status } = pasted.get(command) ?? { said: '', status: -1 }
    expect([status, said]).toEqual([0, expect.anything()])
    // The page's database has other tables than this test's.
    if (shown.startsWith('{')) expect(Object.keys(JSON.parse(said))).toEqual(Object.keys(JSON.parse(shown)))
    else expect(said.replace(/\d+ tables/, 'n tables')).toContain(shown.replace(/\d+ tables/, 'n tables').trim())
  })

  test('a dry run prints a transaction', () => {
    expect(pasted.get('npx svc install --dry-run')?.said).toMatch(/^BEGIN;?$[\s\S]*^COMMIT;?$/m)
  })
})
