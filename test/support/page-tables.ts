/**
 * Tables of a documentation page, and its texts with placeholders replaced, for tests that execute a page.
 */

/** The cells of every row of the tables below this heading, without header rows. */
export function rowsBelow(page: string, heading: string): readonly (readonly string[])[] {
  const [, section] = page.split(`\n${heading}\n`)
  if (section === undefined) throw new Error(`the page has no ${heading}`)
  const level = /^#+ /.exec(heading)?.[0] ?? ''
  const [own = ''] = section.split(`\n${level}`)
  const tables = own
    .trim()
    .split(/\n\n+/)
    .filter(part => /^\|.*\n\|[-| :]+\n/.test(part))
  return tables.flatMap(table =>
    table
      .split('\n')
      .slice(2)
      .filter(line => line.startsWith('|'))
      .map(line =>
        line
          .slice(1, line.lastIndexOf('|'))
          .split(/(?<!\\)\|/)
          .map(cell => cell.trim().replaceAll('\\|', '|')),
      ),
  )
}

/** `text` with each placeholder replaced. Throws if a placeholder does not occur. */
export function withOthers(text: string, others: readonly (readonly [shown: string, other: string])[]): string {
  return others.reduce((before, [shown, other]) => {
    if (!before.includes(shown)) throw new Error(`the text does not contain ${shown}`)
    return before.replaceAll(shown, other)
  }, text)
}
