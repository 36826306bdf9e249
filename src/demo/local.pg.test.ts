/**
 * An empty PostgreSQL in a folder of the user: data is kept, access needs the password, and obstacles are
 * reported.
 */
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { execute } from '../../test/support/postgres.ts'
import { cacheFolder } from './folders.ts'
import { freePort } from './free-port.ts'
import { type Local, startLocal } from './local.ts'
import { describeProcess } from './process.ts'

vi.setConfig({ testTimeout: 120_000 })

/**
 * Others cannot enter a folder made by mkdtemp: if root runs this, PostgreSQL's user cannot reach the data
 * by its path.
 */
const base = mkdtempSync(join(tmpdir(), 'svc-local ü '))
const folder = join(base, 'pg data')
let cache: string
let port: number
beforeAll(async () => {
  cache = await cacheFolder(process.env)
  port = await freePort()
})
afterAll(() => rmSync(base, { recursive: true, force: true, maxRetries: 10 }))

const printed: string[] = []
const started: Local[] = []
async function start(data = folder, at = port): Promise<Local> {
  const local = await startLocal({ folder: data, port: at, cache, print: line => printed.push(line) })
  started.push(local)
  return local
}
afterAll(() => Promise.all(started.map(local => local.close())))

const postmaster = () => Number.parseInt(readFileSync(join(folder, 'cluster/data/postmaster.pid'), 'utf8'), 10)

describe.sequential('one folder', () => {
  test('is empty at first, and the next start finds the data of the previous one', async () => {
    const first = await start()
    expect(printed).toEqual(['Preparing PostgreSQL (once, some seconds) …'])
    expect(new URL(first.url)).toMatchObject({ username: 'postgres', host: `127.0.0.1:${port}`, pathname: '/postgres' })
    const tables = `select relname from pg_class where relnamespace = 'public'::regnamespace`
    expect(await execute(first.url, tables)).toEqual([])
    await execute(first.url, 'create table kept (id int)')
    await first.close()

    const elsewhere = await freePort()
    const second = await start(folder, elsewhere)
    expect(printed).toHaveLength(1)
    expect(second.url).toBe(first.url.replace(`:${port}/`, `:${elsewhere}/`))
    expect(await execute(second.url, tables)).toEqual([{ relname: 'kept' }])
    await second.close()
  })

  test('contains its URL while it runs, readable only by the owner', async () => {
    const local = await start()
    expect(readFileSync(join(folder, 'url'), 'utf8')).toBe(`${local.url}\n`)
    for (const name of ['url', 'cluster/password', 'cluster/server.log']) {
      expect(statSync(join(folder, name)).mode & 0o077, name).toBe(0)
    }
    expect(statSync(folder).mode & 0o077).toBe(0)
    await local.close()
    expect(readdirSync(folder)).toEqual(['cluster'])
  })

  test('requires the password, listens on loopback only, and writes to disk before it commits', async () => {
    const local = await start()
    await expect(execute(local.url.replace(/:[^:@]*@/, ':secret@'), 'select 1')).rejects.toThrow('password')
    expect(await execute(local.url, 'show listen_addresses')).toEqual([{ listen_addresses: '127.0.0.1' }])
    expect(await execute(local.url, 'show fsync')).toEqual([{ fsync: 'on' }])
    await local.close()
  })

  test('has at most one server', async () => {
    const local = await start()
    const again =
      `PostgreSQL is already running in ${folder} (its URL is in ${join(folder, 'url')}); ` +
      'stop it first, or choose another folder with --data'
    await expect(start(folder, await freePort())).rejects.toThrow(again)
    expect(existsSync(join(folder, 'url'))).toBe(true)
    await local.close()
  })

  test('has its orphaned server stopped by the next start', async () => {
    const local = await start()
    const orphan = postmaster()
    process.kill((await describeProcess(orphan))?.parent ?? 0, 'SIGKILL')
    await expect(local.failed).rejects.toThrow('PostgreSQL has ended')
    expect(await describeProcess(orphan)).not.toBe(null)
    const next = await start()
    expect(await describeProcess(orphan)).toBe(null)
    await next.close()
  })

  test('a server that ends unexpectedly is reported with its last messages', async () => {
    const local = await start()
    process.kill(postmaster(), 'SIGINT')
    await expect(local.failed).rejects.toThrow(/PostgreSQL has ended\. Its last messages:\n.*shut down$/s)
    expect(existsSync(join(folder, 'url'))).toBe(false)
  })
})

test('of two concurrent starts in a new folder one succeeds and the other reports the conflict', async () => {
  const fresh = join(base, 'fresh')
  const outcomes = await Promise.allSettled([start(fresh, await freePort()), start(fresh, await freePort())])
  expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  const [winner] = outcomes.flatMap(outcome => (outcome.status === 'fulfilled' ? [outcome.value] : []))
  const [loser] = outcomes.flatMap(outcome => (outcome.status === 'rejected' ? [outcome.reason] : []))
  expect(String(loser)).toContain('already')
  expect(await execute(winner?.url ?? '', 'select 1 as one')).toEqual([{ one: 1 }])
  await winner?.close()
})

test('a port in use is reported, and nothing is created', async () => {
  const occupied = createServer().listen(0, '127.0.0.1')
  await once(occupied, 'listening')
  const { port: taken } = occupied.address() as AddressInfo
  const nowhere = join(base, 'nowhere')
  await expect(start(nowhere, taken)).rejects.toThrow(
    `port ${taken} of 127.0.0.1 is already in use, perhaps by another PostgreSQL; choose another with --port`,
  )
  expect(existsSync(nowhere)).toBe(false)
  occupied.close()
})

test('a folder with other files is left unchanged', async () => {
  const theirs = join(base, 'theirs')
  mkdirSync(theirs)
  writeFileSync(join(theirs, 'PG_VERSION'), '18\n')
  const refusal = `${theirs} contains other files; choose an empty or a new folder with --data`
  await expect(start(theirs, await freePort())).rejects.toThrow(refusal)
  expect(readdirSync(theirs)).toEqual(['PG_VERSION'])
  const file = join(theirs, 'PG_VERSION')
  for (const path of [file, join(file, 'below')]) {
    await expect(start(path, await freePort())).rejects.toThrow(
      `${path} is not a folder; choose another folder for the data with --data`,
    )
  }
})
