/**
 * docs/guides/console.md#relations-as-a-graph: the tables and foreign keys that a caller can see, by keyboard
 * and by mouse, with hostile names, and with more tables than fit a window.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { BROWSER_MISSING, openBrowser } from '../support/browser.ts'
import { auditScreen, enterConsole, tabTo, VIEWS } from '../support/console.ts'
import { databaseFixture, fixture, folderFixture } from '../support/fixtures.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { sampleDatabase } from '../support/sample.ts'

const PATIENT = { timeout: 60_000 }

const ATTACK = '<img src=x onerror="window.attacked=1">'
const TABLES = `
  CREATE TABLE "__proto__" (id int PRIMARY KEY, "constructor" int REFERENCES "__proto__");
  CREATE TABLE "${ATTACK.replaceAll('"', '""')}"
    (id int PRIMARY KEY, "<svg onload=window.attacked=1>" int REFERENCES "__proto__");
  CREATE TABLE people (id int PRIMARY KEY, boss_id int REFERENCES people);
  CREATE TABLE letters (id int PRIMARY KEY, sender_id int NOT NULL REFERENCES people, reader_id int REFERENCES people);
  CREATE TABLE stamps (letter_id int PRIMARY KEY REFERENCES letters, note text);
  CREATE TABLE alone (id int PRIMARY KEY);
  CREATE TABLE secrets (id int PRIMARY KEY, person_id int REFERENCES people);
  GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC;
`
/** 240 tables: a hub, chains and tables without relations. */
const MANY = Array.from({ length: 240 }, (_, at) => {
  const reference =
    at === 0 || at > 220 ? '' : `, hub_id int REFERENCES t0, next_id int REFERENCES t${Math.floor(at / 3)}`
  return `CREATE TABLE t${at} (id int PRIMARY KEY${reference}); GRANT SELECT ON t${at} TO PUBLIC;`
}).join('\n')

const POLICY = `
default_decision = "deny"
[tables."*"]
operations = ["read"]
[tables.secrets]
operations = ["read"]
require_any_role = ["manager"]
`

const database = databaseFixture(sampleDatabase, TABLES)
const large = databaseFixture(MANY)
const folder = folderFixture()
let gateway: TestGateway
let largeGateway: TestGateway
const tokens: string[] = []

beforeAll(async () => {
  const file = join(folder, 'access.toml')
  await writeFile(file, POLICY)
  const toml = '[gateway.console]\nenabled = true'
  gateway = await testGateway(database.url, {
    toml: `${toml}\n[access]\nenabled = true\npath = ${JSON.stringify(file)}`,
  })
  largeGateway = await testGateway(large.url, { toml })
  const [tenant] = database.tenants
  for (const role of ['clerk', 'manager'])
    tokens.push(await gateway.token({ tenantId: tenant?.id, userId: tenant?.userId, role }))
})
afterAll(async () => {
  await gateway?.close()
  await largeGateway?.close()
})

if (BROWSER_MISSING !== null) process.stderr.write(`console-graph.pg.test.ts: nothing is opened: ${BROWSER_MISSING}\n`)

// Without a browser these tests are skipped; the message above says so.
describe.skipIf(BROWSER_MISSING !== null)('in a browser', () => {
  const page = fixture(openBrowser)

  const svg = `document.querySelector('.drawing > svg')`
  const names = `[...document.querySelectorAll('[data-table]')].map(node => node.dataset.table)`
  const node = (name: string): string =>
    `[...document.querySelectorAll('[data-table]')].find(node => node.dataset.table === ${JSON.stringify(name)})`
  const focused = `document.activeElement.dataset?.table ?? null`
  const scale = `${svg}.getBoundingClientRect().width / ${svg}.viewBox.baseVal.width`
  const centre = (name: string): string =>
    `(({ x, y, width, height }) => [x + width / 2, y + height / 2])(${node(name)}.getBoundingClientRect())`

  async function enter(address: string, { caller = 0, url = gateway.url } = {}): Promise<void> {
    await enterConsole(page, url, tokens[caller] ?? '', `#/graph${address}`)
    await page.until(`document.querySelector('.drawing > svg[viewBox]') !== null`)
  }

  beforeEach(async () => {
    await page.show(1280, 'light')
    page.complaints.length = 0
    ;(page.requested as string[]).length = 0
  })

  test('a table is shown with its neighbours, its keys and their cardinalities', PATIENT, async () => {
    await enter('/letters')
    expect((await page.evaluate(names)).toSorted()).toEqual(['letters', 'people', 'stamps'])
    expect(await page.evaluate(`${node('letters')}.getAttribute('aria-current')`)).toBe('true')
    expect(await page.evaluate(`${node('letters')}.getAttribute('aria-description')`)).toBe(
      'refers to people, referenced by stamps',
    )
    const labels: readonly string[] = await page.evaluate(
      `[...document.querySelectorAll('.drawing .label')].map(label => label.textContent)`,
    )
    expect(labels.toSorted()).toEqual(['letter_id → id  1 : 1', 'reader_id → id  n : 0..1', 'sender_id → id  n : 1'])
    // The keys among the neighbours: people refers to itself.
    expect(await page.evaluate(`document.querySelectorAll('path.edge, path.edge-near').length`)).toBe(4)
    // The text has the keys of the table.
    expect(await page.evaluate(`document.querySelectorAll('.graph details li').length`)).toBe(3)
    expect(page.requested.filter(url => url.includes('/api/') && !url.endsWith('/api/_schema'))).toEqual([])
    expect(page.complaints).toEqual([])
  })

  test('all tables are shown, also those without relations, and the chosen one is emphasised', PATIENT, async () => {
    await enter('/people?all=true')
    const all: readonly string[] = await page.evaluate(names)
    expect(all).toEqual(expect.arrayContaining(['alone', 'orders', '__proto__', ATTACK]))
    // The order of the Tab key.
    expect([all[0], all[1]]).toEqual(['people', 'letters'])
    expect(await page.evaluate(`[...document.querySelectorAll('.near')].map(one => one.dataset.table)`)).toEqual([
      'letters',
    ])
    expect(await page.evaluate(`${node('alone')}.classList.contains('far')`)).toBe(true)
    expect(await page.evaluate(`document.querySelectorAll('#app img, #app script').length`)).toBe(0)
    expect(await page.evaluate('window.attacked ?? null')).toBeNull()
    expect(page.complaints).toEqual([])
  })

  test(
    'by keyboard: Tab and arrow keys lead to tables, Enter chooses one, and the browser goes back',
    PATIENT,
    async () => {
      await enterConsole(page, gateway.url, tokens[0] ?? '', '#/explore/letters')
      await page.until(`document.querySelector('.table-view summary') !== null`)
      await tabTo(page, `element.matches('.table-view summary')`)
      await page.press('Enter')
      await tabTo(page, `element.textContent === 'Show as a graph'`)
      await page.press('Enter')
      await page.until(`document.querySelector('.drawing > svg[viewBox]') !== null`)
      await tabTo(page, `element.dataset?.table === 'letters'`)
      await page.press('Tab')
      expect(await page.evaluate(focused)).toBe('people')
      // It refers to the table on its right.
      await page.press('Tab', true)
      await page.press('ArrowRight')
      expect(await page.evaluate(focused)).toBe('people')
      await page.press('ArrowLeft')
      expect(await page.evaluate(focused)).toBe('letters')
      await page.press('ArrowLeft')
      expect(await page.evaluate(focused)).toBe('stamps')
      const before = await page.evaluate(scale)
      await page.press('-')
      await page.until(`${scale} < ${before}`)
      await page.press('Enter')
      await page.until(`document.getElementById('graph').textContent === 'Relations of stamps'`)
      await page.until(`${node('stamps')}?.getAttribute('aria-current') === 'true'`)
      // The focus stays at the table.
      await page.until(`${focused} === 'stamps'`)
      expect(await page.evaluate(names)).toEqual(['stamps', 'letters'])
      await page.evaluate('history.back()')
      await page.until(`document.getElementById('graph').textContent === 'Relations of letters'`)
      expect(page.complaints).toEqual([])
    },
  )

  test('by mouse: a drag moves and follows no link, the wheel zooms with Ctrl, a click chooses', PATIENT, async () => {
    await enter('/letters')
    const [x, y]: readonly [number, number] = await page.evaluate(centre('letters'))
    await page.drag({ x, y }, { x: x + 100, y: y + 50 })
    await page.until(`Math.round(${centre('letters')}[0] - ${x}) === 100`)
    expect(await page.evaluate('location.hash')).toBe('#/graph/letters')
    const before = await page.evaluate(scale)
    await page.evaluate(
      `${svg}.dispatchEvent(new WheelEvent('wheel', { deltaY: 100, ctrlKey: true, bubbles: true, cancelable: true }))`,
    )
    await page.until(`${scale} < ${before}`)
    const zoomedOut = await page.evaluate(scale)
    // Without Ctrl the page scrolls.
    expect(
      await page.evaluate(`${svg}.dispatchEvent(new WheelEvent('wheel', { deltaY: 100, cancelable: true }))`),
    ).toBe(true)
    expect(await page.evaluate(scale)).toBe(zoomedOut)
    await page.click(`[...document.querySelectorAll('.drawing button')].find(one => one.textContent === 'Zoom in')`)
    await page.until(`${scale} > ${zoomedOut}`)
    await page.click(
      `[...document.querySelectorAll('.drawing button')].find(one => one.textContent === 'Show everything')`,
    )
    await page.until(`Math.abs(${scale} - ${before}) < 0.01`)
    await page.click(`${node('people')}.querySelector('rect')`)
    await page.until(`${node('people')}?.getAttribute('aria-current') === 'true'`)
    expect(await page.evaluate('location.hash')).toBe('#/graph/people')
    expect(page.complaints).toEqual([])
  })

  test('what a caller may not see is nowhere in the graph', PATIENT, async () => {
    await enter('/people', { caller: 1 })
    expect(await page.evaluate(names)).toContain('secrets')
    await enter('/people')
    expect(await page.evaluate(names)).toContain('letters')
    expect(await page.evaluate('document.documentElement.outerHTML')).not.toContain('secrets')
    await enterConsole(page, gateway.url, tokens[0] ?? '', '#/graph/secrets')
    await page.until(`/No table "secrets" is visible/.test(document.body.innerText)`)
  })

  test('names of the database are text', PATIENT, async () => {
    await enter(`/${encodeURIComponent(ATTACK)}`)
    expect((await page.evaluate(names)).toSorted()).toEqual([ATTACK, '__proto__'])
    expect(await page.evaluate(`document.querySelector('.graph').innerText`)).toContain(`Relations of ${ATTACK}`)
    expect(await page.evaluate('window.attacked ?? null')).toBeNull()
    expect(await page.evaluate(`document.querySelectorAll('#app img, #app script').length`)).toBe(0)
    expect(page.complaints).toEqual([])
  })

  test('240 tables are placed without blocking the page', PATIENT, async () => {
    await enterConsole(page, largeGateway.url, tokens[0] ?? '', '#/explore')
    await page.until(`document.querySelector('.tables a') !== null`)
    // The longest time without a frame, while the graph is placed and drawn.
    await page.evaluate(`(() => {
      window.longest = 0
      let last = performance.now()
      const tick = now => {
        window.longest = Math.max(window.longest, now - last)
        last = now
        requestAnimationFrame(tick)
      }
      requestAnimationFrame(tick)
      location.hash = '#/graph'
    })()`)
    await page.until(`document.querySelectorAll('[data-table]').length === 240 && ${svg}.hasAttribute('viewBox')`)
    process.stderr.write(`console-graph.pg.test.ts: no frame for ${await page.evaluate('Math.round(longest)')} ms\n`)
    const boxes: readonly (readonly [number, number, number, number])[] = await page.evaluate(
      `[...document.querySelectorAll('[data-table] > rect')].map(({ x, y, width, height }) =>
        [x, y, width, height].map(one => one.baseVal.value))`,
    )
    const covered = boxes.filter(([x, y, width, height], at) =>
      boxes.some(
        ([left, top, wide, high], other) =>
          other > at && x < left + wide && left < x + width && y < top + high && top < y + height,
      ),
    )
    expect(covered).toEqual([])
    // The layout was made outside of the page's thread.
    expect(page.requested.filter(url => url.endsWith('/console/layout.js')).length).toBe(1)
    await page.evaluate(`location.hash = '#/graph/t0'`)
    await page.until(`/60 of 220 neighbours are drawn/.test(document.body.innerText)`)
    await page.until(`document.querySelectorAll('[data-table]').length === 61`)
    expect(page.complaints).toEqual([])
  })

  const SCREENS = { graph: '/orders', 'graph-all': '', 'graph-chosen': '/orders?all=true' }
  for (const [name, address] of Object.entries(SCREENS)) {
    test.each(VIEWS)(`${name}: $width px, $theme`, PATIENT, async ({ width, theme }) => {
      await page.show(width, theme)
      await enter(address)
      await auditScreen(page, name, { width, theme })
      // The picture itself, on a screen where it is below the first window.
      await page.evaluate(`${svg}.scrollIntoView({ block: 'start' })`)
      await auditScreen(page, `${name}-picture`, { width, theme })
    })
  }
})
