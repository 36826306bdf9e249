/** The parameters that several operations of a table refer to, put together once. */
import { isOrdered, isSearchable } from '../../access/types.ts'
import type { Column } from '../../catalog/model.ts'
import type { SharedFilters } from './filters.ts'
import { parameterRef, type Reference, type ReferenceList, referenceList } from './model.ts'

export interface SharedReferences {
  /** Of everything that is read as a list is. */
  readonly list: ReferenceList
  /** What chooses rows: search and filters. */
  readonly conditions: ReferenceList
  readonly filters: ReferenceList
  readonly expand: readonly Reference[]
}

/** `columns`: those that may be read. `expands`: whether the table has relations. */
export function sharedReferences(
  key: string,
  columns: readonly Column[],
  expands: boolean,
  shared: SharedFilters,
): SharedReferences {
  const filters = shared.references(columns)
  const search = columns.some(({ type }) => isSearchable(type)) ? ['search', `search-${key}`] : []
  const order = columns.some(({ type }) => isOrdered(type)) ? [`sort-${key}`, `distinct-${key}`] : []
  const conditions = referenceList(search.map(parameterRef), filters)
  const expand = expands ? [parameterRef(`expand-${key}`)] : []
  const page = [...order, 'limit', 'offset', 'cursor', 'stream'].map(parameterRef)
  const list = referenceList([parameterRef(`select-${key}`), ...expand, ...page], conditions)
  return { list, conditions, filters, expand }
}
