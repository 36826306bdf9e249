/**
 * docs/guides/client.md: whatever others write, and whatever is killed, in the end every copy that the client
 * library keeps, in a process and in a browser, equals the result of its own SELECT, and it never had a row
 * of another tenant. A printed seed reproduces the random choices.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import pg from 'pg'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { freePort } from '../../src/demo/free-port.ts'
import { mintToken } from '../../src/identity/mint.ts'
import { BROWSER_MISSING, openBrowser, type Page } from '../support/browser.ts'
import { databaseFixture, fixture } from '../support/fixtures.ts'
import { SECRET } from '../support/gateway.ts'
import { installed } from '../support/install.ts'
import { privateServer } from '../support/postgres.ts'
import { killSvc, type Svc, startSvc } from '../support/process.ts'
import type { Copied, Followed, Thing } from './client-followers.ts'
import { randomOf, THINGS, WORDS } from './model.ts'

const SEED = Number(process.env.SVC_SEED ?? Math.floor(Math.random() * 2 ** 31))
const TENANTS = ['red', 'green'] as const
const ROUNDS = 60
const ROWS = 40

/** Conditions of copies, and the same in SQL. */
const CONDITIONS = [
  { where: null, sql: 'true' },
  { where: { n: { gt: 50 } }, sql: 'n > 50' },
  { where: { word: { in: ['a', 'b'] } }, sql: `word in ('a', 'b')` },
] as const

const FOLLOWERS = fileURLToPath(new URL('client-followers.ts', import.meta.url))
const PROCESS = fileURLToPath(new URL('follower-process.ts', import.meta.url))

const server = databaseFixture(
  privateServer,
  `${THINGS}
   create policy own on things using (tenant = (select current_setting('app.current_tenant_id', true)));
   grant select on things to app;`,
)

/** A page of another origin than the gateway, which can be killed while the page is open. */
const site = fixture(
  async () => {
    const { outputFiles } = await build({
      ...{ entryPoints: [FOLLOWERS], bundle: true, write: false, format: 'esm', platform: 'browser' },
      external: ['../language/index.ts'],
    })
    const pages = createServer(({ url }, response) => {
      response.setHeader('Content-Type', url === '/followers.js' ? 'text/javascript' : 'text/html')
      response.end(url === '/followers.js' ? outputFiles[0]?.contents : '<!doctype html><title>Copies</title>')
    })
    await new Promise<void>(resolve => pages.listen(0, '127.0.0.1', resolve))
    const address = pages.address()
    return { url: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`, pages }
  },
  async ({ pages }) => {
    pages.closeAllConnections()
    pages.close()
  },
)

let gateway: Svc
let port = 0
let folder = ''
let child: ChildProcess
let page: Page | null = null

function start(): Svc {
  return startSvc(['serve', '--config', join(folder, 'svc.toml')], {
    DATABASE_URL: server.url,
    JWT_SECRET: SECRET,
    SVC_BIND: `127.0.0.1:${port}`,
  })
}

beforeAll(async () => {
  await installed(server)
  port = await freePort()
  folder = await mkdtemp(join(tmpdir(), 'svc-client-model-'))
  const limits = 'rate_limit_rate = 0\ntenant_max_concurrent = 0'
  await writeFile(join(folder, 'svc.toml'), `[gateway]\ncors_allowed_origins = ["${site.url}"]\n${limits}\n`)
  gateway = start()
  child = fork(PROCESS, { execArgv: ['--import', 'tsx'] })
  await once(child, 'message')
  if (BROWSER_MISSING === null) page = await openBrowser()
}, 120_000)
afterAll(async () => {
  child?.kill('SIGKILL')
  await page?.close()
  killSvc()
  await rm(folder, { recursive: true })
})

if (BROWSER_MISSING !== null) process.stderr.write(`model-client.pg.test.ts: no browser: ${BROWSER_MISSING}\n`)

test(`every copy equals the result of a SELECT (SVC_SEED=${SEED})`, { timeout: 300_000 }, async () => {
  const random = randomOf(SEED)
  const one = <T>(list: readonly T[]): T => list[random(list.length)] as T
  const url = `http://127.0.0.1:${port}`
  const all = await Promise.all(
    TENANTS.flatMap(tenantId =>
      CONDITIONS.map(async ({ where }): Promise<Followed> => {
        const token = await mintToken(SECRET, { tenantId, expiresInSeconds: 3_600 }, Date.now())
        return { tenantId, token, where: where as Followed['where'] }
      }),
    ),
  )
  child.send({ url, all })
  await page?.open(site.url)
  await page?.evaluate(`import('/followers.js').then(({ follow }) => {
    window.report = follow(${JSON.stringify(url)}, ${JSON.stringify(all)})
  })`)

  async function connect(): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: server.adminUrl })
    client.on('error', () => {})
    await client.connect()
    return client
  }

  let writer = await connect()
  function statement(): string {
    const [tenant, id, n] = [one(TENANTS), random(ROWS), random(100)]
    switch (random(9)) {
      case 0:
      case 1:
      case 2:
        return `insert into things values (${id}, '${tenant}', '${one(WORDS)}', ${n}) on conflict do nothing`
      case 3:
        return `update things set word = '${one(WORDS)}', n = ${n} where id = ${id}`
      case 4:
        return `update things set n = (n + 7) % 100 where word = '${one(WORDS)}'`
      case 5:
        return `delete from things where id = ${id}`
      case 6:
        return `update things set tenant = '${tenant}' where id = ${id}`
      case 7:
        return `begin; update things set n = ${n} where id = ${id}; delete from things where id = ${n}; rollback`
      default:
        return random(2) > 0
          ? `delete from things where id >= 100000`
          : `insert into things select 100000 + n, '${tenant}', 'd', 5 from generate_series(1, 1001) n
             on conflict do nothing`
    }
  }

  let written = 0
  for (let round = 0; round < ROUNDS; round++) {
    try {
      await writer.query(statement())
      written += 1
    } catch {
      // The server was stopped.
      await writer.end().catch(() => {})
      writer = await connect()
    }
    if (round === 20 || round === 45) {
      gateway.child.kill('SIGKILL')
      await gateway.exited
      gateway = start()
    } else if (round === 32) await server.restart()
    await new Promise(resolve => setTimeout(resolve, random(80)))
  }
  expect(written).toBeGreaterThan(ROUNDS / 2)

  const admin = await connect()
  const byId = (rows: readonly Thing[]) => rows.toSorted((first, second) => first.id - second.id)
  const expected: Copied[] = []
  for (const tenantId of TENANTS) {
    for (const { sql } of CONDITIONS) {
      const { rows } = await admin.query<Thing>(
        `select id, tenant, word, n from things where tenant = $1 and (${sql}) order by id`,
        [tenantId],
      )
      expected.push({ rows, leaks: [] })
    }
  }
  await admin.end()
  await writer.end()
  const inProcess = async (): Promise<readonly Copied[]> => {
    child.send('report')
    const [copies] = await once(child, 'message')
    return copies
  }
  const inBrowser = (): Promise<readonly Copied[]> => page?.evaluate('window.report()') ?? Promise.resolve(expected)
  for (const report of [inProcess, inBrowser]) {
    await vi.waitFor(
      async () => {
        const copies = (await report()).map(({ rows, leaks }) => ({ rows: byId(rows), leaks }))
        expect([report.name, copies]).toEqual([report.name, expected])
      },
      { timeout: 90_000, interval: 200 },
    )
  }
})
