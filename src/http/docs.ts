/** `/docs`: the API reference in the browser. Its files are ours and Swagger UI's. */

import type { Answer } from '../exchange.ts'
import { bearerToken } from '../identity/authenticate.ts'
import { explainToken } from '../identity/explanation.ts'
import type { TokenVerifier } from '../identity/jwt.ts'
import { createPages, type Page, type Pages } from './pages.ts'

/** From the sources and from the build alike. */
const FOLDER = new URL('../../dist/http/docs/', import.meta.url)

// Swagger UI sets styles by the elements' properties, which the pages' policy lets it do.
const FILES = [
  { path: '/docs', file: 'page.html', type: 'text/html' },
  { path: '/docs/page.js', file: 'page.js', type: 'text/javascript' },
  { path: '/docs/page.css', file: 'page.css', type: 'text/css' },
  { path: '/docs/swagger-ui.js', file: 'swagger-ui-bundle.js', type: 'text/javascript' },
  { path: '/docs/swagger-ui.css', file: 'swagger-ui.css', type: 'text/css' },
] as const

export interface DocsOptions {
  /** Explains the token that is entered in the page; null outside of development mode. */
  readonly tokens: Pick<TokenVerifier, 'explain'> | null
  readonly folder?: URL
}

export function createDocs({ tokens, folder = FOLDER }: DocsOptions): Pages {
  return new Map([
    ...createPages(folder, FILES),
    ['/docs/', async () => MOVED],
    ['/docs/token', tokens === null ? async () => NOT_EXPLAINED : explaining(tokens)],
  ])
}

/** No error: the page asks in every mode. */
const NOT_EXPLAINED: Answer = { status: 204, headers: {}, body: null }

function explaining(tokens: Pick<TokenVerifier, 'explain'>): Page {
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
