/** Hides secrets in printed configuration. In doubt it hides too much. */

export const MASK = '***'

/**
 * Keeps scheme, user, host and database, so that the database can be recognized. A password that is not
 * percent-encoded can contain any character, so everything from the colon after the user to the last `@` is
 * hidden, and so is a parameter without `=`, which may be part of one.
 */
export function maskDatabaseUrl(url: string): string {
  return url
    .replace(/^([^:/?#]+:\/\/[^:@/?#]*):.*@/s, `$1:${MASK}@`)
    .replace(/([?&](?:[a-z]*password|passfile)=)[^&]*/gi, `$1${MASK}`)
    .replace(/(?<=[?&])[^=&]+(?=&|$)/g, MASK)
}
