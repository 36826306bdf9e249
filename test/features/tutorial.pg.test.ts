/** docs/tutorial.md: pasted from top to bottom into one shell, it does and prints what it says. */
import { spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { blocksOf, fileOf, pattern, printedAs } from '../support/page.ts'
import { privateServer } from '../support/postgres.ts'
import { freePort } from '../support/programs.ts'
import type { TestServer } from '../support/server.ts'
import { closeTerminal, installSvc, openTerminal, paste, type Said, type Terminal } from '../support/terminal.ts'
import { read } from '../tidy/tree.ts'

const PAGE = read('docs/tutorial.md')
const BLOCKS = blocksOf(PAGE).map(block => ({ ...block, first: block.text.split('\n')[0] ?? '' }))
/** Where the page has its database and its gateway: here they are elsewhere. */
const OWNER = 'postgres:secret@127.0.0.1:5432'
const DATABASE = '127.0.0.1:5432'
const GATEWAY = '127.0.0.1:8080'

const missing = ['bash', 'curl', 'psql', 'openssl'].filter(program => spawnSync(program, ['--version']).error)
if (missing.length > 0) process.stderr.write(`tutorial.pg.test.ts: skipped, for want of ${missing.join(', ')}\n`)

// Without these programs there is nothing to paste into.
describe.runIf(missing.length === 0)('pasted into a shell', () => {
  let server: TestServer
  let folder: string
  let terminal: Terminal
  let here: (text: string) => string
  beforeAll(async () => {
    server = await privateServer()
    folder = await mkdtemp(join(tmpdir(), 'svc-tutorial-'))
    await installSvc(folder)
    const owner = new URL(server.adminUrl)
    const port = await freePort()
    here = text =>
      text
        .replaceAll(OWNER, `${owner.username}:${owner.password}@${owner.host}`)
        .replaceAll(DATABASE, owner.host)
        .replaceAll(GATEWAY, `127.0.0.1:${port}`)
    terminal = openTerminal(folder, {
      HOME: folder,
      // As the page tells readers who have it.
      ...(process.version.startsWith('v20.') ? { NODE_OPTIONS: '--experimental-websocket --no-warnings' } : {}),
    })
  })
  afterAll(async () => {
    if (terminal !== undefined) await closeTerminal(terminal)
    await server?.close()
    await rm(folder, { recursive: true, force: true })
  })

  // One after the other: each stands on those before it.
  test.each(BLOCKS)('$first', { timeout: 60_000 }, async ({ language, text, output }) => {
    if (language === 'sh') {
      const pasted = withoutServerVersion(await paste(terminal, here(text)))
      if (output?.language === 'json') expect(lastJson(pasted.said)).toEqual(pattern(JSON.parse(output.text)))
      if (output?.language === 'text')
        expect(pasted.said.trimEnd()).toMatch(new RegExp(`^${printedAs(here(output.text.trimEnd()))}$`))
      expect(pasted).toMatchObject({ status: 0 })
    } else if (language !== 'console') {
      const file = fileOf(text)
      await writeFile(join(folder, file.name), here(file.content))
    }
  })
})

/** PostgreSQL from npm is a little older than what readers install, and `svc check` says so. */
function withoutServerVersion({ said, status }: Said): Said {
  const others = said.replace(/^error: PostgreSQL older than .*\n {2}.*\n/m, '')
  return others === said ? { said, status } : { said: others.replace(/: 1 error,/, ': 0 errors,'), status: 0 }
}

/** Each answer is a line; of several, the last is shown. */
function lastJson(output: string): unknown {
  return JSON.parse(output.trimEnd().split('\n').at(-1) ?? '')
}
