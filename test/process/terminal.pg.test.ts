/**
 * The built program on a pseudo-terminal: bars and colours appear there, and in no pipe, no file and with
 * NO_COLOR no colours.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { databaseFixture, folderFixture, gatewayFixture } from '../support/fixtures.ts'
import { SECRET } from '../support/gateway.ts'
import { BUILT_MAIN } from '../support/process.ts'

const PATIENT = { timeout: 60_000 }

/** The program `script` of util-linux, which runs a command on a pseudo-terminal. */
const HAS_SCRIPT =
  process.platform === 'linux' && spawnSync('script', ['-qec', 'true', '/dev/null'], { stdio: 'ignore' }).status === 0
if (!HAS_SCRIPT) process.stderr.write('terminal.pg.test.ts: skipped: script of util-linux is not installed\n')

const ESCAPE = '\u001b'
/** A colour or a weight: "select graphic rendition" (ECMA-48). */
const STYLE = /\u001b\[[\d;]*m/

const database = databaseFixture(`
  CREATE TABLE words (id int PRIMARY KEY, word text);
  GRANT SELECT, INSERT, UPDATE ON words TO PUBLIC;
`)
const gateway = gatewayFixture(database)
const folder = folderFixture()

/** The output of a command and its exit code. `svc` in the command is the built program. */
async function shown(command: string, environment: Readonly<Record<string, string>> = {}) {
  const child = spawn(
    'script',
    ['-qec', command.replaceAll('svc ', `"${process.execPath}" "${BUILT_MAIN}" `), '/dev/null'],
    {
      cwd: folder,
      env: {
        ...{ PATH: process.env.PATH ?? '', TERM: 'xterm-256color', SHELL: '/bin/sh', JWT_SECRET: SECRET },
        ...{ DATABASE_URL: database.url, SVC_ADMIN_DATABASE_URL: database.adminUrl, ...environment },
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  let text = ''
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, text }
}

describe.skipIf(!HAS_SCRIPT)('on a terminal', () => {
  const commands = {
    install: ['svc install', 'Creating schema svc'],
    'schema pull': ['svc schema pull --out shop.schema', 'Reading the schema'],
    import: ['svc import words words.csv --upsert', 'Importing words.csv'],
  } as const

  describe.each(Object.entries(commands))('svc %s', (_, [command, label]) => {
    const run = async (more: string, environment = {}) => {
      writeFileSync(join(folder, 'words.csv'), 'id,word\n1,one\n')
      const SVC_TOKEN = await gateway.token({ tenantId: 't1' })
      const url = command.includes('import') ? ` --url ${gateway.url}` : ''
      return shown(`${command}${url}${more}`, { SVC_TOKEN, ...environment })
    }

    test('shows a bar and erases it', PATIENT, async () => {
      const { code, text } = await run('')
      expect([code, text]).toEqual([0, expect.stringContaining(label)])
      expect(text).toMatch(/[█░]{24}/)
      expect(text).toMatch(STYLE)
      expect(text.lastIndexOf(`\r${ESCAPE}[K`)).toBeGreaterThan(text.lastIndexOf(label))
    })

    test('with NO_COLOR, shows the bar without colours', PATIENT, async () => {
      const { text } = await run('', { NO_COLOR: '1' })
      expect(text).toMatch(/[█░]{24}/)
      expect(text).not.toMatch(STYLE)
    })

    test('shows no bar in a pipe, in a file, or on a terminal that cannot erase a line', PATIENT, async () => {
      expect((await run(' 2>&1 | cat')).text).not.toMatch(/[█░\u001b]/)
      expect((await run(' 2> errors.txt')).text).not.toMatch(/[█░\u001b]/)
      expect(readFileSync(join(folder, 'errors.txt'), 'utf8')).toBe('')
      expect((await run('', { TERM: 'dumb' })).text).not.toMatch(/[█░\u001b]/)
    })
  })

  test.each(['svc check', 'svc --help', 'svc schema --help'])(
    'the colours of "%s" are for terminals',
    PATIENT,
    async command => {
      expect((await shown(command)).text).toMatch(STYLE)
      for (const environment of [{ NO_COLOR: '1' }, { TERM: 'dumb' }])
        expect((await shown(command, environment)).text).not.toContain(ESCAPE)
      expect((await shown(`${command} 2>&1 | cat`)).text).not.toContain(ESCAPE)
      // An empty value has no effect (https://no-color.org).
      expect((await shown(command, { NO_COLOR: '' })).text).toMatch(STYLE)
    },
  )
})
