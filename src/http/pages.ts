/**
 * Serves pages for browsers from files that the build compresses. They are read when first requested and load
 * nothing from other origins. They contain no data, so they need no token; the page itself requests data with
 * the user's token.
 */
import { readFile } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { promisify } from 'node:util'
import { brotliDecompress, constants, gunzip, gzip } from 'node:zlib'
import { GatewayError } from '../errors.ts'
import type { Answer } from '../exchange.ts'
import type { OperatorRoutes } from '../ops/operator-routes.ts'
import { mayNotTransform } from './compression.ts'

/** Responds with a page. */
export type PageHandler = (headers: IncomingHttpHeaders) => Promise<Answer>

/** The pages by path. */
export type Pages = ReadonlyMap<string, PageHandler>

/** The routes of pages. */
export function routesOf(pages: Pages): OperatorRoutes {
  return new Map([...pages].map(([path, page]) => [path, { method: 'GET', answer: ({ headers }) => page(headers) }]))
}

/** A file of a page. */
export interface PageFile {
  readonly path: string
  /** The name of the file in the folder, without `.gz` or `.br`. */
  readonly file: string
  /** How the package stores it: `br` is a fifth smaller, and converted when the file is first read. */
  readonly stored?: 'gz' | 'br'
  readonly type: 'text/html' | 'text/javascript' | 'text/css' | 'text/plain' | 'image/webp'
}

/**
 * Allows nothing from other origins, and no inline code except what the policy names. `'self'` includes the
 * gateway's WebSocket (Content Security Policy Level 3).
 */
function contentSecurityPolicy(provider: string | null): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    provider === null ? "connect-src 'self'" : `connect-src 'self' ${provider}`,
    ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
  ].join('; ')
}

const SECONDS_FRESH = 3_600

/**
 * Creates the pages from the files in `folder`. `provider` is the origin of the identity provider to which
 * they can send requests.
 */
export function createPages(folder: URL, files: readonly PageFile[], provider: string | null = null): Pages {
  return new Map(
    files.map(({ path, file, stored = 'gz', type }) => [
      path,
      createPage(type, () => load(new URL(`${file}.${stored}`, folder), { path, stored }), provider),
    ]),
  )
}

/** Creates a page that is loaded when it is first requested. `load` returns it compressed with gzip. */
export function createPage(
  type: PageFile['type'],
  load: () => Promise<Buffer>,
  provider: string | null = null,
): PageHandler {
  const policy = contentSecurityPolicy(provider)
  let bytes: Promise<Buffer> | null = null
  return async headers => {
    bytes ??= load().catch((error: unknown) => {
      bytes = null
      throw error
    })
    return answer(await bytes, { type, policy }, headers)
  }
}

/** The file, compressed with gzip, which browsers accept without TLS too. */
async function load(file: URL, { path, stored }: Required<Pick<PageFile, 'path' | 'stored'>>): Promise<Buffer> {
  try {
    const bytes = await readFile(file)
    if (stored === 'gz') return bytes
    return await promisify(gzip)(await promisify(brotliDecompress)(bytes), { level: constants.Z_BEST_COMPRESSION })
  } catch (cause) {
    throw new GatewayError('NOT_FOUND', `the file of ${path} is not installed; run npm run build to create it`, {
      cause,
    })
  }
}

async function answer(
  compressed: Buffer,
  { type, policy }: { readonly type: PageFile['type']; readonly policy: string },
  headers: IncomingHttpHeaders,
): Promise<Answer> {
  const common = {
    'Content-Type': type.startsWith('text/') ? `${type}; charset=utf-8` : type,
    'Content-Security-Policy': policy,
    'Cache-Control': `max-age=${SECONDS_FRESH}`,
    'Referrer-Policy': 'no-referrer',
    Vary: 'Accept-Encoding',
  }
  // A client that accepts gzip names it. A weight of 0 is rare, and the uncompressed page is always
  // acceptable.
  const takesGzip = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?(?:,|$))/.test(String(headers['accept-encoding'] ?? ''))
  return takesGzip && !mayNotTransform(headers['cache-control'])
    ? { status: 200, headers: { ...common, 'Content-Encoding': 'gzip' }, body: compressed }
    : { status: 200, headers: common, body: await promisify(gunzip)(compressed) }
}
