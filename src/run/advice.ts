/** What a caller can do whose read is too expensive: the `suggestions` in `details` (docs/reference/reading.md#cost-guard). */

import type { Extent } from '../compile/extent.ts'
import type { Mention } from '../compile/mentions.ts'
import { quoteIdentifier } from '../language/sql/quote.ts'
import type { Index } from './indexes.ts'

export interface Expensive {
  readonly extent: Extent
  readonly mentions: readonly Mention[]
  /** Of the tables that are mentioned. */
  readonly indexes: readonly Index[]
}

/** At least one sentence, those that help most first. */
export function adviseOn({ extent, mentions, indexes }: Expensive): readonly string[] {
  const filtered = mentions.some(({ use }) => use === 'filter')
  // The order of groups is made after all rows were read.
  const helpful = extent === 'aggregate' ? mentions.filter(({ use }) => use === 'filter') : mentions
  return [
    filtered
      ? 'narrow the filters, or add one: fewer rows would have to be read'
      : 'add a filter: nothing restricts the rows that have to be read',
    ...helpful.flatMap(mention => adviseOnColumn(mention, mentions, indexes)),
    ...(extent === 'all' ? ['add a limit: all rows are asked for'] : []),
    ...(extent === 'aggregate' ? ['an aggregate, a count or a distinct reads every row that the filters leave'] : []),
  ]
}

function adviseOnColumn(mention: Mention, mentions: readonly Mention[], indexes: readonly Index[]): readonly string[] {
  const { use, schema, table, column } = mention
  const fitting = indexes.filter(
    index =>
      index.schema === schema &&
      index.table === table &&
      index.columns[0] === column &&
      (use === 'filter' || index.ordered),
  )
  if (fitting.length === 0) {
    return [`an index on ${target(mention, [column])} would help to ${use === 'filter' ? 'filter' : 'sort'} by it`]
  }
  // Of further columns of an index only those are told that the caller has named.
  const known = (name: string | null) =>
    mentions.some(other => other.schema === schema && other.table === table && other.column === name)
  return fitting.map(index => {
    const columns = index.columns.map(name => (known(name) ? name : null))
    const on = quoteIdentifier(column)
    const benefit =
      use === 'filter' ? `a narrower filter on ${on} can use it` : `with a filter on ${on} it gives the order as well`
    return `the index ${quoteIdentifier(index.name)} on ${target(mention, columns)} exists: ${benefit}`
  })
}

/** `orders(status, placed_at)`. */
function target({ schema, table }: Mention, columns: readonly (string | null)[]): string {
  const place = schema === 'public' ? '' : `${quoteIdentifier(schema)}.`
  const keys = columns.map(column => (column === null ? '…' : quoteIdentifier(column)))
  return `${place}${quoteIdentifier(table)}(${keys.join(', ')})`
}
