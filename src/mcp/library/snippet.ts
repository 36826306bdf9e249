/** A little of a text, around the first word that a search has found in it. */

const SNIPPET_MAX = 240
const BEFORE_MAX = 60

/** The part of a text that contains the search terms, or its beginning. */
export function snippetOf(markdown: string, terms: readonly string[]): string {
  // The title repeats the heading, and fences have no content.
  const text = markdown
    .replace(/^#{1,6} .*\n?/, '')
    .replace(/^(```|~~~).*$/gm, '')
    .replace(/\s+/g, ' ')
    .trim()
  const lower = text.toLowerCase()
  const places = terms.map(term => lower.indexOf(term)).filter(at => at >= 0)
  const first = places.length === 0 ? 0 : Math.min(...places)
  const start = first <= BEFORE_MAX ? 0 : text.indexOf(' ', first - BEFORE_MAX) + 1
  const part = text.slice(start, start + SNIPPET_MAX).replace(/[\ud800-\udbff]$/, '')
  return `${start > 0 ? '… ' : ''}${part}${start + SNIPPET_MAX < text.length ? ' …' : ''}`
}
