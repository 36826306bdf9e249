/** The demo's PostgreSQL starts in seconds, is never shared by accident, and leaves no process behind. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'
import { execute } from '../../test/support/postgres.ts'
import { type Embedded, startEmbedded } from './embedded.ts'
import { describeProcess } from './process.ts'

const SLOW = 120_000
/** A path with a space and non-ASCII characters, as home folders can have. */
const cache = mkdtempSync(join(tmpdir(), 'svc démo ü '))
chmodSync(cache, 0o755)
afterAll(() => rmSync(cache, { recursive: true, force: true, maxRetries: 10 }))

const printed: string[] = []
const start = (fresh = false): Promise<Embedded> => startEmbedded({ cache, fresh, print: line => printed.push(line) })
const orders = 'select count(*)::int as n from orders'

describe.sequential('several demos with one cache folder', () => {
  test(
    'the first start prepares, the next finds everything as it was left',
    async () => {
      const first = await start()
      expect(printed).toEqual(['Preparing PostgreSQL with sample data (once, some seconds) …'])
      expect(await execute(first.adminUrl, orders)).toEqual([{ n: 25_000 }])
      await execute(first.adminUrl, `update tenants set name = 'Renamed' where slug = 'harbour'`)
      await first.close()
      await first.ended

      const second = await start()
      expect(printed).toHaveLength(1)
      expect(second.jwtSecret).toBe(first.jwtSecret)
      expect(await execute(second.adminUrl, `select name from tenants where slug = 'harbour'`)).toEqual([
        { name: 'Renamed' },
      ])
      await second.close()
    },
    SLOW,
  )

  test('a password is required, and the gateway’s role has no special privileges', async () => {
    const embedded = await start()
    const without = embedded.url.replace(/:[^:@]*@/, ':@')
    await expect(execute(without, 'select 1')).rejects.toThrow(/password/)
    const wrong = embedded.adminUrl.replace(/:[^:@]*@/, ':wrong@')
    await expect(execute(wrong, 'select 1')).rejects.toThrow('password authentication failed')
    const role = 'select rolsuper, rolbypassrls, rolcreaterole, rolcreatedb from pg_roles where rolname = current_user'
    expect(await execute(embedded.url, role)).toEqual([
      { rolsuper: false, rolbypassrls: false, rolcreaterole: false, rolcreatedb: false },
    ])
    expect(await execute(embedded.url, orders)).toEqual([{ n: 0 }])
    expect(await execute(embedded.url, 'show fsync')).toEqual([{ fsync: 'on' }])
    await embedded.close()
  })

  test(
    'a second concurrent demo gets separate data',
    async () => {
      const [one, two] = await Promise.all([start(), start()])
      expect(new Set([one.folder, two.folder]).size).toBe(2)
      await execute(one.adminUrl, 'delete from reviews')
      expect(await execute(two.adminUrl, 'select count(*)::int as n from reviews')).toEqual([{ n: 9_039 }])
      await Promise.all([one.close(), two.close()])
    },
    SLOW,
  )

  test(
    'fresh brings the sample back',
    async () => {
      const embedded = await start(true)
      expect(await execute(embedded.adminUrl, 'select count(*)::int as n from reviews')).toEqual([{ n: 9_039 }])
      await embedded.close()
    },
    SLOW,
  )

  test(
    'a process killed without warning leaves no server',
    async () => {
      const child = await startChild()
      const server = child.postmaster
      child.process.kill('SIGKILL')
      await goneOf(server)
    },
    SLOW,
  )

  test(
    'a server that lost its watcher too is stopped by the next start, nothing is lost',
    async () => {
      const child = await startChild()
      await execute(child.adminUrl, `update tenants set name = 'Kept' where slug = 'lumiere'`)
      const watcher = await watcherOf(child.postmaster)
      process.kill(watcher, 'SIGKILL')
      child.process.kill('SIGKILL')
      await Promise.all([once(child.process, 'exit'), goneOf(watcher)])
      expect(await describeProcess(child.postmaster)).not.toBe(null)

      const next = await start()
      expect(next.folder).toBe(child.folder)
      expect(await describeProcess(child.postmaster)).toBe(null)
      expect(await execute(next.adminUrl, `select name from tenants where slug = 'lumiere'`)).toEqual([
        { name: 'Kept' },
      ])
      await next.close()
    },
    SLOW,
  )

  test('a lock file with another program’s process id is ignored', async () => {
    const embedded = await start()
    await embedded.close()
    writeFileSync(join(embedded.folder, 'data', 'postmaster.pid'), `${process.pid}\n${embedded.folder}/data\n`)
    const next = await start()
    expect(next.folder).toBe(embedded.folder)
    await next.close()
  })
})

interface Child {
  readonly process: ChildProcess
  readonly adminUrl: string
  readonly folder: string
  readonly postmaster: number
}

async function startChild(): Promise<Child> {
  const script = fileURLToPath(new URL('../../test/support/embedded-child.ts', import.meta.url))
  const child = spawn(process.execPath, ['--import', 'tsx', script, cache], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  const { adminUrl, folder } = JSON.parse(line.toString()) as { adminUrl: string; folder: string }
  const postmaster = Number.parseInt(readFileSync(join(folder, 'data', 'postmaster.pid'), 'utf8'), 10)
  return { process: child, adminUrl, folder, postmaster }
}

async function watcherOf(postmaster: number): Promise<number> {
  const parent = (await describeProcess(postmaster))?.parent
  if (parent === undefined) throw new Error('no such server')
  return parent
}

/** The end of a process that is not a child cannot be awaited, only observed. */
async function goneOf(pid: number): Promise<void> {
  await expect.poll(() => describeProcess(pid), { timeout: 20_000, interval: 20 }).toBe(null)
}
