/** docs/guides/installation.md: its commands, pasted one after the other, do what it says. */
import { spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { blocksOf } from '../support/page.ts'
import { type SampleDatabase, sampleDatabase } from '../support/sample.ts'
import { installSvc, openShell, type Pasted, type Shell } from '../support/shell.ts'
import { read } from '../tidy/tree.ts'

/** Commands with what the page shows of them: a block of them, or what stands behind `$` of a block that shows both. */
const COMMANDS = blocksOf(read('docs/guides/installation.md')).flatMap(({ language, text, output }) => {
  if (language === 'sh') return [{ command: text.trim(), shown: output?.text ?? '' }]
  const [, command = '', shown = ''] = /^\$ (.*)\n([\s\S]*)$/.exec(text) ?? []
  return [{ command, shown }]
})

const missing = ['bash', 'curl', 'jq'].filter(program => spawnSync(program, ['--version']).error)
if (missing.length > 0)
  process.stderr.write(`installation-guide.pg.test.ts: skipped, for want of ${missing.join(', ')}\n`)

// Without these programs there is nothing to paste into.
describe.runIf(missing.length === 0)('pasted into a shell', () => {
  let database: SampleDatabase
  let folder: string
  let shell: Shell
  let gateway: TestGateway | undefined
  const pasted = new Map<string, Pasted>()

  beforeAll(async () => {
    database = await sampleDatabase()
    folder = await mkdtemp(join(tmpdir(), 'svc-installation-'))
    await installSvc(folder)
    shell = openShell(folder, {
      ...{ PATH: process.env.PATH, HOME: folder, DATABASE_URL: database.url },
      SVC_ADMIN_DATABASE_URL: database.adminUrl,
    })
    for (const { command } of COMMANDS) {
      if (command.includes('$URL')) {
        gateway = await testGateway(database.url)
        await shell.paste(`export URL=${gateway.url}`)
      }
      const here = command.replace('postgres://postgres@localhost/shop', database.adminUrl)
      pasted.set(command, await shell.paste(here))
    }
  }, 120_000)
  afterAll(async () => {
    await shell?.close()
    await gateway?.close()
    await database?.drop()
    await rm(folder, { recursive: true, force: true })
  })

  test('there are all kinds of commands', () => expect(COMMANDS).toHaveLength(5))

  test.each(COMMANDS)('$command', ({ command, shown }) => {
    const { output, status } = pasted.get(command) ?? { output: '', status: -1 }
    expect([status, output]).toEqual([0, expect.anything()])
    // The page's database has other tables than ours.
    if (shown.startsWith('{')) expect(Object.keys(JSON.parse(output))).toEqual(Object.keys(JSON.parse(shown)))
    else expect(output.replace(/\d+ tables/, 'n tables')).toContain(shown.replace(/\d+ tables/, 'n tables').trim())
  })

  test('a dry run prints a transaction', () => {
    expect(pasted.get('npx svc install --dry-run')?.output).toMatch(/^BEGIN;?$[\s\S]*^COMMIT;?$/m)
  })
})
