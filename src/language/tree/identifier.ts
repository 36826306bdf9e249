/** The longest name. Not in `quote.ts`, so that a parser in a browser does not load the lists of key words. */

/** PostgreSQL cuts longer names off without an error (`NAMEDATALEN` is 64), so that they would mean another thing. */
export const IDENTIFIER_BYTES_MAX = 63

/**
 * Bytes of a text in UTF-8: `encodeURI` writes each byte of what is not ASCII as one escape.
 * @throws URIError for half a surrogate pair, which callers have refused by then.
 */
export function utf8Length(text: string): number {
  return encodeURI(text).replace(/%../g, '%').length
}
