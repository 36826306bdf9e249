/**
 * docs/guides/shapes.md in a browser: the unmodified client of npm on a page of another origin, with the
 * browser's own cache, compression and preflights.
 */
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { BROWSER_MISSING, openBrowser, type Page } from '../support/browser.ts'
import { clientFixture, databaseFixture, fixture } from '../support/fixtures.ts'
import { testGateway } from '../support/gateway.ts'
import { installed } from '../support/install.ts'

const CLIENT = fileURLToPath(import.meta.resolve('@electric-sql/client')).replace(/index\.[^/]*$/, 'index.browser.mjs')
const PATIENT = { timeout: 60_000 }

const database = databaseFixture(`
  create table tasks (id int primary key, tenant text not null, title text);
  alter table tasks enable row level security;
  create policy own on tasks using (tenant = current_setting('app.current_tenant_id', true));
  grant select on tasks to app
`)
const admin = clientFixture(() => database.adminUrl)

beforeEach(() =>
  admin.query(`delete from tasks;
    insert into tasks select n, case when n % 2 = 0 then 't1' else 't2' end, 'task ' || n
    from generate_series(1, 200) n`),
)
beforeAll(() => installed(database, [{ schema: 'public', table: 'tasks' }]))

/** Serves the client and an empty page. */
const site = fixture(
  async () => {
    const server = createServer(async (request, response) => {
      const isClient = request.url === '/client.mjs'
      response.setHeader('Content-Type', isClient ? 'text/javascript' : 'text/html')
      response.end(isClient ? await readFile(CLIENT) : '<!doctype html><title>Shapes</title>')
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    return { url: `http://127.0.0.1:${port}`, server }
  },
  async ({ server }) => {
    server.closeAllConnections()
    server.close()
  },
)

// Without a browser these tests are skipped; the message below says so.
describe.skipIf(BROWSER_MISSING !== null).each([{ liveSse: false }, { liveSse: true }])(
  'In a browser (liveSse: $liveSse)',
  ({ liveSse }) => {
    test('a shape follows its table, is continued after a reload, and answers subsets', PATIENT, async () => {
      const gateway = await testGateway(database.url, {
        toml: `cors_allowed_origins = ["${site.url}"]\n\n[shapes]\nenabled = true\nlong_poll_ms = 2000`,
      })
      const page = await openBrowser()
      try {
        const token = await gateway.token({ tenantId: 't1' })
        const follow = async (on: Page) => {
          await on.open(site.url)
          await on.evaluate(`import('${site.url}/client.mjs').then(({ ShapeStream, Shape }) => {
            const common = {
              url: '${gateway.url}/v1/shape', liveSse: ${liveSse}, warnOnHttp: false,
              headers: { Authorization: 'Bearer ${token}' }, params: { table: 'tasks' },
            }
            window.tasks = new Shape(new ShapeStream(common))
            window.part = new ShapeStream({ ...common, log: 'changes_only', offset: 'now', subsetMethod: 'POST' })
            return window.tasks.rows.then(() => null)
          })`)
        }
        const ids = 'window.tasks.currentRows.map(({ id }) => id)'
        const until = (found: string) =>
          vi.waitFor(async () => expect(await page.evaluate(`[${found}, ${ids}]`)).toEqual([true, expect.anything()]), {
            timeout: 20_000,
            interval: 100,
          })
        await follow(page)
        expect(await page.evaluate(`${ids}.length`)).toBe(100)
        await admin.query(`update tasks set title = 'changed' where id = 2; delete from tasks where id = 4`)
        await until(`${ids}.length === 99 && window.tasks.currentRows.some(row => row.title === 'changed')`)
        const asked = `window.part.requestSnapshot(
          { where: 'id > $1', params: { 1: '100' }, orderBy: 'id desc', limit: 3 })`
        expect(await page.evaluate(`${asked}.then(({ data }) => data.map(({ value }) => value.id))`)).toEqual([
          200, 198, 196,
        ])
        // The rows come from the cache of the browser, the changes since from the gateway.
        await admin.query(`insert into tasks values (1000, 't1', 'later'), (1001, 't2', 'theirs')`)
        await follow(page)
        await until(`${ids}.length === 100 && ${ids}.includes(1000)`)
        expect(await page.evaluate(`window.tasks.currentRows.every(row => row.tenant === 't1')`)).toBe(true)
        expect(page.complaints).toEqual([])
      } finally {
        await page.close()
        await gateway.close()
      }
    })
  },
)

if (BROWSER_MISSING !== null)
  process.stderr.write(`shapes-browser.pg.test.ts: the page is not opened: ${BROWSER_MISSING}\n`)
