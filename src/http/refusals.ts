/** Refusals of the HTTP layer: what Node and Fastify say against a request, as errors of ours. */
import { GatewayError } from '../errors.ts'
import { bodyTooLarge } from './request-body.ts'

/** Request line and headers together: room for `max_in_values` of uuids. */
export const HEADER_BYTES_MAX: number = 64 * 1024

/** The whole request, headers and body, must have come by then. */
export const REQUEST_MS_MAX = 30_000

export function tooManyConnections(what: string): GatewayError {
  return new GatewayError('UNAVAILABLE', `too many connections: ${what}; close one and try again`, {
    headers: { 'Retry-After': '1' },
  })
}

/** An error of Fastify as ours; any other as it is. */
export function fromFramework(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return bodyTooLarge()
    case 'FST_ERR_BAD_URL':
      return new GatewayError('PARSE_ERROR', 'the path is not valid percent-encoded UTF-8; write % as %25')
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new GatewayError('PARSE_ERROR', 'Content-Length does not match the body')
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new GatewayError(
        'UNSUPPORTED_MEDIA_TYPE',
        'Content-Type is missing or malformed; expected application/json',
      )
    default:
      // Fastify's other refusals of a request have a status of the 400s.
      return isRefusal(error) ? new GatewayError('PARSE_ERROR', error.message) : error
  }
}

function isRefusal(error: unknown): error is Error {
  const status = error instanceof Error && 'statusCode' in error ? Number(error.statusCode) : 0
  return status >= 400 && status < 500
}

/** Bytes that Node cannot read as a request. */
export function unparsable({ code }: NodeJS.ErrnoException): GatewayError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new GatewayError(
        'HEADERS_TOO_LARGE',
        `the request line and headers are larger than ${HEADER_BYTES_MAX} bytes`,
      )
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new GatewayError('TIMEOUT', `the request did not come whole within ${REQUEST_MS_MAX} ms`)
    default:
      return new GatewayError(
        'PARSE_ERROR',
        'the bytes sent are no HTTP/1.1 request; in the URL everything but ASCII must be percent-encoded',
      )
  }
}
