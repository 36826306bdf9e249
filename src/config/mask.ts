/** Hides secrets where configuration is printed. In doubt it hides too much. */

export const MASK = '***'

/**
 * Keeps scheme, user, host and database, so that one can see which database is meant. A password may hold any
 * character when somebody forgot to encode it, so everything from the user's colon to the last `@` goes; and
 * what has no `=` among the parameters may be the second half of one.
 */
export function maskDatabaseUrl(url: string): string {
  return url
    .replace(/^([^:/?#]+:\/\/[^:@/?#]*):.*@/s, `$1:${MASK}@`)
    .replace(/([?&](?:[a-z]*password|passfile)=)[^&]*/gi, `$1${MASK}`)
    .replace(/(?<=[?&])[^=&]+(?=&|$)/g, MASK)
}
