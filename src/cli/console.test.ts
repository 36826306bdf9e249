import { chmodSync, watch, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runCommand } from '../../test/support/cli.ts'
import { folderFixture } from '../../test/support/fixtures.ts'

const folder = folderFixture()
const server = createServer((request, response) => {
  const hasConsole = !request.url?.startsWith('/without/')
  response.end(JSON.stringify({ hasConsole }))
})
let url = ''
beforeAll(async () => {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => server.close())

async function svc(argv: readonly string[], environment: Record<string, string> = {}) {
  const { code, out, error } = await runCommand(argv, {
    environment: { DATABASE_URL: 'postgres://localhost/none', ...environment },
    workingDirectory: folder,
  })
  return { code, out: out.join('\n'), error: error.join('\n') }
}

// The program of the test is a script of a POSIX shell, which Windows does not run.
test.skipIf(process.platform === 'win32')(
  'the address is printed, and opened with the program of BROWSER',
  async () => {
    const browser = join(folder, 'browser')
    const opened = join(folder, 'opened')
    writeFileSync(browser, `#!/bin/sh\nprintf %s "$1" > '${opened}.new' && mv '${opened}.new' '${opened}'\n`)
    chmodSync(browser, 0o755)
    const isWritten = new Promise<void>(resolve => {
      const watcher = watch(folder, (_event, name) => {
        if (name !== 'opened') return
        watcher.close()
        resolve()
      })
    })
    expect(await svc(['console', '--url', `${url}/svc`], { BROWSER: browser })).toEqual({
      ...{ code: 0, out: `${url}/svc/console`, error: '' },
    })
    await isWritten
    expect(await readFile(opened, 'utf8')).toBe(`${url}/svc/console`)
  },
)

test('with --print, or without a browser, only the address is printed', async () => {
  expect(await svc(['console', '--print', '--url', url])).toEqual({ code: 0, out: `${url}/console`, error: '' })
  const { code, out, error } = await svc(['console', '--url', url], { BROWSER: join(folder, 'nothing') })
  expect([code, out, error]).toEqual([1, `${url}/console`, 'no browser could be opened; open the address above'])
})

test('a gateway that does not answer, or that serves no console, is an error', async () => {
  const without = await svc(['console', '--print', '--url', `${url}/without`])
  expect([without.code, without.out, without.error]).toEqual([1, '', expect.stringContaining('[gateway.console]')])
  const nobody = await svc(['console', '--print', '--url', 'http://127.0.0.1:1'])
  expect([nobody.code, nobody.error]).toEqual([1, expect.stringContaining('no gateway responds')])
  expect((await svc(['console', '--url', 'nonsense'])).code).toBe(2)
})
