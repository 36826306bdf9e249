/** PostgreSQL's text form of arrays (PostgreSQL manual, 8.15.6): `{a,"b c",NULL}`. */

/** Of elements that are texts of arrays, quoted texts, or `NULL` already. */
export function printElements(elements: readonly string[]): string {
  return `{${elements.join(',')}}`
}

/** An element that may hold anything, so that `NULL` stays a text; a bound of a range takes the same form (PostgreSQL manual, 8.17.5). */
export function quoteElement(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`
}
