/** How many of the rows it finds a read returns. Advice on reads that are too expensive depends on it. */
import type { Get } from '../language/tree/ast.ts'
import { containsAggregate } from '../language/tree/functions.ts'

/**
 * - `all`: every row.
 * - `page`: a limited number of rows.
 * - `aggregate`: a value computed over all rows.
 */
export type Extent = 'all' | 'page' | 'aggregate'

/** The extent of a read. */
export function extentOf({ purpose, fields, groupBy, distinct, limit }: Get): Extent {
  const isAggregate = fields.some(item => item.kind === 'field' && containsAggregate(item.expression))
  if (purpose === 'count' || isAggregate || groupBy.length > 0 || distinct !== null) return 'aggregate'
  return limit === null ? 'all' : 'page'
}
