/** The table of the matrix in a documentation page. */
import { readFile, writeFile } from 'node:fs/promises'

const BEGIN = '<!-- matrix -->'
const END = '<!-- /matrix -->'

/**
 * Inserts rows into the table between the markers of a page. Versions that were not tested this time keep
 * their rows.
 * @param rows By product and major version, such as `PostgreSQL 14`, in order; undefined if not tested.
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
