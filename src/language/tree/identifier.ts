/**
 * The length limit of identifiers. It is not in `quote.ts`, so that a parser in a browser does not load the
 * keyword lists.
 */

/**
 * Limit on the length of an identifier. PostgreSQL silently truncates longer ones (`NAMEDATALEN` is 64), and
 * a truncated name could refer to a different object.
 */
export const IDENTIFIER_BYTES_MAX = 63

/**
 * Length of a text in UTF-8. `encodeURI` escapes each byte of a non-ASCII character.
 *
 * @throws URIError for an unpaired surrogate; callers reject those first.
 */
export function utf8Length(text: string): number {
  return encodeURI(text).replace(/%../g, '%').length
}
