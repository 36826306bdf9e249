/** `/docs`: the API reference in the browser, made of the gateway's own files and Swagger UI. */

import type { Answer } from '../exchange.ts'
import { bearerToken } from '../identity/authenticate.ts'
import { explainToken } from '../identity/explanation.ts'
import type { TokenVerifier } from '../identity/jwt.ts'
import { createPages, type PageHandler, type Pages } from './pages.ts'

/** The same folder for the sources and for the build. */
const FOLDER = new URL('../../dist/http/docs/', import.meta.url)

// Swagger UI sets styles through element properties, which the content security policy allows.
const FILES = [
  { path: '/docs', file: 'page.html', type: 'text/html' },
  { path: '/docs/page.js', file: 'page.js', type: 'text/javascript' },
  { path: '/docs/samples.js', file: 'samples.js', type: 'text/javascript' },
  { path: '/docs/page.css', file: 'page.css', type: 'text/css' },
  { path: '/docs/swagger-ui.js', file: 'swagger-ui-bundle.js', stored: 'br', type: 'text/javascript' },
  { path: '/docs/swagger-ui.css', file: 'swagger-ui.css', stored: 'br', type: 'text/css' },
] as const

/** The dependencies of the API reference. */
export interface DocsOptions {
  /** Explains the token entered in the page; null outside development mode. */
  readonly tokens: Pick<TokenVerifier, 'explain'> | null
  readonly folder?: URL
}

/** Creates the pages of the API reference from the files in `folder`. */
export function createDocs({ tokens, folder = FOLDER }: DocsOptions): Pages {
  return new Map([
    ...createPages(folder, FILES),
    ['/docs/', async () => MOVED],
    ['/docs/token', tokens === null ? async () => NOT_EXPLAINED : explaining(tokens)],
  ])
}

/** Not an error, because the page sends the request in every mode. */
const NOT_EXPLAINED: Answer = { status: 204, headers: {}, body: null }

function explaining(tokens: Pick<TokenVerifier, 'explain'>): PageHandler {
  return async ({ authorization = '' }) => {
    const { lines } = await explainToken(tokens, bearerToken(authorization))
    return {
      status: 200,
      headers: { 'Content-Type': 'text/plain; charset=utf-8', 'Cache-Control': 'no-store' },
      body: Buffer.from(`${lines.join('\n')}\n`),
    }
  }
}

const MOVED: Answer = { status: 308, headers: { Location: '../docs' }, body: null }
