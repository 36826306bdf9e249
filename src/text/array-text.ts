/** Prints PostgreSQL's text form of arrays (PostgreSQL manual, 8.15.6): `{a,"b c",NULL}`. */

/** Prints a one-dimensional array of texts, which can be null. */
export function toArrayLiteral(items: readonly (string | null)[]): string {
  return printElements(items.map(item => (item === null ? 'NULL' : quoteElement(item))))
}

/** Prints an array of elements that are already printed: nested arrays, quoted texts or `NULL`. */
export function printElements(elements: readonly string[]): string {
  return `{${elements.join(',')}}`
}

const SPECIAL = /["\\]/g

/**
 * Quotes an element, so that it can contain any character and the text `NULL` stays a text. A bound of a
 * range has the same form (PostgreSQL manual, 8.17.5).
 */
export function quoteElement(text: string): string {
  return `"${text.replace(SPECIAL, '\\$&')}"`
}
