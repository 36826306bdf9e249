/**
 * Entity tags of responses. A compressed response has a separate tag (RFC 9110, 8.8.3.3), and a response that
 * the client already has is 304 (RFC 9110, 13.1.2).
 */
import type { Answer, Incoming } from '../exchange.ts'
import { opaqueOf } from '../rest/etag.ts'
import type { CodingChoice } from './compression.ts'

/** True if the tag is that of the body. In responses to writes and in a 412 it is that of the row. */
export function isOfBody({ method }: Pick<Incoming, 'method'>, { status }: Answer): boolean {
  return (method === 'GET' || method === 'HEAD') && status === 200
}

/** Returns `"a"` as `"a-br"`. A weak tag is the same in every coding. */
export function tagIn(choice: CodingChoice, tag: string): string {
  return (choice === 'br' || choice === 'gzip') && tag.startsWith('"') ? `${tag.slice(0, -1)}-${choice}"` : tag
}

/** Reports whether `If-None-Match` says that the client has this response. */
export function isNotModified({ method, headers }: Pick<Incoming, 'method' | 'headers'>, answer: Answer): boolean {
  if (answer.status === 304) return true
  const condition = headers['if-none-match']
  const { ETag: tag } = answer.headers
  if (condition === undefined || tag === undefined || !isOfBody({ method }, answer)) return false
  return condition.trim() === '*' || tagsIn(condition).includes(opaqueOf(tag))
}

/** The opaque parts of the tags, compared as if all were weak. Anything that is not a tag matches nothing. */
function tagsIn(condition: string): readonly string[] {
  return (condition.match(/"[^"]*"/g) ?? []).map(opaqueOf)
}

/**
 * Returns the 304 response; `choice` is the coding that the body would have. If PostgreSQL has compared the
 * tag, the size of the body is unknown, so a tag without a coding is left as it is.
 */
export function notModified({ headers, status }: Answer, choice: CodingChoice): Answer {
  const { ETag: tag = '', 'Content-Type': _, ...others } = headers
  return {
    status: 304,
    headers: { ETag: status === 304 ? recoded(choice, tag) : tagIn(choice, tag), ...others },
    rows: 0,
    body: null,
  }
}

/** A strong tag of a compressed body. */
const CODED = /^(".*)-(?:br|gzip)"$/

function recoded(choice: CodingChoice, tag: string): string {
  return CODED.test(tag) ? tagIn(choice, tag.replace(CODED, '$1"')) : tag
}
