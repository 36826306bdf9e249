/**
 * Builds the nested tables of `expand=customers(id),nested:items.product,approver:users!approved_by`, with
 * the parameters of their rows (docs/reference/reading.md#related-rows).
 */

import { childJoin } from '../../access/relations.ts'
import type { View } from '../../access/rights.ts'
import type { Table } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import type { Nest, Order, Parameter } from '../../language/tree/ast.ts'
import { impliedColumn, integer, nest, order } from '../../language/tree/build.ts'
import { shorten } from '../../text/shorten.ts'
import { toPath } from '../parameters/column-path.ts'
import { asRelation, keyOfRelation, type WrittenRelation } from '../parameters/expand.ts'
import {
  buildFilter,
  type Condition,
  type FilterCount,
  type FilterLimits,
  parseFilters,
} from '../parameters/filters.ts'
import { effectiveLimit, type Limit, limitCount, limitOf, parseCount } from '../parameters/page.ts'
import { RELATED_PARAMETERS } from '../parameters/related.ts'
import { partitionParameters, type RelatedParameter } from '../parameters/request-parameters.ts'
import { buildFields, type SelectItem } from '../parameters/select.ts'
import { buildOrder, parseSort, plainColumn, type SortItem } from '../parameters/sort.ts'
import type { Values } from '../values.ts'
import { joinQualified } from './qualified.ts'
import { isRelation, otherTable, resolveRelation } from './relation.ts'

/** Limits on `expand`. */
export interface ExpandLimits {
  /** Limit on the levels below the requested table (`max_expand_depth`). */
  readonly maxExpandDepth: number
  /** Limit on the rows of one nested array (`max_result_rows`); 0 means no limit. */
  readonly maxResultRows: number
}

/** One relation of `expand` with the rows and columns that the request asks for. */
export interface ExpandedRelation {
  readonly alias: string | null
  readonly nested: boolean
  readonly relation: string
  readonly hint: string | null
  /** The columns; null for all. */
  readonly select: readonly SelectItem[] | null
  /** Which rows; null if the request has no parameters about the relation. */
  readonly rows: RelatedRows | null
  readonly below: readonly ExpandedRelation[]
}

/** The parameters about the rows of one relation. */
export interface RelatedRows {
  /** The relation as in the names of these parameters. */
  readonly name: string
  readonly filter: readonly Condition[]
  readonly sort: readonly SortItem[]
  readonly limit: Limit | null
  readonly offset: Parameter | null
}

/** Limits on the rows of relations and on their filters. */
export interface RelatedLimits extends FilterLimits {
  readonly maxResultRows: number
}

const NO_RELATIONS: readonly ExpandedRelation[] = []

/**
 * Adds the parameters of the relations to the parsed `expand`. The values are added in the order of the
 * relations, so parameters in another order have the same plan key.
 * @throws {GatewayError} `PARSE_ERROR` for an invalid parameter or an exceeded limit.
 */
export function withParameters(
  relations: readonly WrittenRelation[],
  related: readonly RelatedParameter[],
  values: Values,
  limits: RelatedLimits,
  counted: FilterCount,
): readonly ExpandedRelation[] {
  if (relations.length === 0) return NO_RELATIONS
  const rowsAt = new Map<string, RelatedParameter[]>()
  for (const parameter of related) {
    const key = parameter.path.join('\0')
    rowsAt.set(key, [...(rowsAt.get(key) ?? []), parameter])
  }

  function bind(written: WrittenRelation, above: readonly string[]): ExpandedRelation {
    const { alias, nested, relation, hint } = written
    const path = [...above, keyOfRelation(written)]
    const plain: SelectItem[] = []
    const meant: ExpandedRelation[] = []
    for (const item of written.select ?? []) {
      const other = asRelation(item)
      // A name with parameters of its own must be a relation.
      if (other !== null && isMentioned([...path, keyOfRelation(other)])) meant.push(bind(other, path))
      else plain.push(item.kind === 'star' ? item : { ...item, path: toPath(item.path, values) })
    }
    const select = written.select === null ? null : plain
    const below = [...written.below.map(inner => bind(inner, path)), ...meant]
    const parameters = rowsAt.get(path.join('\0'))
    const rows = parameters === undefined ? null : parseRows(path.join('.'), parameters)
    return { alias, nested, relation, hint, select, rows, below }
  }

  function isMentioned(path: readonly string[]): boolean {
    return related.some(parameter => path.every((name, index) => parameter.path[index] === name))
  }

  function parseRows(name: string, parameters: readonly RelatedParameter[]): RelatedRows {
    const own = parameters.map(({ parameter }) => parameter)
    const { named, others } = partitionParameters(own, RELATED_PARAMETERS)
    const filter = parseFilters(others, values, limits, counted)
    const sort = parseSort(named.get('sort'), values, `${name}.sort`)
    const wanted = parseCount(named.get('limit'), `${name}.limit`)
    const offset = parseCount(named.get('offset'), `${name}.offset`)
    const size = effectiveLimit(wanted, limits.maxResultRows, limits.maxResultRows)
    return {
      ...{ name, filter, sort, limit: wanted === undefined ? null : limitOf(size, size, values) },
      offset: offset === undefined ? null : values.add(String(offset)),
    }
  }

  return relations.map(relation => bind(relation, []))
}

/**
 * Builds the nested tables of a row of `table` with their join conditions.
 * @throws {GatewayError} `PARSE_ERROR` for an unknown or ambiguous relation, a repeated name or too many
 * levels.
 */
export function expandNests(
  expansions: readonly ExpandedRelation[],
  table: Table,
  alias: string,
  view: View,
  limits: ExpandLimits,
): readonly Nest[] {
  return new NestBuilder(view, limits).nests(expansions, table, alias, 1)
}

/**
 * Checks a level; the relations of the requested table are level 1.
 * @throws {GatewayError} `PARSE_ERROR` if it is too deep.
 */
export function assertExpandDepth(level: number, maxDepth: number): void {
  if (level <= maxDepth) return
  throw new GatewayError('PARSE_ERROR', `expand goes deeper than ${maxDepth} levels (max_expand_depth)`)
}

class NestBuilder {
  readonly #view: View
  readonly #limits: ExpandLimits
  /** SQL aliases are numbered, so that two levels of a self-referencing table never collide. */
  #aliases = 0

  constructor(view: View, limits: ExpandLimits) {
    this.#view = view
    this.#limits = limits
  }

  nests(expansions: readonly ExpandedRelation[], table: Table, alias: string, level: number): readonly Nest[] {
    if (expansions.length > 0) assertExpandDepth(level, this.#limits.maxExpandDepth)
    const names = new Set<string>()
    return joinQualified(expansions, table).map(expansion => {
      const name = keyOfRelation(expansion)
      if (names.has(name)) {
        throw new GatewayError(
          'PARSE_ERROR',
          `expand has "${name}" twice; give one of them another name: alias:${name}`,
        )
      }
      names.add(name)
      return this.#nest(expansion, name, table, alias, level)
    })
  }

  #nest(expansion: ExpandedRelation, name: string, table: Table, parent: string, level: number): Nest {
    const relation = resolveRelation(table, expansion, this.#view)
    const target = otherTable(this.#view.catalog, relation)
    const many = relation.cardinality === 'many'
    const { rows } = expansion
    if (!many && rows !== null) assertOneRow(rows)
    const { select, below } = withRelations(expansion, target)
    this.#aliases += 1
    const alias = `t${this.#aliases}`
    return nest({
      many,
      table: { schema: target.schema, name: target.name },
      alias,
      name,
      on: childJoin(relation, parent, alias, this.#view.catalog, `j${this.#aliases}`),
      fields: buildFields(select ?? [], alias),
      bare: select?.length === 0,
      nests: this.nests(below, target, alias, level + 1),
      where: rows === null ? null : buildFilter(rows.filter, alias),
      orderBy: many ? sortKeys(rows?.sort ?? [], target, alias) : [],
      limit: many ? (limitCount(rows?.limit ?? null) ?? this.#rowLimit()) : null,
      offset: rows?.offset ?? null,
    })
  }

  /** `max_result_rows` also limits nested arrays. */
  #rowLimit() {
    const { maxResultRows } = this.#limits
    return maxResultRows > 0 ? integer(String(maxResultRows)) : null
  }
}

function assertOneRow({ name, sort, limit, offset }: RelatedRows): void {
  if (sort.length === 0 && limit === null && offset === null) return
  throw new GatewayError(
    'PARSE_ERROR',
    `"${shorten(name)}" is one row; sort, limit and offset apply to arrays, which are expanded with nested:`,
  )
}

/** The requested order of an array, followed by the missing columns of the primary key. */
function sortKeys(sort: readonly SortItem[], table: Table, alias: string): readonly Order[] {
  const sorted = new Set(sort.map(plainColumn))
  const appended = table.primaryKey.filter(key => !sorted.has(key)).map(key => order(impliedColumn(alias, key)))
  return [...sort.map(item => buildOrder(item, alias)), ...appended]
}

/** Treats a name in parentheses as a relation if the table has such a relation and no such column. */
function withRelations({ select, below }: ExpandedRelation, table: Table): Pick<ExpandedRelation, 'select' | 'below'> {
  if (select === null) return { select, below }
  const columns: SelectItem[] = []
  const relations: ExpandedRelation[] = []
  for (const item of select) {
    const name = item.kind === 'column' && item.path.steps.length === 0 ? item.path.column : null
    if (item.kind === 'star' || name === null || table.columnByName.has(name) || !isRelation(table, name)) {
      columns.push(item)
    } else {
      const { alias } = item
      relations.push({ alias, nested: false, relation: name, hint: null, select: null, rows: null, below: [] })
    }
  }
  return { select: columns, below: [...below, ...relations] }
}
