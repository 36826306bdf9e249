/** A read of a table as immutable data, and its query string. */
import { columnText, conditionParameters, type Group, type ParameterPair, type Where } from './conditions.ts'

export interface Read {
  readonly table: string
  readonly select: readonly string[]
  readonly where: readonly (Where<never> | Group<never>)[]
  readonly expand: readonly Expansion[]
  readonly sort: readonly string[]
  readonly limit: number | null
  readonly offset: number | null
  readonly distinct: string | null
  readonly search: readonly ParameterPair[]
}

export interface Expansion {
  /** As written: `lines:nested:order_items`. */
  readonly relation: string
  readonly of: Read
}

/** A read of all columns and rows of a table. */
export function emptyRead(table: string): Read {
  return {
    ...{ table, select: [], where: [], expand: [], sort: [], limit: null, offset: null, distinct: null, search: [] },
  }
}

export function readParameters(read: Read): readonly ParameterPair[] {
  return [
    ...(read.select.length === 0 ? [] : [['select', read.select.map(selectText).join(',')] as const]),
    ...(read.expand.length === 0 ? [] : [['expand', read.expand.map(expansionText).join(',')] as const]),
    ...(read.distinct === null ? [] : [['distinct', columnText(read.distinct)] as const]),
    ...read.search,
    ...rowsParameters(read, ''),
    ...read.expand.flatMap(expansion => expansionParameters(expansion, '')),
  ]
}

/** The filters alone, for subscriptions and writes. */
export function filterParameters(read: Read): readonly ParameterPair[] {
  return [...conditionParameters(read.where), ...read.search]
}

export function queryString(parameters: readonly ParameterPair[]): string {
  return parameters.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join('&')
}

function rowsParameters(read: Read, prefix: string): readonly ParameterPair[] {
  return [
    ...conditionParameters(read.where, prefix),
    ...(read.sort.length === 0 ? [] : [[`${prefix}sort`, read.sort.map(sortText).join(',')] as const]),
    ...(read.limit === null ? [] : [[`${prefix}limit`, String(read.limit)] as const]),
    ...(read.offset === null ? [] : [[`${prefix}offset`, String(read.offset)] as const]),
  ]
}

/** `alias:column`, in which either name can contain punctuation. */
function selectText(item: string): string {
  const [, alias, column = item] = /^([^:"]+):(.+)$/s.exec(item) ?? []
  return alias === undefined ? columnText(column) : `${columnText(alias)}:${columnText(column)}`
}

function sortText(item: string): string {
  const [, minus = '', column = '', direction = ''] = /^(-?)(.*?)(:(?:asc|desc)[.a-z]*)?$/s.exec(item) ?? []
  return minus + columnText(column) + direction
}

function expansionText({ relation, of }: Expansion): string {
  const columns = of.select.map(selectText)
  const relations = of.expand.map(expansionText)
  if (columns.length + relations.length === 0) return relation
  return `${relation}(${[...(columns.length === 0 ? ['*'] : columns), ...relations].join(',')})`
}

function expansionParameters({ relation, of }: Expansion, prefix: string): readonly ParameterPair[] {
  const own = `${prefix}${columnText(memberOf(relation))}.`
  return [...rowsParameters(of, own), ...of.expand.flatMap(below => expansionParameters(below, own))]
}

/** The member that an expansion adds to the row: its alias, or its relation. */
function memberOf(relation: string): string {
  const [, alias = ''] = /^([^:"]+):/.exec(relation) ?? []
  const rest = relation.slice(relation.lastIndexOf(':') + 1)
  const name = alias !== '' && alias !== 'nested' ? alias : rest.split('!')[0]
  return (name ?? '').replace(/^"(.*)"$/s, '$1').replaceAll('""', '"')
}
