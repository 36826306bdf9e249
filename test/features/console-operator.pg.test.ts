/** docs/guides/console.md#live and its screens for operators, in a real browser; and `/internal/checks`. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { BROWSER_MISSING, openBrowser } from '../support/browser.ts'
import { createCondition } from '../support/condition.ts'
import { auditScreen, enterConsole, tabTo, VIEWS } from '../support/console.ts'
import { databaseFixture, fixture, folderFixture } from '../support/fixtures.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { OK, type Receiver, receiver } from '../support/receiver.ts'
import { sampleDatabase } from '../support/sample.ts'

const PATIENT = { timeout: 60_000 }
const ADMIN = 'the-admin-token-of-the-tests'
const ATTACK = '<img src=x onerror="window.attacked=1">'

// A table without row-level security, with a hostile name, for a finding.
const database = databaseFixture(
  sampleDatabase,
  `CREATE TABLE "${ATTACK.replaceAll('"', '""')}" (id int PRIMARY KEY, tenant_id uuid);
   GRANT SELECT, INSERT ON "${ATTACK.replaceAll('"', '""')}" TO PUBLIC`,
)
const folder = folderFixture()
let hook: Receiver
let gateway: TestGateway
const tokens: string[] = []
/** Set when a delivery has been given up. */
let isGivenUp = false
const givenUp = createCondition()

beforeAll(async () => {
  hook = await receiver((response, { json }) => {
    if (json.operation === 'TEST') OK(response, {} as never, 0)
    else response.writeHead(400).end(ATTACK)
  })
  const triggers = [
    { name: 'tag-changed', table: 'tags', operations: ['create'], webhook_url: hook.url, retry_count: 0 },
  ]
  await writeFile(join(folder, 'triggers.yaml'), JSON.stringify(triggers))
  gateway = await testGateway(database.url, {
    toml: [
      'webhook_allow = ["127.0.0.0/8"]',
      `events_path = ${JSON.stringify(join(folder, 'triggers.yaml'))}`,
      '[gateway.console]\nenabled = true',
    ].join('\n'),
    environment: { SVC_ADMIN_TOKEN: ADMIN },
    emit(event) {
      if (event.kind === 'webhooks' && event.event === 'dead letter') isGivenUp = true
      givenUp.notify()
    },
  })
  for (const { id, userId } of database.tenants.slice(0, 2))
    tokens.push(await gateway.token({ tenantId: id, userId, role: 'clerk' }))
})
afterAll(async () => {
  await gateway?.close()
  await hook?.close()
})

describe('GET /internal/checks', () => {
  const asked = (token: string, from = gateway) =>
    from.get('/internal/checks', { as: null, headers: { Authorization: `Bearer ${token}` } })

  test('has the findings of svc check, for the admin token only', async () => {
    const reply = await asked(ADMIN)
    expect([reply.status, reply.headers.get('cache-control')]).toEqual([200, 'no-store'])
    const { errors, warnings, notes, accepted, findings } = reply.json
    expect(findings).toHaveLength(errors + warnings + notes)
    expect(accepted).toBe(0)
    const found = findings.find(({ objects }: { objects: string[] }) => objects.some(name => name.includes('onerror')))
    expect(found).toMatchObject({
      check: expect.any(String),
      sql: expect.arrayContaining([expect.stringContaining('alter table')]),
    })
    for (const token of [tokens[0] ?? '', 'wrong']) expect((await asked(token)).status).toBe(401)
    expect((await gateway.get('/internal/checks', { as: null })).status).toBe(401)
    expect((await gateway.get('/internal/checks', { as: null, method: 'POST', body: '' })).status).toBe(405)
  })

  test('the files are compared with the schema as they are now', async () => {
    const [policies, events] = [join(folder, 'access.toml'), join(folder, 'undeliverable.yaml')]
    const trigger = { name: 'to-this-machine', table: 'tags', operations: ['create'], webhook_url: hook.url }
    const allowed = '[tables.tags]\noperations = ["read"]\n'
    await writeFile(policies, allowed)
    await writeFile(events, JSON.stringify([trigger]))
    const other = await testGateway(database.url, {
      toml: `events_path = ${JSON.stringify(events)}\n[access]\nenabled = true\npath = ${JSON.stringify(policies)}`,
      environment: { SVC_ADMIN_TOKEN: ADMIN },
    })
    await writeFile(policies, allowed.replace('tags', 'no_such_table'))
    const { findings } = (await asked(ADMIN, other)).json
    await other.close()
    const messages = findings.map(({ message }: { message: string }) => message).join('\n')
    expect(messages).toContain('no_such_table')
    expect(messages).toContain('to-this-machine')
  })

  test('is refused where no admin token is configured', async () => {
    const other = await testGateway(database.url)
    const reply = await asked('anything', other)
    const details = await other.get('/health/internal', { as: null })
    await other.close()
    expect([reply.status, reply.json.error.code]).toEqual([403, 'FORBIDDEN'])
    expect(details.json).not.toHaveProperty('slowest_requests')
  })
})

test('the slowest requests are listed without values, for the admin token', async () => {
  const as = { tenantId: database.tenants[0]?.id, userId: database.tenants[0]?.userId, role: 'clerk' }
  expect((await gateway.get('/api/orders?status=paid&sort=-total&limit=5', { as })).status).toBe(200)
  const { json } = await gateway.get('/health/internal', { as: null, headers: { Authorization: `Bearer ${ADMIN}` } })
  expect(json.slowest_requests).toContainEqual({
    request: 'GET /api/orders?sort=-total&status.eq',
    duration_ms: expect.any(Number),
    database_ms: expect.any(Number),
    at: expect.stringMatching(/^\d{4}-.*Z$/),
  })
})

if (BROWSER_MISSING !== null)
  process.stderr.write(`console-operator.pg.test.ts: nothing is opened: ${BROWSER_MISSING}\n`)

// Without a browser these tests are skipped; the message above says so.
describe.skipIf(BROWSER_MISSING !== null)('in a browser', () => {
  const page = fixture(openBrowser)
  beforeEach(async () => {
    await page.show(1280, 'light')
    page.complaints.length = 0
  })

  const shown = (): Promise<string> => page.evaluate('document.body.innerText')
  const click = (name: string): Promise<void> =>
    page.evaluate(
      `[...document.querySelectorAll('button')].find(b => b.textContent === ${JSON.stringify(name)}).click()`,
    )
  const isShown = (text: string): string => `document.body.innerText.includes(${JSON.stringify(text)})`
  const createTag = async (tenant: number, name: string): Promise<void> => {
    const as = { tenantId: database.tenants[tenant]?.id, userId: database.tenants[tenant]?.userId, role: 'clerk' }
    const headers = { 'Content-Type': 'application/json' }
    const reply = await gateway.get('/api/tags', { as, headers, method: 'POST', body: JSON.stringify({ name }) })
    expect(reply.status, reply.text).toBe(201)
  }
  /** Opens a screen of operators with the admin token. */
  async function operate(screen: string, address = gateway.url): Promise<void> {
    await page.open(address)
    await page.evaluate(`sessionStorage.clear(), sessionStorage.setItem('svc-admin-token', ${JSON.stringify(ADMIN)})`)
    await page.open(`${address}/console#/${screen}`)
  }
  /** Starts the stream that the form describes, and waits until the gateway has confirmed it. */
  async function start(): Promise<void> {
    await click('Start')
    await page.until(`document.querySelector('.live [role=status]')?.textContent === 'Live.'`)
  }

  test('the changes of a table arrive, without those of the other tenant', PATIENT, async () => {
    await enterConsole(page, gateway.url, tokens[0] ?? '', '#/live/tags')
    await page.until(`document.querySelector('.live select')?.value === 'tags'`)
    await start()
    await createTag(1, 'of the other tenant')
    await createTag(0, ATTACK)
    await page.until(isShown('INSERT'))
    expect(await shown()).toContain('<img src=x')
    expect(page.heard.some(frame => frame.includes('of the other tenant'))).toBe(false)
    expect(await page.evaluate('window.attacked ?? null')).toBeNull()
    await click('Stop')
    expect(await shown()).toContain('Stopped.')
    expect(page.complaints).toEqual([])
  })

  test('a live query is started by keyboard, and an error of the gateway is shown', PATIENT, async () => {
    await enterConsole(page, gateway.url, tokens[1] ?? '', '#/live/tags')
    await page.until(`document.querySelector('.live select') !== null`)
    await tabTo(page, `element.type === 'radio'`)
    await page.press('ArrowDown')
    await page.until(`document.querySelector('.live textarea') !== null`)
    await tabTo(page, `element.textContent === 'Start'`)
    await page.press('Enter')
    await page.until(isShown('1 row'))
    await page.evaluate(`(() => {
      const field = document.querySelector('.live textarea')
      field.value = 'get tags where'
      field.dispatchEvent(new Event('input', { bubbles: true }))
      return new Promise(resolve => setTimeout(resolve))
    })()`)
    await click('Start')
    await page.until(isShown('PARSE_ERROR'))
    expect(page.complaints).toEqual([])
  })

  test('operators sign in with the admin token, and a wrong one is refused', PATIENT, async () => {
    await page.open(gateway.url)
    await page.evaluate('sessionStorage.clear()')
    await page.open(`${gateway.url}/console#/checks`)
    await page.until(`document.querySelector('#admin-token') !== null`)
    await tabTo(page, `element.id === 'admin-token'`)
    await page.type('wrong')
    await page.press('Enter')
    await page.until(`document.querySelector('.operator form [role=alert]') !== null`)
    expect(await page.evaluate(`sessionStorage.getItem('svc-admin-token')`)).toBeNull()
    await tabTo(page, `element.id === 'admin-token'`)
    await page.evaluate(`document.getElementById('admin-token').select()`)
    await page.type(ADMIN)
    await page.press('Enter')
    await page.until(`document.querySelector('.findings li') !== null`)
    expect(await shown()).toContain('alter table public."<img src=x')
    expect(await page.evaluate('window.attacked ?? null')).toBeNull()
    expect(page.complaints.filter(text => !text.includes('401'))).toEqual([])
    await click('Forget the admin token')
    await page.until(`document.querySelector('.findings') === null`)
    expect(await page.evaluate(`sessionStorage.getItem('svc-admin-token')`)).toBeNull()
  })

  test('a trigger is tested, and a delivery that was given up is shown and redelivered', PATIENT, async () => {
    await createTag(0, 'rejected')
    await givenUp.waitUntil(() => isGivenUp)
    await operate('webhooks')
    await page.until(isShown('tag-changed'))
    await click('Test')
    await page.until(isShown('Test: delivered (answered 200)'))
    await page.until(`document.querySelector('[aria-label^="Redeliver msg_"]') !== null`)
    await page.evaluate(`document.querySelector('[aria-label^="Show msg_"]').click()`)
    await page.until(isShown('Last answer: 400'))
    expect(await shown()).toContain(ATTACK)
    expect(await page.evaluate('window.attacked ?? null')).toBeNull()
    const before = hook.received.length
    await page.evaluate(`document.querySelector('[aria-label^="Redeliver msg_"]').click()`)
    await page.until(isShown('1 redelivered.'))
    await hook.waitUntil(() => hook.received.length > before)
    expect(page.complaints).toEqual([])
  })

  test('a gateway without webhooks has a message instead of the list', PATIENT, async () => {
    const other = await testGateway(database.url, {
      toml: '[gateway.console]\nenabled = true',
      environment: { SVC_ADMIN_TOKEN: ADMIN },
    })
    await operate('webhooks', other.url)
    await page.until(isShown('events_path is not set'))
    await other.close()
  })

  test('operations shows rates, connections and the slowest requests', PATIENT, async () => {
    await operate('operations')
    await page.until(isShown('Slowest requests'))
    await page.until(`/\\d+(\\.\\d)?/.test(document.querySelector('.chart li')?.textContent ?? '')`)
    const text = await shown()
    for (const title of ['Requests per second', 'Response time', 'Database connections', 'Result cache', 'Realtime'])
      expect(text).toContain(title)
    expect(page.complaints).toEqual([])
    expect(
      page.requested.filter(url => !url.startsWith(gateway.url) && !/^(data:|ws:|http:\/\/127)/.test(url)),
    ).toEqual([])
  })

  const SCREENS = {
    live: `document.querySelector('.live select') !== null`,
    checks: `document.querySelector('.findings li') !== null`,
    webhooks: `document.querySelector('#triggers') !== null`,
    operations: `document.querySelector('#slowest') !== null &&
      /\\d/.test(document.querySelector('.chart li')?.textContent)`,
  } as const

  for (const [name, isReady] of Object.entries(SCREENS)) {
    test.each(VIEWS)(`${name}: $width px, $theme`, PATIENT, async view => {
      await page.show(view.width, view.theme)
      if (name === 'live') {
        await enterConsole(page, gateway.url, tokens[0] ?? '', '#/live/tags')
        await page.until(isReady)
        await start()
      } else await operate(name)
      await page.until(isReady)
      await auditScreen(page, name, view)
    })
  }
})
