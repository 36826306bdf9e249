/** Tables of a page of the documentation, and its texts with other words in them: tests ask what they say. */

/** The cells of every row of the tables below this heading, without the rows that name the columns. */
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

/** `text` with another word in each of these places; what is not there cannot be replaced. */
export function withOthers(text: string, others: readonly (readonly [shown: string, other: string])[]): string {
  return others.reduce((before, [shown, other]) => {
    if (!before.includes(shown)) throw new Error(`there is no ${shown}`)
    return before.replaceAll(shown, other)
  }, text)
}
