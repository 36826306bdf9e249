/** When a browser first paints the content of its document, and what it loaded before that. */
import type { Page } from './browser.ts'

export interface FirstPaint {
  /** Milliseconds from the beginning of the navigation. */
  readonly ms: number
  readonly before: readonly { readonly path: string; readonly bytes: number }[]
}

/** Resolves when the browser has painted content. It reports a paint after the frame that shows it. */
export function firstPaint(page: Pick<Page, 'evaluate'>): Promise<FirstPaint> {
  return page.evaluate(`new Promise(resolve => {
    new PerformanceObserver((list, observer) => {
      const ms = list.getEntriesByName('first-contentful-paint')[0]?.startTime
      if (ms === undefined) return
      observer.disconnect()
      const loaded = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
      resolve({ ms, before: loaded.filter(one => one.startTime < ms)
        .map(one => ({ path: new URL(one.name).pathname, bytes: one.encodedBodySize })) })
    }).observe({ type: 'paint', buffered: true })
  })`)
}
