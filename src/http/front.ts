/** `/` in a browser: what this gateway is, whether it is healthy, and what the caller can see. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Incoming } from '../exchange.ts'
import { READING } from '../rest/method.ts'
import type { SignInClient } from './console.ts'
import { createPages, type PageHandler, type Pages } from './pages.ts'

/** The same folder for the sources and for the build. */
const FOLDER = new URL('../../dist/http/front/', import.meta.url)

const HTML = { path: '/', file: 'page.html', type: 'text/html' } as const
const FILES = [
  { path: '/front/page.js', file: 'page.js', type: 'text/javascript' },
  { path: '/front/page.css', file: 'page.css', type: 'text/css' },
  { path: '/front/base.css', file: 'base.css', type: 'text/css' },
  { path: '/front/documentation.css', file: 'documentation.css', type: 'text/css' },
] as const

/** A sample caller whom a visitor can be. */
export interface SampleCaller {
  /** Completes "Enter as …". */
  readonly title: string
  readonly token: string
}

/** The dependencies of the page. */
export interface FrontOptions {
  /** True if requests without a token are refused. */
  readonly requiresToken: boolean
  /** True if `/console` exists. */
  readonly hasConsole: boolean
  /** How the console signs in with an identity provider; null if it does not. */
  readonly provider: SignInClient | null
  /** The sample callers of the demo. Empty outside the demo, and for a `Host` that is not this machine. */
  readonly callers: (headers: IncomingHttpHeaders) => Promise<readonly SampleCaller[]>
  /** A sentence for visitors; null without one. */
  readonly notice: string | null
}

/** Creates the page and its files. */
export function createFront({ requiresToken, hasConsole, provider, callers, notice }: FrontOptions): Pages {
  return new Map([
    ...createPages(FOLDER, FILES),
    ...[...createPages(FOLDER, [HTML])].map(([path, page]): readonly [string, PageHandler] => [path, varying(page)]),
    [
      '/front/state',
      async headers => ({
        status: 200,
        headers: { 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-store' },
        body: Buffer.from(
          JSON.stringify({
            ...{ requiresToken, hasConsole, callers: await callers(headers) },
            ...(provider === null ? {} : { provider }),
            ...(notice === null ? {} : { notice }),
          }),
        ),
      }),
    ],
  ])
}

/** Other clients get another answer from `/`, so caches must keep the two apart. */
function varying(page: PageHandler): PageHandler {
  return async headers => {
    const answer = await page(headers)
    return { ...answer, headers: { ...answer.headers, Vary: 'Accept, Accept-Encoding' } }
  }
}

/** Reports whether a browser asks for a page. For other clients, `/` is a path without a route. */
export function isVisit({ method, headers }: Pick<Incoming, 'method' | 'headers'>): boolean {
  return READING.includes(method) && /\btext\/html\b/.test(headers.accept ?? '')
}
