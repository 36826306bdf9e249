/** Every command ends quietly when its output is no longer read: `svc format | true`. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { open, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { beforeAll, expect, test } from 'vitest'
import type { SvcCommand } from '../../src/cli/command.ts'
import { createProgram } from '../../src/cli/program.ts'
import { databaseFixture, folderFixture } from '../support/fixtures.ts'
import { BUILT_MAIN } from '../support/process.ts'

const SECRET = 'a secret of 32 bytes, or of more'
const QUERY = 'get users where id = 1'

/** The arguments of each command. A server runs until a signal, which it gets after its first response. */
const ARGUMENTS: Readonly<Record<string, readonly string[] | 'server'>> = {
  ...{ serve: 'server', demo: 'server', postgres: 'server', mcp: 'server' },
  ...{ token: [], 'token verify': ['not.a.token'], 'token revoke': ['--jti', '1'] },
  ...{ check: ['--print'], openapi: [], types: [] },
  ...{ parse: ['query.svc'], transpile: ['query.svc'], explain: ['query.svc'], format: ['query.svc'] },
  ...{ 'schema pull': [], 'schema summary': [], install: ['--dry-run'], uninstall: ['--dry-run'] },
  ...{ 'webhooks list': [], 'webhooks show': ['1'], 'webhooks redeliver': ['1'], 'webhooks purge': ['--yes'] },
  ...{ console: ['--print'], completion: ['bash'], capacity: ['--requests', '100'] },
  ...{ 'webhooks test': ['nobody'], import: ['notes', 'query.svc'] },
}

const database = databaseFixture()
const folder = folderFixture()
beforeAll(() => writeFile(join(folder, 'query.svc'), `${QUERY};\n`.repeat(2_000)))

const program = createProgram(
  {
    ...{ environment: {}, workingDirectory: '.', input: async () => new Uint8Array(), out() {}, error() {} },
    stdio: () => ({ input: new PassThrough(), output: new PassThrough() }),
    ...{ hasColors: false, terminal: null },
    signals: { on() {}, off() {}, exit() {} },
  },
  () => {},
)

function leaves(command: SvcCommand, path: readonly string[] = []): readonly string[] {
  return command.commands.flatMap(below => {
    const name = [...path, below.name()]
    return below.commands.length > 0 ? leaves(below, name) : [name.join(' ')]
  })
}

// `svc token` prints a token, and has subcommands.
const COMMANDS = [...leaves(program), 'token']

interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly error: string
}

/** `pipe`: whether its standard output is read, or closed before anything is written. */
async function run(argv: readonly string[], pipe: 'open' | 'closed'): Promise<Ended> {
  const child = spawn(process.execPath, [BUILT_MAIN, ...argv], {
    cwd: folder,
    env: { PATH: process.env.PATH ?? '', DATABASE_URL: database.url, JWT_SECRET: SECRET },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let error = ''
  child.stderr.on('data', (chunk: Buffer) => {
    error += chunk.toString()
  })
  if (pipe === 'open') child.stdout.resume()
  else child.stdout.destroy()
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  return { code, signal, error }
}

test('every command has test arguments', () => {
  expect(Object.keys(ARGUMENTS).sort()).toEqual([...COMMANDS].sort())
})

test.each(['', ...COMMANDS])('svc %s --help ends quietly', { timeout: 60_000 }, async command => {
  const ended = await run([...command.split(' ').filter(word => word !== ''), '--help'], 'closed')
  expect(ended).toEqual({ code: 0, signal: null, error: '' })
})

test.each(COMMANDS.filter(command => ARGUMENTS[command] !== 'server'))(
  'the command ends quietly: svc %s',
  { timeout: 60_000 },
  async command => {
    const given = ARGUMENTS[command]
    const argv = [...command.split(' '), ...(given === undefined || given === 'server' ? [] : given)]
    const open = await run(argv, 'open')
    expect(open.error).not.toMatch(/\n {4}at /)
    expect(await run(argv, 'closed')).toEqual(open)
  },
)

test('output that cannot be written for another reason is an error, without a stack trace', async context => {
  if (!existsSync('/dev/full')) context.skip('there is no /dev/full, which only Linux has')
  const full = await open('/dev/full', 'w')
  try {
    const child = spawn(process.execPath, [BUILT_MAIN, '--help'], { stdio: ['ignore', full.fd, 'pipe'] })
    let error = ''
    child.stderr?.on('data', (chunk: Buffer) => {
      error += chunk.toString()
    })
    const [code] = await once(child, 'close')
    expect([code, error]).toEqual([1, 'standard output cannot be written: ENOSPC: no space left on device, write\n'])
  } finally {
    await full.close()
  }
})

test('a server continues without a reader of its output, and ends on a signal', { timeout: 60_000 }, async () => {
  const child = spawn(process.execPath, [BUILT_MAIN, 'mcp', '--bind', '127.0.0.1:0'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let error = ''
  child.stderr.on('data', (chunk: Buffer) => {
    error += chunk.toString()
  })
  await once(child.stdout, 'data')
  child.stdout.destroy()
  child.kill('SIGTERM')
  expect([...(await once(child, 'close')), error]).toEqual([0, null, ''])
})
