/** Helpers of the tests that open the console in a browser: sign-in, keyboard, and the audit of a screen. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import axe from 'axe-core'
import { expect } from 'vitest'
import { ROOT } from '../tidy/tree.ts'
import type { Page } from './browser.ts'

/** Screenshots of the last run, to look at. */
const SCREENSHOTS = join(ROOT, '.cache/screenshots')

/** The width of a window in CSS pixels, and the theme that its user prefers. */
export interface View {
  readonly width: number
  readonly theme: 'light' | 'dark'
}

/** A quarter of the window's height in these tests, in CSS pixels. */
const HEADER_MAX = 225

/** The widths and themes in which every screen of the console is audited. */
export const VIEWS: readonly View[] = [360, 1280, 3840].flatMap(width =>
  (['light', 'dark'] as const).map(theme => ({ width, theme })),
)

/** Opens a new document of the console as the caller with this token. */
export async function enterConsole(page: Page, url: string, token: string, address: string): Promise<void> {
  await page.open(url)
  await page.evaluate(`sessionStorage.clear(), sessionStorage.setItem('svc-token', ${JSON.stringify(token)})`)
  await page.open(`${url}/console${address}`)
}

/** Presses Tab until the element that the expression describes has the focus. */
export async function tabTo(page: Page, condition: string, pressesMax = 120): Promise<void> {
  for (let presses = 0; presses < pressesMax; presses++) {
    if (await page.evaluate(`(element => ${condition})(document.activeElement)`)) return
    await page.press('Tab')
  }
  throw new Error(`${pressesMax} presses of Tab do not lead to ${condition}`)
}

/** Fails if something is wider than the window, axe finds a violation, or the browser complains. */
export async function auditScreen(page: Page, name: string, view: View): Promise<void> {
  // A picture cuts off what is outside of it.
  const tooWide = `[...document.querySelectorAll('main *')].filter(element => element.closest('.scroll, pre') === null
    && element.parentElement.closest('svg') === null
    && element.getBoundingClientRect().right > innerWidth).map(element => element.outerHTML.slice(0, 100))`
  expect(await page.evaluate(tooWide)).toEqual([])
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(view.width)
  expect(await page.evaluate(`document.querySelector('header').offsetHeight`)).toBeLessThanOrEqual(HEADER_MAX)
  await page.evaluate(`${axe.source}; null`)
  const found = await page.evaluate(
    `axe.run().then(({ violations }) => violations.map(one => [one.id, one.nodes.slice(0, 3).map(n => n.html)]))`,
  )
  expect(found).toEqual([])
  mkdirSync(SCREENSHOTS, { recursive: true })
  writeFileSync(join(SCREENSHOTS, `${name}-${view.width}-${view.theme}.png`), await page.screenshot())
  expect(page.complaints).toEqual([])
}
