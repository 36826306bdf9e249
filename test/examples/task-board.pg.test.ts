/** Executes examples/task-board as its README says, and uses its three screens in a browser. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { mintToken } from '../../src/identity/mint.ts'
import { BROWSER_MISSING, openBrowser, type Page } from '../support/browser.ts'
import { fixture } from '../support/fixtures.ts'
import { read } from '../tidy/tree.ts'
import { openStory, SHELL_MISSING } from './story.ts'

const MISSING = SHELL_MISSING ?? BROWSER_MISSING
if (MISSING !== null) process.stderr.write(`task-board.pg.test.ts: skipped, since ${MISSING}\n`)

const SECRET = /JWT_SECRET=(\S+)/.exec(read('examples/task-board/README.md'))?.[1] ?? ''

describe.skipIf(MISSING !== null)('examples/task-board', () => {
  const story = fixture(() => openStory('task-board'))
  const one = fixture(openBrowser)
  const other = fixture(openBrowser)

  beforeAll(() => story.play(), 300_000)

  /** Opens the application for a tenant, and holds its writes back until `release`. */
  async function open(page: Page, tenantId: string): Promise<void> {
    const token = await mintToken(SECRET, { tenantId, expiresInSeconds: 600 }, Date.now())
    await page.open('about:blank')
    await page.open(`http://127.0.0.1:${story.port(5173)}/#token=${token}`)
    await page.evaluate(`window.send = fetch; window.held = []; window.isHolding = false
      window.fetch = async (url, init) => {
        if (isHolding && init?.method === 'POST') await new Promise(resolve => held.push(resolve))
        return send(url, init)
      }`)
    await page.until(`document.querySelector('h1')?.textContent === 'Projects'`)
  }
  const hold = (page: Page) => page.evaluate('void (isHolding = true)')
  const release = (page: Page) => page.evaluate('isHolding = false; for (const go of held.splice(0)) go()')
  const enter = (page: Page, name: string, value: string) =>
    page.evaluate(`{
      const input = document.querySelector('input[name=${name}]')
      input.value = ${JSON.stringify(value)}
      input.form.requestSubmit()
    }`)
  const shows = (page: Page, ...texts: readonly string[]) =>
    page.until(
      `JSON.stringify([...document.querySelectorAll('li > :first-child')].map(one => one.textContent))
        === ${JSON.stringify(JSON.stringify(texts))}`,
    )
  const click = (page: Page, selector: string) => page.evaluate(`document.querySelector('${selector}').click()`)

  test('shows projects and tasks to everyone in a company as they change', { timeout: 120_000 }, async () => {
    await open(one, 'red')
    await open(other, 'red')
    await hold(one)
    await enter(one, 'name', 'Bridge')
    await shows(one, 'Bridge')
    expect(await one.evaluate(`document.querySelector('li').className`)).toBe('pending')
    await shows(other)
    await release(one)
    await shows(other, 'Bridge')
    await one.until(`document.querySelector('li')?.className === ''`)
    for (const page of [one, other]) {
      await click(page, 'li a')
      await page.until(`document.querySelector('h1').textContent === 'Board'`)
    }

    await hold(one)
    await enter(one, 'title', 'Survey')
    await shows(one, 'Survey')
    await shows(other)
    await release(one)
    await shows(other, 'Survey')
    await enter(other, 'title', 'Order steel')
    await shows(one, 'Survey', 'Order steel')
    await click(one, 'li input')
    await other.until(`document.querySelector('li label').className === 'done'`)

    await other.evaluate(`location.hash = '#/overview'`)
    await shows(other, 'Order steel')
    expect(await other.evaluate(`document.querySelector('li').innerText`)).toMatch(/Bridge/)
    await click(one, 'li input')
    await shows(other, 'Order steel', 'Survey')
    await click(one, 'li button')
    await shows(one, 'Order steel')
    await shows(other, 'Order steel')
    expect([...one.complaints, ...other.complaints]).toEqual([])
  })

  test('takes back what the gateway refuses, and shows the reason', { timeout: 120_000 }, async () => {
    const title = 'x'.repeat(101)
    await hold(one)
    await enter(one, 'title', title)
    await shows(one, 'Order steel', title)
    await release(one)
    await one.until(`document.querySelector('[role=alert]')?.textContent.includes('tasks_title_check')`)
    await shows(one, 'Order steel')
    await click(one, 'nav a')
    await enter(one, 'name', '')
    await one.until(`document.querySelector('[role=alert]')?.textContent.includes('projects_name_check')`)
    await shows(one, 'Bridge')
  })

  test('shows another company only its own projects and tasks', { timeout: 120_000 }, async () => {
    await open(other, 'blue')
    await enter(other, 'name', 'Tunnel')
    await shows(other, 'Tunnel')
    await other.evaluate(`location.hash = '#/projects/1'`)
    await other.until(`document.querySelector('h1').textContent === 'Board'`)
    await enter(other, 'title', 'Dig')
    await other.until(`document.querySelector('[role=alert]')?.textContent.includes('project_id')`)
    await shows(other)
  })

  test('has the types that are in the repository', async () => {
    expect(await readFile(join(story.folder, 'src/schema.ts'), 'utf8')).toBe(read('examples/task-board/src/schema.ts'))
  })
})
