/** How much of what it finds a read answers: what the advice on a read that is too expensive depends on. */
import type { Get } from '../language/tree/ast.ts'
import { containsAggregate } from '../language/tree/functions.ts'

/**
 * - `all`: every row.
 * - `page`: so many rows at most.
 * - `aggregate`: something computed of all rows.
 */
export type Extent = 'all' | 'page' | 'aggregate'

export function extentOf({ purpose, fields, groupBy, distinct, limit }: Get): Extent {
  const isAggregate = fields.some(item => item.kind === 'field' && containsAggregate(item.expression))
  if (purpose === 'count' || isAggregate || groupBy.length > 0 || distinct !== null) return 'aggregate'
  return limit === null ? 'all' : 'page'
}
