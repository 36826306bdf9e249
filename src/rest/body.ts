/** The body of a request, which has to be JSON and has to say so (decisions 4). */
import { GatewayError } from '../errors.ts'
import type { Incoming } from '../http/types.ts'
import { shorten } from '../shorten.ts'
import { type JsonBody, parseJsonBody } from './json-body.ts'

/** `itemsMax`: of an array. An empty body needs no type: nothing was sent that could be of one. */
export function readJsonBody({ body, headers }: Incoming, itemsMax: number): JsonBody {
  if (body.length > 0) {
    assertJson(headers['content-type'])
    assertPlain(headers['content-encoding'])
  }
  return parseJsonBody(body, itemsMax)
}

/** RFC 8259 gives `application/json` no parameters; a charset is tolerated where it says what JSON is anyway. */
function assertJson(contentType = ''): void {
  const [type = '', ...parameters] = contentType.split(';').map(part => part.trim().toLowerCase())
  const charset = parameters.find(parameter => parameter.startsWith('charset='))
  if (type === 'application/json' && (charset === undefined || /^charset="?utf-?8"?$/.test(charset))) return
  throw new GatewayError(
    'UNSUPPORTED_MEDIA_TYPE',
    contentType === ''
      ? 'the body has no Content-Type; send JSON with Content-Type: application/json'
      : `a body of type "${shorten(contentType)}" is not accepted; send JSON in UTF-8 with Content-Type: application/json`,
  )
}

function assertPlain(encoding: string | undefined): void {
  if (encoding === undefined || encoding.trim().toLowerCase() === 'identity') return
  throw new GatewayError(
    'UNSUPPORTED_MEDIA_TYPE',
    `a body with Content-Encoding "${shorten(encoding)}" is not accepted; send it as it is`,
  )
}
