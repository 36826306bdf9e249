/** Formats the explanation of a query as text; empty parts are omitted. */
import type { StatementExplanation } from '../language/hints/explain.ts'

const LABEL_WIDTH = 10

export function explanationLines(explanation: StatementExplanation): string {
  const { action, table, columns, joins, filters, ordering, limit, offset, notes } = explanation
  const lines = [
    ...labelled('action', [action]),
    ...labelled('table', table === null ? [] : [table]),
    ...labelled('columns', columns.length === 0 ? [] : [columns.join(', ')]),
    ...labelled(
      'joins',
      joins.map(({ type, table: joined, alias, on }) =>
        [type, joined ?? '(query)', ...(alias === null ? [] : ['as', alias]), ...(on === null ? [] : ['on', on])].join(
          ' ',
        ),
      ),
    ),
    ...labelled('filters', filters),
    ...labelled(
      'ordering',
      ordering.map(({ by, direction, nulls }) => `${by} ${direction} nulls ${nulls}`),
    ),
    ...labelled('limit', limit === null ? [] : [String(limit)]),
    ...labelled('offset', offset === null ? [] : [String(offset)]),
    ...labelled('notes', notes),
  ]
  return lines.join('\n')
}

/** Prints the label only before the first line. */
function labelled(label: string, lines: readonly string[]): readonly string[] {
  return lines.map((line, index) => `${(index === 0 ? label : '').padEnd(LABEL_WIDTH)}${line}`)
}
