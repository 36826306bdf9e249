/** The parameters that several operations of a table share, prepared once. */
import { isOrdered, isSearchable } from '../access/types.ts'
import type { Column } from '../catalog/model.ts'
import type { SharedFilters } from './filters.ts'
import {
  type OperationParameter,
  parameterRef,
  type ReferenceList,
  type ReferenceObject,
  referenceList,
} from './model.ts'

/** Components that several operations share. */
export interface SharedReferences {
  /** Parameters of everything that is read like a list. */
  readonly list: ReferenceList
  /** Parameters of a list of related rows, without the filters on single columns. */
  readonly children: ReferenceList
  /** Parameters that select the rows of an aggregate, without the filters on single columns. */
  readonly aggregated: ReferenceList
  readonly filters: ReferenceList
  readonly expand: readonly ReferenceObject[]
  /** Parameters of a plan, which is requested manually: without a filter for each column. */
  readonly explain: readonly OperationParameter[]
}

/** `columns`: readable and distinct ones. `expands`: whether the table has relations. */
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
  const filters = shared.references(columns)
  const others = [parameterRef('filters')]
  return {
    list: referenceList([], page, referenceList(search, filters)),
    children: referenceList(others, page),
    aggregated: referenceList([...search, ...others]),
    ...{ filters, expand },
    explain: [...shown, ...[...order, 'limit', 'offset'].map(parameterRef), ...search, ...others],
  }
}
