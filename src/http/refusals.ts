/** Translates errors of Node and Fastify about a request to errors of the gateway. */
import { GatewayError } from '../errors.ts'
import { requestBodyTooLarge } from './request-body.ts'

/** Limit on the request line and headers together; enough for `max_in_values` UUIDs. */
export const HEADER_BYTES_MAX: number = 64 * 1024

/** Time limit for receiving the whole request, headers and body. */
export const REQUEST_MS_MAX = 30_000

/** The error for a connection above a limit. */
export function tooManyConnections(what: string): GatewayError {
  return new GatewayError('UNAVAILABLE', `too many connections: ${what}; close one and try again`, {
    headers: { 'Retry-After': '1' },
  })
}

/** Translates an error of Fastify; returns other errors unchanged. */
export function fromFramework(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return requestBodyTooLarge()
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
      // Fastify's other errors about a request have a 4xx status.
      return isRefusal(error) ? new GatewayError('PARSE_ERROR', error.message) : error
  }
}

function isRefusal(error: unknown): error is Error {
  const status = error instanceof Error && 'statusCode' in error ? Number(error.statusCode) : 0
  return status >= 400 && status < 500
}

/** The error for bytes that Node cannot parse as a request. */
export function unparsable({ code }: NodeJS.ErrnoException): GatewayError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new GatewayError(
        'HEADERS_TOO_LARGE',
        `the request line and headers are larger than ${HEADER_BYTES_MAX} bytes`,
      )
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new GatewayError('TIMEOUT', `the request was not received completely within ${REQUEST_MS_MAX} ms`)
    default:
      return new GatewayError(
        'PARSE_ERROR',
        'the request is not valid HTTP/1.1; non-ASCII characters in the URL must be percent-encoded',
      )
  }
}
