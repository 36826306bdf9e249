/** Tables in Markdown whose cells hold one line of text. */

export function markdownTable(headings: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  const line = (row: readonly string[]) => `| ${row.map(cell => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(headings), `|${headings.map(() => '---').join('|')}|`, ...rows.map(line)]
}

/** The rows below the headings of the first table in `text`; none without a table. */
export function readMarkdownTable(text: string): readonly (readonly string[])[] {
  const lines = text.split('\n').filter(line => line.startsWith('|'))
  return lines.slice(2).map(line =>
    line
      .slice(2, -2)
      .split(' | ')
      .map(cell => cell.replaceAll('\\|', '|')),
  )
}
