/**
 * The plan key of a request (decision 0005): everything its statements depend on, without its values. If two
 * callers see the same schema and their requests have equal keys, the trees differ in values only, so the
 * plan compiled for one request serves the other.
 *
 * Parts are separated by NUL, which no request text can contain (see `decodePercent`). An optional part that
 * is missing leaves a marker, and a repeated part is preceded by its count. Apart from these markers, a key
 * is at most as long as the request.
 */
import type { BoundPath } from './parameters/column-path.ts'
import type { Condition } from './parameters/filters.ts'
import type { Limit } from './parameters/page.ts'
import type { SelectItem } from './parameters/select.ts'
import type { SortItem } from './parameters/sort.ts'
import type { AggregateTree } from './read/aggregate.ts'
import type { ExpandedRelation, RelatedRows } from './read/expand.ts'
import type { ExplainTree, ListTree, OneTree, ParentTree, Search, TotalTree } from './read/request.ts'
import { typesIn } from './rpc/bind-arguments.ts'
import type { CallTree } from './rpc/tree.ts'
import type { SetTree, WriteTarget, WriteTree } from './write/request.ts'

/** A request tree that can be compiled and has a plan key. */
export type RequestTree =
  | OneTree
  | ListTree
  | TotalTree
  | ParentTree
  | ExplainTree
  | AggregateTree
  | WriteTree
  | CallTree

/** Prints the plan key of a request tree. */
export function printPlanKey(tree: RequestTree): string {
  const { kind } = tree
  switch (kind) {
    case 'one':
      return `one ${tree.table.resource}\0${tree.version ?? ''}\0${printKnown(tree)}${printFields(tree)}`
    case 'list':
      return printList(tree)
    case 'explain':
      return `explain ${printList(tree.list)}`
    case 'total':
      return `total ${printRows(tree.list)}`
    case 'parent':
      return `parent ${tree.table.resource}`
    case 'aggregate':
      return printAggregate(tree)
    case 'insert': {
      const { table, rows, columns, upsert, key, returning } = tree
      const target = upsert === null ? '\0created' : `\0${upsert.existing}${printNames(upsert.target)}`
      const answered = printNames(key) + printSelect(returning)
      return `insert ${table.resource}\0${rows}${printNames(columns)}${target}${answered}`
    }
    case 'load': {
      const { table, columns, upsert } = tree
      const target = upsert === null ? '\0created' : `\0${upsert.existing}${printNames(upsert.target)}`
      return `load ${table.resource}${printNames(columns)}${target}`
    }
    case 'set':
    case 'delete': {
      const { table, target, returning } = tree
      const columns =
        kind === 'set'
          ? printNames(tree.columns) +
            printNames(tree.key) +
            printNames(tree.cleared ?? []) +
            printPartial(tree.partial)
          : ''
      const rows = printTarget(target)
      return `${kind} ${table.resource}${columns}${rows}${printSelect(returning)}`
    }
    case 'keys':
    case 'repeated':
      return `${kind} ${tree.table.resource}${printNames(tree.columns)}`
    case 'found': {
      const { answer } = tree
      const rows = 'select' in answer ? `\0rows${printFields(answer)}` : `\0columns${printNames(answer.columns)}`
      return `found ${tree.table.resource}${printNames(tree.by)}${rows}`
    }
    case 'existing children': {
      const { relation, key, columns, rowsMax } = tree
      const of = printNames(relation.targetColumns) + printNames(key) + printNames(columns)
      return `children ${tree.table.resource}${of}\0${rowsMax}`
    }
    case 'call':
      return printCall(tree)
  }
}

function printList(list: ListTree): string {
  const { sort, cursor, fetch, offset, stream, written } = list
  const page =
    (cursor === null ? '\0start' : `\0cursor ${cursor.values.map(value => (value === null ? 'n' : 'v')).join('')}`) +
    printLimit(fetch) +
    (offset === null ? '\0' : '\0offset')
  // The statement of a page also returns sort keys; the statement of a stream does not.
  const form = `${stream ? '\0stream' : '\0page'}${written.headers.csv ? '\0csv' : ''}${printKnown(list)}`
  return `list ${printRows(list)}${printFields(list)}${printSort(sort)}${page}${form}`
}

/** The part of the key about the selected rows, which is the same for all pages. */
function printRows({ table, parent, filter, search, distinct }: ListTree): string {
  const of = parent === null ? '' : `\0of ${parent.table.resource}\0${parent.child}`
  const one = distinct === null ? '\0all' : `\0distinct ${distinct}`
  return `${table.resource}${of}${printFilter(filter)}${printSearch(search)}${one}`
}

function printAggregate({ table, fn, column, groups, filter, search }: AggregateTree): string {
  const of = column === null ? '\0rows' : `\0of ${column}`
  const grouped =
    groups === null
      ? '\0whole'
      : printNames(groups.columns) +
        printSort(groups.sort) +
        printLimit(groups.limit) +
        (groups.offset === null ? '\0' : '\0offset')
  return `aggregate ${table.resource}\0${fn}${of}${grouped}${printFilter(filter)}${printSearch(search)}`
}

function printCall({ of, format, arguments: args, result }: CallTree): string {
  const { filter, select, sort, limit, offset } = result
  const rows =
    printFilter(filter) +
    printSelect(select) +
    printSort(sort) +
    printLimit(limit) +
    (offset === null ? '\0' : '\0offset')
  return `call ${of.resource}\0${of.identityArgs}\0${format}\0${args.structure}${printNames(typesIn(args))}${rows}`
}

// ---- parts ------------------------------------------------------------------------------------------------

function printTarget(target: WriteTarget): string {
  switch (target.kind) {
    case 'row':
      return `\0row${target.version === null ? '' : ` of a version\0${target.version.column}`}`
    case 'matched':
      return `\0matched${printNames(target.by)}`
    case 'rows':
      return printFilter(target.filter)
  }
}

function printPartial(partial: SetTree['partial']): string {
  if (partial === undefined) return ''
  return partial.kind === 'operations'
    ? `\0operations${printNames(partial.document)}`
    : `\0partial${printNames(partial.increments)}${printNames(partial.merged)}`
}

function printNames(names: readonly string[]): string {
  let text = `\0${names.length}`
  for (const name of names) text += `\0${name}`
  return text
}

/** The part of the key that describes the filters. */
export function printFilter(conditions: readonly Condition[]): string {
  let text = ''
  for (const condition of conditions) text += printCondition(condition)
  return `${text}\0where`
}

function printCondition(condition: Condition): string {
  if (condition.kind === 'group') {
    let items = ''
    for (const item of condition.items) items += printCondition(item)
    return `\0group ${condition.name}${items}\0end of group`
  }
  const { operator, negated, isFlagSet, path } = condition
  return `\0filter ${negated ? 'not.' : ''}${operator}${isFlagSet ? '' : '=false'}${printPath(path)}`
}

/** The keys of the steps are values, so only operators and positions are printed. */
function printPath({ column, steps }: BoundPath): string {
  if (steps.length === 0) return `\0${column}\0`
  return `\0${column}\0${steps.map(({ operator, index }) => (index ? `${operator}#` : operator)).join('')}`
}

function printKnown({ known }: Pick<OneTree, 'known'>): string {
  return known === undefined ? '' : `\0unless ${known.kind}\0`
}

function printFields({ select, expand }: Pick<OneTree, 'select' | 'expand'>): string {
  return printSelect(select) + (expand.length === 0 ? '\0' : printExpand(expand))
}

function printSelect(selected: readonly SelectItem[]): string {
  let text = `\0${selected.length}`
  for (const item of selected) {
    text +=
      item.kind === 'star' ? '\0*' : `\0as ${item.alias ?? ''}${item.alias === null ? '' : ':'}${printPath(item.path)}`
  }
  return text
}

function printExpand(expansions: readonly ExpandedRelation[]): string {
  let text = `\0${expansions.length}`
  for (const { alias, nested, relation, hint, select, rows, below } of expansions) {
    const named = alias === null ? '' : `${alias}:`
    text += `\0${named}\0${nested ? 'nested:' : ''}${relation}\0${hint === null ? '' : `!${hint}`}`
    text += (select === null ? '\0all' : printSelect(select)) + printRelated(rows) + printExpand(below)
  }
  return text
}

function printRelated(rows: RelatedRows | null): string {
  if (rows === null) return '\0'
  const { filter, sort, limit, offset } = rows
  return `\0rows${printFilter(filter)}${printSort(sort)}${printLimit(limit)}${offset === null ? '\0' : '\0offset'}`
}

function printSort(items: readonly SortItem[]): string {
  let text = `\0${items.length}`
  for (const { path, descending, nulls } of items) {
    text += `\0${descending ? 'desc' : 'asc'} ${nulls ?? ''}${printPath(path)}`
  }
  return text
}

function printSearch(search: Search | null): string {
  if (search === null) return '\0'
  return search.columns === null ? '\0search' : `\0search in${printNames(search.columns)}`
}

/** A limit that is part of the statement's text is part of the key; a parameter is not. */
function printLimit(limit: Limit | null): string {
  return limit === null ? '\0no limit' : typeof limit === 'number' ? `\0limit ${limit}` : '\0limit'
}
