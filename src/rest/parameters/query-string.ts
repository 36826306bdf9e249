/** Splits a query string into decoded name/value pairs, in the order sent. */
import { GatewayError } from '../../errors.ts'
import { LIMIT_NAMES } from '../../statement-limits.ts'
import { shorten } from '../../text/shorten.ts'

/** One decoded name/value pair. */
export interface QueryParameter {
  readonly name: string
  readonly value: string
}

/**
 * Parses `application/x-www-form-urlencoded` (URL Standard 5.1), but strictly: invalid percent-encoded UTF-8
 * is an error instead of a replacement character, and NUL is rejected because PostgreSQL's text cannot store
 * it. `max`: limit on the pairs, checked before they are decoded; 0 means no limit.
 * @throws {GatewayError} `PARSE_ERROR` for invalid encoding or too many pairs.
 */
export function parseQueryString(query: string, max: number): readonly QueryParameter[] {
  if (query === '') return []
  const pairs = query.split('&')
  if (max > 0 && pairs.length > max) {
    const limit = LIMIT_NAMES.maxQueryParameters
    throw new GatewayError(
      'PARSE_ERROR',
      `the query string has ${pairs.length} parameters; at most ${max} are allowed (${limit})`,
      { limit },
    )
  }
  const parameters: QueryParameter[] = []
  for (const pair of pairs) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = equals < 0 ? pair : pair.slice(0, equals)
    const value = equals < 0 ? '' : pair.slice(equals + 1)
    parameters.push({ name: decodeComponent(name), value: decodeComponent(value) })
  }
  return parameters
}

/** Decodes one name or value of a query string. */
export function decodeComponent(text: string): string {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text
  return decodePercent(spaced, 'query string')
}

/** Decodes `%xx` sequences. `where` names the part of the request in the error. */
export function decodePercent(text: string, where: string): string {
  // Most texts contain nothing to decode or reject.
  if (!text.includes('%') && !text.includes('\0')) return text
  let decoded: string
  try {
    decoded = decodeURIComponent(text)
  } catch {
    throw new GatewayError(
      'PARSE_ERROR',
      `the ${where} has "${shorten(text)}", which is not valid percent-encoded UTF-8; write % as %25`,
    )
  }
  if (decoded.includes('\0')) {
    throw new GatewayError(
      'PARSE_ERROR',
      `the ${where} has a NUL character (%00), which PostgreSQL cannot store; leave it out`,
    )
  }
  return decoded
}
