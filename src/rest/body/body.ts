/** Request bodies, which need a `Content-Type` (docs/reference/rest-api.md#bodies): JSON, or the text of a query. */
import { isUtf8 } from 'node:buffer'
import { GatewayError } from '../../errors.ts'
import type { Incoming } from '../../exchange.ts'
import { type JsonBody, type KnownKeys, parseJsonBody } from '../../json/json-body.ts'
import { shorten } from '../../text/shorten.ts'

/** Items that are read of an array where none is accepted: what is refused is its kind, and not its length. */
export const REFUSED_ITEMS_MAX = 1_000

/** `itemsMax`: of an array; `keys`: of an object. An empty body needs no type: nothing was sent that could be of one. */
export function readJsonBody({ body, headers }: Incoming, itemsMax: number, keys: KnownKeys): JsonBody {
  if (body.length > 0) {
    assertJson(headers)
    assertPlain(headers)
  }
  return parseJsonBody(body, itemsMax, keys)
}

/** Of a body that is known to be `text/plain`. */
export function readTextBody({ body, headers }: Incoming): string {
  const { charset } = mediaTypeOf(headers)
  if (charset !== null && !isUtf8Name(charset) && charset !== 'us-ascii') {
    throw unsupported(`a text in ${shorten(charset)} is not accepted; send it in UTF-8`)
  }
  assertPlain(headers)
  if (!isUtf8(body)) throw new GatewayError('PARSE_ERROR', 'the body is not valid UTF-8')
  return body.toString()
}

/** In lower case; empty where there is none. */
export function mediaTypeOf(headers: Incoming['headers']): { readonly type: string; readonly charset: string | null } {
  const parts = (headers['content-type'] ?? '').split(';').map(part => part.trim().toLowerCase())
  const [type = '', ...parameters] = parts
  const charset = parameters.find(parameter => parameter.startsWith('charset='))
  return { type, charset: charset?.slice('charset='.length).replace(/^"|"$/g, '').trim() ?? null }
}

const JSON_TYPE = 'application/json'

/** RFC 8259 gives `application/json` no parameters; a charset is tolerated where it says what JSON is anyway. */
function assertJson(headers: Incoming['headers']): void {
  // As nearly all send it.
  if (headers['content-type'] === JSON_TYPE) return
  const { type, charset } = mediaTypeOf(headers)
  if (type === JSON_TYPE && (charset === null || isUtf8Name(charset))) return
  throw unsupported(
    type === ''
      ? 'the body has no Content-Type; send JSON with Content-Type: application/json'
      : `a body of type "${shorten(headers['content-type'] ?? '')}" is not accepted; send JSON in UTF-8 with Content-Type: application/json`,
  )
}

function isUtf8Name(charset: string): boolean {
  return charset === 'utf-8' || charset === 'utf8'
}

function assertPlain({ 'content-encoding': encoding }: Incoming['headers']): void {
  if (encoding === undefined || encoding.trim().toLowerCase() === 'identity') return
  throw unsupported(`a body with Content-Encoding "${shorten(encoding)}" is not accepted; send it as it is`)
}

function unsupported(message: string): GatewayError {
  return new GatewayError('UNSUPPORTED_MEDIA_TYPE', message)
}
