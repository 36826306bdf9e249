/**
 * Advice for a read that was refused as too expensive: the `suggestions` in `details`
 * (docs/reference/reading.md#cost-guard).
 */

import type { Extent } from '../compile/extent.ts'
import type { Mention } from '../compile/mentions.ts'
import { quoteIdentifier } from '../language/sql/quote.ts'
import type { TableIndex } from './indexes.ts'

/** A read that is too expensive. */
export interface ExpensiveRead {
  readonly extent: Extent
  readonly mentions: readonly Mention[]
  /** Indexes of the tables mentioned. */
  readonly indexes: readonly TableIndex[]
}

/** Suggestions, most helpful first; at least one. */
export function suggestionsFor({ extent, mentions, indexes }: ExpensiveRead): readonly string[] {
  const filtered = mentions.some(({ use }) => use === 'filter')
  // Groups are sorted after all rows have been read, so an index for sorting does not help.
  const helpful = extent === 'aggregate' ? mentions.filter(({ use }) => use === 'filter') : mentions
  return [
    filtered
      ? 'narrow the filters, or add one, so that fewer rows have to be read'
      : 'add a filter: every row has to be read',
    ...helpful.flatMap(mention => adviseOnColumn(mention, mentions, indexes)),
    ...(extent === 'all' ? ['add a limit: all rows are requested'] : []),
    ...(extent === 'aggregate' ? ['an aggregate, a count or a distinct reads every row that matches the filters'] : []),
  ]
}

function adviseOnColumn(
  mention: Mention,
  mentions: readonly Mention[],
  indexes: readonly TableIndex[],
): readonly string[] {
  const { use, schema, table, column } = mention
  const fitting = indexes.filter(
    index =>
      index.schema === schema &&
      index.table === table &&
      index.columns[0] === column &&
      (use === 'filter' || index.ordered),
  )
  if (fitting.length === 0) {
    return [
      `an index on ${target(mention, [column])} would help to ` +
        `${use === 'filter' ? 'filter' : 'sort'} by this column`,
    ]
  }
  // Only columns that the caller has named are revealed.
  const known = (name: string | null) =>
    mentions.some(other => other.schema === schema && other.table === table && other.column === name)
  return fitting.map(index => {
    const columns = index.columns.map(name => (known(name) ? name : null))
    const on = quoteIdentifier(column)
    const benefit =
      use === 'filter'
        ? `a narrower filter on ${on} can use it`
        : `with a filter on ${on} it also provides the sort order`
    return `the index ${quoteIdentifier(index.name)} on ${target(mention, columns)} exists: ${benefit}`
  })
}

/** `orders(status, placed_at)`. */
function target({ schema, table }: Mention, columns: readonly (string | null)[]): string {
  const place = schema === 'public' ? '' : `${quoteIdentifier(schema)}.`
  const keys = columns.map(column => (column === null ? '…' : quoteIdentifier(column)))
  return `${place}${quoteIdentifier(table)}(${keys.join(', ')})`
}
