/** `/docs`: the API reference in the browser. Its files are ours and Swagger UI's. */

import type { Answer } from '../exchange.ts'
import { createPages, type Pages } from './pages.ts'

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

export function createDocs(folder: URL = FOLDER): Pages {
  return new Map([...createPages(folder, FILES), ['/docs/', async () => MOVED]])
}

const MOVED: Answer = { status: 308, headers: { Location: '../docs' }, body: null }
