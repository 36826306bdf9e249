/** The table of the matrix in a page of the documentation. */
import { readFile, writeFile } from 'node:fs/promises'

const BEGIN = '<!-- matrix -->'
const END = '<!-- /matrix -->'

/**
 * Puts rows into the table between the markers of a page. Versions that were not tested this time keep the rows that they have.
 * @param rows By product and major version, such as `PostgreSQL 14`, in order; undefined for what was not tested.
 */
export function withRows(page: string, head: string, rows: ReadonlyMap<string, string | undefined>): string {
  const [before, inner, ...rest] = page.split(BEGIN)
  const [table, after, ...more] = inner?.split(END) ?? []
  if (before === undefined || table === undefined || after === undefined || rest.length > 0 || more.length > 0) {
    throw new Error(`the page must have ${BEGIN} and, after it, ${END}, each once`)
  }
  const known = new Map(table.split('\n').map(line => [/^\| (\w+ \d+)/.exec(line)?.[1], `${line}\n`]))
  const lines = [...rows].map(([version, row]) => row ?? known.get(version) ?? '')
  return `${before}${BEGIN}\n${head}${lines.join('')}${END}${after}`
}

export async function publishRows(
  path: string,
  head: string,
  rows: ReadonlyMap<string, string | undefined>,
): Promise<void> {
  await writeFile(path, withRows(await readFile(path, 'utf8'), head, rows))
}
