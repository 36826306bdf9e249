/** The first paint of the console in a browser with an empty cache. */
import { openBrowser } from '../test/support/browser.ts'
import { firstPaint } from '../test/support/first-paint.ts'
import type { Benchmark, Figures } from './harness/benchmark.ts'
import { median } from './harness/median.ts'

const CONSOLE = '/console'
const STATIC = 'a static page of the same size'
const UNIT = 'ms'
const LOADS = 9

export const firstPaintOfConsole: Benchmark = {
  name: 'first-paint',
  title: `First paint of the console (median of ${LOADS})`,
  tools: ['chromium'],
  checks: [
    { kind: 'limit', unit: UNIT, lane: CONSOLE, atMost: 1_000 },
    { kind: 'ratio', unit: UNIT, lane: CONSOLE, references: [STATIC], better: 'lower', target: 2 },
  ],
  async prepare(world) {
    const gateway = await world.startGateway({ settings: ['[gateway.console]', 'enabled = true'] })
    const page = await world.startReference('static-page')
    const { Authorization = '' } = await world.headers()
    const token = Authorization.replace('Bearer ', '')
    return [
      { name: CONSOLE, measure: () => painted(gateway.url, token, '.tables a') },
      { name: STATIC, measure: () => painted(page.url, token, 'main') },
    ]
  },
}

/**
 * Loads the page several times in a new browser, whose start is not measured. `ready` selects an element that
 * exists when the page is complete.
 */
async function painted(url: string, token: string, ready: string): Promise<Figures> {
  const page = await openBrowser()
  try {
    await page.open(`${url}/health`)
    await page.evaluate(`sessionStorage.setItem('svc-token', ${JSON.stringify(token)})`)
    const times: number[] = []
    for (let load = 0; load < LOADS; load++) {
      await page.open('about:blank')
      await page.forget()
      await page.open(url + CONSOLE)
      times.push((await firstPaint(page)).ms)
      await page.until(`document.querySelector(${JSON.stringify(ready)}) !== null`)
    }
    if (page.complaints.length > 0) throw new Error(`the browser reports: ${page.complaints.join('\n')}`)
    return { [UNIT]: median(times) }
  } finally {
    await page.close()
  }
}
