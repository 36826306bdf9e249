/**
 * Reads request bodies, which need a `Content-Type` (docs/reference/rest-api.md#bodies): JSON, or the text of
 * a query.
 */
import { isUtf8 } from 'node:buffer'
import { GatewayError } from '../../errors.ts'
import type { Incoming } from '../../exchange.ts'
import { type JsonBody, type KnownKeys, parseJsonBody } from '../../json/json-body.ts'
import { shorten } from '../../text/shorten.ts'

/**
 * Number of array items read if the request does not accept an array. The error is then about the type of the
 * body rather than its length.
 */
export const REFUSED_ITEMS_MAX = 1_000

/**
 * Parses a JSON body. `itemsMax` limits the items of an array, `keys` are the keys of an object. An empty
 * body needs no Content-Type.
 * @throws {GatewayError} `PARSE_ERROR` for malformed JSON, `UNSUPPORTED_MEDIA_TYPE` for another type.
 */
export function readJsonBody({ body, headers }: Incoming, itemsMax: number, keys: KnownKeys | null): JsonBody {
  if (body.length > 0) {
    assertJson(headers, JSON_TYPE)
    assertPlain(headers)
  }
  return parseJsonBody(body, itemsMax, keys)
}

/** The media types of patches; new values of columns are plain JSON. */
export const PATCH_TYPES = {
  merge: 'application/merge-patch+json',
  operations: 'application/json-patch+json',
} as const

/** Parses the body of a change, which has one of `PATCH_TYPES`. */
export function readPatchBody(
  { body, headers }: Incoming,
  form: keyof typeof PATCH_TYPES,
  itemsMax: number,
  keys: KnownKeys | null,
): JsonBody {
  assertJson(headers, PATCH_TYPES[form])
  assertPlain(headers)
  return parseJsonBody(body, itemsMax, keys)
}

/** Checks that an upload is plain UTF-8 as far as its headers say. */
export function assertUpload({ headers }: Pick<Incoming, 'headers'>): void {
  const { charset } = mediaTypeOf(headers)
  if (charset !== null && !isUtf8Name(charset) && charset !== 'us-ascii') {
    throw unsupported(`charset "${shorten(charset)}" is not supported; send the text in UTF-8`)
  }
  assertPlain(headers)
}

/** Decodes a body that is known to be `text/plain`. */
export function readTextBody({ body, headers }: Incoming): string {
  assertUpload({ headers })
  if (!isUtf8(body)) throw new GatewayError('PARSE_ERROR', 'the body is not valid UTF-8')
  return body.toString()
}

/**
 * The media type and charset in lower case. The type is empty if the header is missing; the charset is null
 * if the header has none.
 */
export function mediaTypeOf(headers: Incoming['headers']): { readonly type: string; readonly charset: string | null } {
  const header = headers['content-type'] ?? ''
  if (header === JSON_TYPE) return PLAIN_JSON
  const parts = header.split(';').map(part => part.trim().toLowerCase())
  const [type = '', ...parameters] = parts
  const charset = parameters.find(parameter => parameter.startsWith('charset='))
  return { type, charset: charset?.slice('charset='.length).replace(/^"|"$/g, '').trim() ?? null }
}

const JSON_TYPE = 'application/json'
const PLAIN_JSON = { type: JSON_TYPE, charset: null }

/**
 * Checks for a JSON media type. RFC 8259 defines no parameters for `application/json`; `charset=utf-8` is
 * tolerated because JSON is UTF-8 anyway.
 */
function assertJson(headers: Incoming['headers'], expected: string): void {
  // The value that nearly every client sends.
  if (headers['content-type'] === expected) return
  const { type, charset } = mediaTypeOf(headers)
  if (type === expected && (charset === null || isUtf8Name(charset))) return
  throw unsupported(
    type === ''
      ? 'the body has no Content-Type; send JSON with Content-Type: application/json'
      : `a body of type "${shorten(headers['content-type'] ?? '')}" is not accepted; ` +
          'send JSON in UTF-8 with Content-Type: application/json',
  )
}

function isUtf8Name(charset: string): boolean {
  return charset === 'utf-8' || charset === 'utf8'
}

function assertPlain({ 'content-encoding': encoding }: Incoming['headers']): void {
  if (encoding === undefined || encoding.trim().toLowerCase() === 'identity') return
  throw unsupported(`a body with Content-Encoding "${shorten(encoding)}" is not accepted; send it without compression`)
}

function unsupported(message: string): GatewayError {
  return new GatewayError('UNSUPPORTED_MEDIA_TYPE', message)
}
