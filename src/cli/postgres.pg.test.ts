/** `svc postgres`, started by a shell and ended by signals. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { execute } from '../../test/support/postgres.ts'
import { killSvc, type Svc, startSvc } from '../../test/support/process.ts'
import { freePort } from '../demo/free-port.ts'

vi.setConfig({ testTimeout: 120_000 })

const folder = mkdtempSync(join(tmpdir(), 'svc-postgres-'))
const data = join(folder, 'pgdata')
let port: string
beforeAll(async () => {
  port = String(await freePort())
})
afterAll(() => {
  killSvc()
  rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
})

const start = (): Svc => startSvc(['postgres', '--data', data, '--port', port], {})
const printed = /^(postgres:\/\/\S+)\n$/

test.each(['SIGTERM', 'SIGINT'] as const)('prints its URL and nothing else, and %s stops it', async signal => {
  const svc = start()
  const url = await svc.says(printed)
  expect(await execute(url, 'select current_user as name')).toEqual([{ name: 'postgres' }])
  svc.child.kill(signal)
  expect(await svc.exited).toEqual([0, null])
  expect(svc.said.error).toContain(`the URL is also in ${join(data, 'url')}. Ctrl-C stops it.`)
  await expect(execute(url, 'select 1')).rejects.toThrow()
})

test('if PostgreSQL ends by itself, svc postgres ends with exit code 1 and the reason', async () => {
  const svc = start()
  await svc.says(printed)
  process.kill(Number.parseInt(readFileSync(join(data, 'cluster/data/postmaster.pid'), 'utf8'), 10), 'SIGINT')
  expect(await svc.exited).toEqual([1, null])
  expect(svc.said.error).toMatch(/\nPostgreSQL has ended\. Its last messages:\n.*shut down\n$/s)
  expect(existsSync(join(data, 'url'))).toBe(false)
})

test('obstacles are reported without a stack trace', async () => {
  const running = start()
  await running.says(printed)
  const second = start()
  expect(await second.exited).toEqual([1, null])
  expect(second.said).toEqual({
    out: '',
    error:
      `PostgreSQL is already running in ${data} (its URL is in ${join(data, 'url')}); ` +
      'stop it first, or choose another folder with --data\n',
  })
})
