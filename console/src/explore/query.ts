/** The query string of a table, as the controls of its screen change it. Each function returns a new one. */

import { printJson, type Row } from '../json.ts'
import { quoted, type Table } from '../schema.ts'

/** Parameters that are not filters on a column of the table. */
const RESERVED = ['select', 'expand', 'sort', 'limit', 'offset', 'cursor', 'search', 'search_columns', 'distinct']

export interface Filter {
  readonly name: string
  readonly value: string
}

export function filtersOf(query: URLSearchParams): readonly Filter[] {
  return [...query].filter(([name]) => !RESERVED.includes(name)).map(([name, value]) => ({ name, value }))
}

/** Removes the page: a list with other rows or another order begins at the first page. */
function changed(query: URLSearchParams, change: (copy: URLSearchParams) => void): URLSearchParams {
  const copy = new URLSearchParams(query)
  copy.delete('cursor')
  copy.delete('offset')
  change(copy)
  return copy
}

export function withFilter(query: URLSearchParams, { name, value }: Filter): URLSearchParams {
  return changed(query, copy => copy.append(name, value))
}

export function withoutFilter(query: URLSearchParams, { name, value }: Filter): URLSearchParams {
  return changed(query, copy => copy.delete(name, value))
}

export type Direction = 'ascending' | 'descending' | 'none'

/** The direction in which a column is sorted; only the first column of `sort` counts. */
export function directionOf(query: URLSearchParams, column: string): Direction {
  const [first = ''] = splitNames(query.get('sort') ?? '')
  if (first === column) return 'ascending'
  return first === `-${column}` ? 'descending' : 'none'
}

/** Sorts by the column: ascending, then descending, then not at all. */
export function withSort(query: URLSearchParams, column: string): URLSearchParams {
  return changed(query, copy => {
    const direction = directionOf(query, column)
    if (direction === 'descending') copy.delete('sort')
    else copy.set('sort', direction === 'ascending' ? `-${column}` : column)
  })
}

export function expansionsOf(query: URLSearchParams): readonly string[] {
  return splitNames(query.get('expand') ?? '')
}

export function withExpansion(query: URLSearchParams, notation: string): URLSearchParams {
  const present = expansionsOf(query)
  const next = present.includes(notation) ? present.filter(one => one !== notation) : [...present, notation]
  return changed(query, copy => {
    if (next.length === 0) copy.delete('expand')
    else copy.set('expand', next.join(','))
  })
}

export function withCursor(query: URLSearchParams, cursor: string | null): URLSearchParams {
  return changed(query, copy => {
    if (cursor !== null) copy.set('cursor', cursor)
  })
}

/**
 * The query of one row of a page, with the columns, related rows and filters of the page. Null if the table
 * has no key, or the row does not contain it.
 */
export function queryOfRow(query: URLSearchParams, { primary_key: key }: Pick<Table, 'primary_key'>, row: Row) {
  const values = key.map(name => row[name] ?? null)
  if (key.length === 0 || values.includes(null)) return null
  return changed(query, copy => {
    for (const name of ['sort', 'limit', 'search', 'search_columns', 'distinct']) copy.delete(name)
    for (const [at, value] of values.entries())
      copy.append(`${quoted(key[at] ?? '')}.eq`, typeof value === 'string' ? value : printJson(value))
  })
}

/** Splits at commas outside double quotes and parentheses. */
function splitNames(text: string): readonly string[] {
  const parts: string[] = []
  let [start, depth, isQuoted] = [0, 0, false]
  for (let at = 0; at < text.length; at++) {
    const sign = text[at]
    if (sign === '"') isQuoted = !isQuoted
    else if (isQuoted) continue
    else if (sign === '(') depth += 1
    else if (sign === ')') depth -= 1
    else if (sign === ',' && depth === 0) {
      parts.push(text.slice(start, at))
      start = at + 1
    }
  }
  return [...parts, text.slice(start)].filter(part => part !== '')
}
