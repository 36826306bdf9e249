/** The parameters that several operations of a table refer to, put together once. */
import { isOrdered, isSearchable } from '../access/types.ts'
import type { Column } from '../catalog/model.ts'
import type { SharedFilters } from './filters.ts'
import { parameterRef, type Reference, type ReferenceList, referenceList, type Taken } from './model.ts'

export interface SharedReferences {
  /** Of everything that is read as a list is. */
  readonly list: ReferenceList
  /** Of a list under the path of another table's row. */
  readonly children: ReferenceList
  /** What chooses rows: search and filters. */
  readonly conditions: ReferenceList
  readonly filters: ReferenceList
  readonly expand: readonly Reference[]
  /** Of a plan, which people ask for by hand: without a filter for each column. */
  readonly explain: readonly Taken[]
}

/** `columns`: those that may be read and are told apart. `expands`: whether the table has relations. */
export function sharedReferences(
  key: string,
  columns: readonly Column[],
  expands: boolean,
  shared: SharedFilters,
): SharedReferences {
  const searches = columns.some(({ type }) => isSearchable(type))
  const search = searches ? ['search', 'search_columns'].map(parameterRef) : []
  const order = columns.some(({ type }) => isOrdered(type)) ? [`sort-${key}`, 'distinct'] : []
  const expand = expands ? [parameterRef(`expand-${key}`)] : []
  const shown = [parameterRef(`select-${key}`), ...expand]
  const page = referenceList([...shown, ...[...order, 'limit', 'offset', 'cursor', 'stream'].map(parameterRef)])
  const filters = shared.references(columns, 'table')
  const conditions = referenceList(search, filters)
  return {
    list: referenceList([], page, conditions),
    children: referenceList([], page, shared.references(columns, 'row')),
    ...{ conditions, filters, expand },
    explain: [...shown, ...[...order, 'limit', 'offset'].map(parameterRef), ...search, parameterRef('filters')],
  }
}
