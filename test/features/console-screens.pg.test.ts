/**
 * docs/guides/console.md: every screen, with the mouse and with the keyboard alone, as callers of two
 * tenants. Neither the page nor a response contains values of the other tenant.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { BROWSER_MISSING, openBrowser } from '../support/browser.ts'
import { createCondition } from '../support/condition.ts'
import { enterConsole, tabTo } from '../support/console.ts'
import { databaseFixture, fixture, folderFixture, gatewayFixture } from '../support/fixtures.ts'
import { testGateway } from '../support/gateway.ts'
import { installed } from '../support/install.ts'
import { receiver } from '../support/receiver.ts'
import { sampleDatabase } from '../support/sample.ts'

const PATIENT = { timeout: 120_000 }
const ADMIN = 'the-admin-token-of-the-tests'

const database = databaseFixture(sampleDatabase)
const folder = folderFixture()
const hook = fixture(() =>
  receiver((response, { json }) => response.writeHead(json.operation === 'TEST' ? 200 : 400).end()),
)
const gateway = gatewayFixture(database, async () => {
  await installed(database)
  const trigger = { name: 'tag-changed', table: 'tags', operations: ['create'], webhook_url: hook.url, retry_count: 0 }
  await writeFile(join(folder, 'triggers.yaml'), JSON.stringify([trigger]))
  return {
    toml: [
      'rate_limit_rate = 0\nwebhook_allow = ["127.0.0.0/8"]',
      `events_path = ${JSON.stringify(join(folder, 'triggers.yaml'))}`,
      '[gateway.console]\nenabled = true',
    ].join('\n'),
    environment: { SVC_ADMIN_TOKEN: ADMIN },
    emit(event) {
      if (event.kind === 'webhooks' && event.event === 'dead letter') isGivenUp = true
      givenUp.notify()
    },
    callers: async () =>
      Promise.all(
        [0, 1].map(async caller => ({ title: `clerk ${caller}`, token: await gateway.token(clerk(caller)) })),
      ),
  }
})

/** Set when a delivery has been given up. */
let isGivenUp = false
const givenUp = createCondition()

const clerk = (caller: number) => {
  const { id, userId } = database.tenants[caller] ?? {}
  return { tenantId: id, userId, role: 'clerk', scopes: ['svc:explain'] }
}

if (BROWSER_MISSING !== null) process.stderr.write(`console-screens: nothing is opened: ${BROWSER_MISSING}\n`)

// Without a browser these tests are skipped; the message above says so.
describe.skipIf(BROWSER_MISSING !== null)('in a browser', () => {
  const page = fixture(openBrowser)
  beforeEach(async () => {
    await page.show(1280, 'light')
    page.complaints.length = 0
  })

  const shown = (): Promise<string> => page.evaluate('document.body.innerText')
  const isShown = (text: string): string => `document.body.innerText.includes(${JSON.stringify(text)})`
  const named = (text: string): string =>
    `[...document.querySelectorAll('a, button')].find(one => one.textContent === ${JSON.stringify(text)})`

  /** How a user presses a link or a button, or enters a field. */
  const DEVICES = {
    mouse: (expression: string) => page.click(expression),
    keyboard: async (expression: string) => {
      await tabTo(page, `element === ${expression}`, 400)
      const isField = await page.evaluate(`document.activeElement.matches('input, textarea')`)
      if (!isField) await page.press('Enter')
    },
  } as const

  /** Values that only this caller can see. */
  async function secretsOf(caller: number): Promise<readonly string[]> {
    const { json } = await gateway.get('/api/customers?sort=id&limit=50&select=email', { as: clerk(caller) })
    return [database.tenants[caller]?.id ?? '', ...json.data.map((row: { email: string }) => row.email)]
  }

  describe.each(['mouse', 'keyboard'] as const)('with the %s', device => {
    const choose = DEVICES[device]
    const enter = async (expression: string, text: string): Promise<void> => {
      await choose(expression)
      await page.type(text)
    }

    test.each([0, 1])('every screen as clerk %i', PATIENT, async caller => {
      const [own, others] = await Promise.all([secretsOf(caller), secretsOf(1 - caller)])
      const assertHidden = async (): Promise<string> => {
        const seen = [await page.evaluate('document.documentElement.outerHTML'), ...(await page.bodies())].join('\n')
        expect(others.filter(secret => seen.includes(secret))).toEqual([])
        expect(page.heard.filter(text => others.some(secret => text.includes(secret)))).toEqual([])
        return seen
      }
      await page.open(gateway.url)
      await page.evaluate('sessionStorage.clear()')
      await page.open(`${gateway.url}/console`)
      await page.until(`document.querySelectorAll('.sign-in .choices button').length === 2`)
      // The tokens of both sample callers are in a response.
      await choose(named(`Enter as clerk ${caller}`))
      await page.until(`document.querySelector('.tables a') !== null`)
      await page.open('about:blank')
      await page.open(`${gateway.url}/console`)
      await page.until(`document.querySelector('.tables a') !== null`)

      await choose(named('customers'))
      await page.until(`document.querySelectorAll('.table-view > .scroll tbody tr').length === 50`)
      await choose(`document.querySelector('tbody td button')`)
      await page.until(`document.querySelector('dialog[open] form') !== null`)
      await page.press('Escape')
      await page.until(`document.querySelector('dialog') === null`)
      const seen = await assertHidden()
      expect(own.filter(secret => seen.includes(secret)).length).toBeGreaterThan(40)
      expect((await page.bodies()).some(body => body.includes(own.at(-1) ?? ''))).toBe(true)

      await choose(named('Query'))
      await page.until(`document.querySelector('.editor') !== null`)
      // The editor moves what is below it. An observer of the page does not see into its shadow root.
      await page.evaluate(`new Promise(resolve => {
        const editor = document.querySelector('.editor')
        const look = () => (editor.shadowRoot === null ? requestAnimationFrame(look) : resolve())
        look()
      })`)
      await choose(named('Run'))
      await page.until(`/\\d rows? in/.test(document.body.innerText)`)
      await assertHidden()

      await choose(named('Explain'))
      await page.until(`document.querySelector('#inspected') !== null`)
      await enter(`document.querySelector('#inspected')`, '/api/customers?limit=3')
      await choose(`document.querySelector('.explain [type=submit]')`)
      await page.until(`document.querySelectorAll('.stages > li').length === 7`)
      await assertHidden()

      await choose(named('Live'))
      await page.until(`document.querySelector('.live select') !== null`)
      await choose(named('Start'))
      await page.until(`document.querySelector('.live [role=status]')?.textContent === 'Live.'`)
      await choose(named('Stop'))
      await page.until(isShown('Stopped.'))
      await assertHidden()

      await choose(named('Checks'))
      await page.until(`document.querySelector('#admin-token') !== null`)
      await enter(`document.querySelector('#admin-token')`, ADMIN)
      await choose(`document.querySelector('.operator [type=submit]')`)
      await page.until(`document.querySelector('.findings') !== null`)

      await choose(named('Webhooks'))
      await page.until(`document.querySelector('#triggers') !== null`)
      await choose(`document.querySelector('[aria-label="Send a test request of tag-changed"]')`)
      await page.until(isShown('Test: delivered (answered 200)'))

      await choose(named('Operations'))
      await page.until(`document.querySelector('#slowest') !== null`)
      await choose(named('Refresh'))
      await page.until(`document.querySelector('#slowest') !== null`)
      await assertHidden()

      await choose(named('Sign out'))
      await choose(named('Explore'))
      await page.until(`document.querySelector('.sign-in') !== null`)
      const left: string = await page.evaluate('document.documentElement.outerHTML')
      expect(own.filter(secret => left.includes(secret))).toEqual([])
      expect(await page.evaluate('sessionStorage.length')).toBe(0)
      expect(page.complaints).toEqual([])
    })
  })

  async function operate(screen: string): Promise<void> {
    await page.open(gateway.url)
    await page.evaluate(`sessionStorage.clear(), sessionStorage.setItem('svc-admin-token', ${JSON.stringify(ADMIN)})`)
    await page.open(`${gateway.url}/console#/${screen}`)
  }

  test('the SQL of a finding is copied', PATIENT, async () => {
    await operate('checks')
    await page.until(`document.querySelector('.findings .snippet button') !== null`)
    const sql = await page.evaluate(`document.querySelector('.findings .snippet code').textContent`)
    await page.click(`document.querySelector('.findings .snippet button')`)
    await page.until(`document.querySelector('.findings .snippet [role=status]').textContent === 'Copied.'`)
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(sql)
    expect(sql).toMatch(/\w+ .*;/)
    expect(page.complaints).toEqual([])
  })

  test('the attempts of a delivery are found by its id, and all dead letters are redelivered', PATIENT, async () => {
    const headers = { 'Content-Type': 'application/json' }
    const body = JSON.stringify({ name: 'rejected' })
    const isCreated = (one: { json: { operation: string } }): boolean => one.json.operation !== 'TEST'
    expect((await gateway.get('/api/tags', { as: clerk(0), method: 'POST', headers, body })).status).toBe(201)
    await hook.waitUntil(() => hook.received.some(isCreated))
    const id = String(hook.received.find(isCreated)?.headers['webhook-id'])
    // The gateway stores the attempt after the response.
    await givenUp.waitUntil(() => isGivenUp)
    await operate('webhooks')
    await page.until(isShown(id))
    await tabTo(page, `element.matches('form input')`)
    await page.type(id)
    await page.press('Enter')
    await page.until(`document.querySelector('#delivery') !== null`)
    await page.until(`document.querySelectorAll('section[aria-labelledby=delivery] ol li').length > 0`)
    expect(await page.evaluate(`document.querySelector('section[aria-labelledby=delivery] ol').innerText`)).toContain(
      '400',
    )
    const before = hook.received.length
    await page.evaluate(`${named('Redeliver all')}.click()`)
    await page.until(isShown('1 redelivered.'))
    await hook.waitUntil(() => hook.received.length > before)
    expect(hook.received.at(-1)?.headers['webhook-id']).toBe(id)
    expect(page.complaints).toEqual([])
  })

  test('the charts of operations have lines', PATIENT, async () => {
    await operate('operations')
    await page.until(`/\\d/.test(document.querySelector('.chart li')?.textContent ?? '')`)
    const charts: readonly (readonly [string, number])[] = await page.evaluate(
      `[...document.querySelectorAll('.chart')].map(one =>
        [one.querySelector('strong').textContent, one.querySelectorAll('polyline[points]').length])`,
    )
    expect(charts.map(([, lines]) => lines)).toEqual([2, 3, 3, 1, 2])
    expect(await shown()).toMatch(/p99/)
    expect(page.complaints).toEqual([])
  })

  test('a plan is a picture: bars of estimated and actual rows, and a waterfall of the times', PATIENT, async () => {
    const request = '/api/orders?status=paid&sort=-total&limit=5'
    const address = `#/explain?${new URLSearchParams({ request })}`
    await enterConsole(page, gateway.url, await gateway.token(clerk(0)), address)
    await page.until(`document.querySelectorAll('.stages > li').length === 7`)
    const widths = (selector: string): Promise<readonly number[]> =>
      page.evaluate(
        `[...document.querySelectorAll('${selector} .bar-fill')].map(one => Number(one.getAttribute('width')))`,
      )
    const rows = await widths('.plan-node:first-child .plan-rows')
    expect(rows.length).toBeGreaterThan(1)
    expect(Math.max(...(await widths('.plan-rows')))).toBe(100)
    expect(await widths('.waterfall')).toHaveLength(4)
    // The cost guard is measured against its limits.
    expect((await widths('.meters')).length).toBeGreaterThan(0)
    expect(await shown()).toContain('Bars: estimated rows above actual rows')
    expect(page.complaints).toEqual([])
  })

  test('a request shows what access policies leave of columns and rows, and the cache', PATIENT, async () => {
    const policy = join(folder, 'policy.yaml')
    const entry = {
      ...{ name: 'clerks read', table: 'customers', role: 'clerk', operations: ['read'] },
      ...{ allowed_columns: ['id', 'name'], filter: 'id > 10' },
    }
    await writeFile(policy, JSON.stringify({ policies: [entry] }))
    const other = await testGateway(database.url, {
      toml: `policy = ${JSON.stringify(policy)}\n[gateway.console]\nenabled = true\n[gateway.cache]\nenabled = true`,
    })
    const address = `#/explain?${new URLSearchParams({ request: '/api/customers?sort=id&limit=3' })}`
    await enterConsole(page, other.url, await other.token(clerk(0)), address)
    await page.until(`document.querySelectorAll('.stages > li').length === 7`)
    const stage = (title: string): Promise<string> =>
      page.evaluate(`[...document.querySelectorAll('.stages > li')]
        .find(one => one.querySelector('h3').textContent === ${JSON.stringify(title)}).innerText`)
    expect(await stage('Access policies')).toMatch(
      /These columns can be read: id, name\nOnly these rows are left:[\s\S]*where id > 10/,
    )
    expect(await stage('Cost guard and cache')).toMatch(
      /The estimates are within the limits\.[\s\S]*Estimated cost: .* of at most \d+[\s\S]*was not in the cache\./,
    )
    await page.evaluate(`${named('Run again')}.click()`)
    await page.until(isShown('The result came from the cache.'))
    expect(page.complaints).toEqual([])
    await other.close()
  })
})
