/**
 * `/docs`: the API reference in the browser. The page holds no data and so needs no token; it asks for the document as its reader. Its files, Swagger UI
 * among them, lie compressed beside the build (scripts/tree.js), are read when first asked for, and load nothing from elsewhere.
 */

import { readFile } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { GatewayError } from '../errors.ts'
import type { Answer } from './types.ts'

/** From the sources and from the build alike. */
const FOLDER = new URL('../../dist/http/docs/', import.meta.url)

const FILES = [
  { path: '/docs', file: 'page.html', type: 'text/html' },
  { path: '/docs/page.js', file: 'page.js', type: 'text/javascript' },
  { path: '/docs/page.css', file: 'page.css', type: 'text/css' },
  { path: '/docs/swagger-ui.js', file: 'swagger-ui-bundle.js', type: 'text/javascript' },
  { path: '/docs/swagger-ui.css', file: 'swagger-ui.css', type: 'text/css' },
] as const

/** Nothing from elsewhere, nothing in the page but what it names. Swagger UI sets styles by the elements' properties, which needs no leave. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
].join('; ')

const SECONDS_FRESH = 3_600

type DocsAnswer = (headers: IncomingHttpHeaders) => Promise<Answer>

/** Answers by path. */
export function createDocs(folder: URL = FOLDER): ReadonlyMap<string, DocsAnswer> {
  const files = FILES.map(({ path, file, type }): readonly [string, DocsAnswer] => {
    let bytes: Promise<Buffer> | null = null
    return [
      path,
      async headers => {
        bytes ??= load(new URL(`${file}.gz`, folder)).catch((error: unknown) => {
          bytes = null
          throw error
        })
        return answer(await bytes, type, headers)
      },
    ]
  })
  return new Map([...files, ['/docs/', async () => MOVED]])
}

const MOVED: Answer = { status: 308, headers: { Location: '../docs' }, body: null }

async function load(file: URL): Promise<Buffer> {
  try {
    return await readFile(file)
  } catch (cause) {
    throw new GatewayError('NOT_FOUND', 'the files of /docs are not installed; npm run build makes them', { cause })
  }
}

async function answer(compressed: Buffer, type: string, headers: IncomingHttpHeaders): Promise<Answer> {
  const common = {
    'Content-Type': `${type}; charset=utf-8`,
    'Content-Security-Policy': CONTENT_SECURITY_POLICY,
    'Cache-Control': `max-age=${SECONDS_FRESH}`,
    'Referrer-Policy': 'no-referrer',
    Vary: 'Accept-Encoding',
  }
  // Whoever takes gzip says so by its name; a weight of nought is nobody's habit, and then the plain bytes do no harm either.
  return /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?(?:,|$))/.test(String(headers['accept-encoding'] ?? ''))
    ? { status: 200, headers: { ...common, 'Content-Encoding': 'gzip' }, body: compressed }
    : { status: 200, headers: common, body: await promisify(gunzip)(compressed) }
}
