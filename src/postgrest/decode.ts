/** Decodes names and values of query strings and forms as PostgREST does. */
import { decodeComponent } from '../rest/parameters/query-string.ts'

/** A `%` that begins no escape is a character, as in `like.%a%`. */
const LONE_PERCENT = /%(?![0-9a-fA-F]{2})/g

/**
 * Decodes one name or value.
 * @throws {GatewayError} `PARSE_ERROR` for escapes that are not UTF-8, and for NUL.
 */
export function decodeLenient(text: string): string {
  if (!text.includes('%')) return decodeComponent(text)
  return decodeComponent(text.replace(LONE_PERCENT, '%25'))
}
