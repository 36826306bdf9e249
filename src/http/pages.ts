/**
 * Pages for browsers: files that the build compresses, which are read when first asked for, and load nothing from elsewhere. They
 * hold no data, so nobody needs a token for them; what they show they ask for as their reader.
 */
import { readFile } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { GatewayError } from '../errors.ts'
import type { Answer } from '../exchange.ts'
import { mayNotTransform } from './compression.ts'

export type Page = (headers: IncomingHttpHeaders) => Promise<Answer>

/** By path. */
export type Pages = ReadonlyMap<string, Page>

export interface PageFile {
  readonly path: string
  /** Its name in the folder, without `.gz`. */
  readonly file: string
  readonly type: 'text/html' | 'text/javascript' | 'text/css'
}

/** Nothing from elsewhere, nothing in the page but what it names. `'self'` is the gateway's WebSocket too (Content Security Policy Level 3). */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
].join('; ')

const SECONDS_FRESH = 3_600

export function createPages(folder: URL, files: readonly PageFile[]): Pages {
  return new Map(
    files.map(({ path, file, type }): readonly [string, Page] => {
      let bytes: Promise<Buffer> | null = null
      return [
        path,
        async headers => {
          bytes ??= load(new URL(`${file}.gz`, folder), path).catch((error: unknown) => {
            bytes = null
            throw error
          })
          return answer(await bytes, type, headers)
        },
      ]
    }),
  )
}

async function load(file: URL, path: string): Promise<Buffer> {
  try {
    return await readFile(file)
  } catch (cause) {
    throw new GatewayError('NOT_FOUND', `the file of ${path} is not installed; npm run build makes it`, { cause })
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
  const takesGzip = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?(?:,|$))/.test(String(headers['accept-encoding'] ?? ''))
  return takesGzip && !mayNotTransform(headers['cache-control'])
    ? { status: 200, headers: { ...common, 'Content-Encoding': 'gzip' }, body: compressed }
    : { status: 200, headers: common, body: await promisify(gunzip)(compressed) }
}
