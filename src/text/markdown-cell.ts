/** Prints a text as a cell of a table in Markdown. A `<` in code is text already. */
export function markdownCell(text: string): string {
  return text.replaceAll('|', '\\|').replace(/`[^`]*`|</g, part => (part === '<' ? '&lt;' : part))
}
