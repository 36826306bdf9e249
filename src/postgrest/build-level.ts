/**
 * Builds the tree of a read: the rows of a relation with the relations embedded in them, at any depth.
 *
 * An embedded relation is a nested read. The columns of a spread relation are scalar subqueries, so they can
 * be grouped by and aggregated where they appear. `!inner` and tests for the presence of a relation are
 * conditions with `exists`.
 */
import { columnsEqual } from '../access/relations.ts'
import { isKnownColumn, readableColumns, type View } from '../access/rights.ts'
import type { DatabaseFunction, Table } from '../catalog/model.ts'
import type { Expression, Field, FunctionSource, Get, Nest, Order } from '../language/tree/ast.ts'
import { NOWHERE } from '../language/tree/ast.ts'
import {
  allOf,
  and,
  call,
  cast,
  column,
  exists,
  field,
  type GetParts,
  get,
  getFrom,
  integer,
  nest,
  not,
  order,
  position,
  repeatableField,
  star,
  subquery,
  tableName,
  text,
  wholeRow,
} from '../language/tree/build.ts'
import { type Aggregated, aggregateOf, merged, partialsOf } from './aggregates.ts'
import type { BoundEmbed, BoundFieldPath, BoundLevel, BoundOrder, BoundTest } from './bind.ts'
import {
  buildWhere,
  type ColumnSource,
  castToTypeName,
  type EmbedCondition,
  isStar,
  pathOf,
  selectedValue,
} from './build-read.ts'
import { assertCastable } from './cast-type.ts'
import { Computed } from './computed.ts'
import { badEmbedFilter, noAggregates, noRelatedOrder, notEmbedded } from './errors.ts'
import { isToOne, type Relationship } from './relationship.ts'
import { findRelationship } from './relationships.ts'
import { hasRepresentedColumns, shownValue } from './representations.ts'
import type { IsExposed } from './rpc/resolve.ts'

/** Everything that the tree of a read depends on in addition to its level. */
export interface LevelContext {
  readonly view: View
  readonly aggregatesEnabled: boolean
  /** Decides which functions can compute columns and relationships. */
  readonly isExposed: IsExposed
  /** True if the rows are arguments of an aggregate, which receives embedded relations as `jsonb`. */
  readonly isFolded?: boolean
}

/** The columns of a table, and the functions that compute columns from its rows. */
export function tableSource(table: Table, alias: string, { view, isExposed }: ComputingContext): ColumnSource {
  const known = new Computed(view.catalog, isExposed)
  const computed = { table, find: (name: string) => known.column(table, name) }
  const rights = view.rights.of(table)
  const isKnown = (name: string) => isKnownColumn(name, rights)
  return { name: alias, columnByName: table.columnByName, isKnown, casts: view.catalog, computed }
}

type ComputingContext = Pick<LevelContext, 'view' | 'isExposed'>

/** The rows of a level. */
export function buildRows(table: Table, level: BoundLevel, context: LevelContext): Get {
  const { fields, bare, nests, where, groupBy, orderBy, limit, offset } = new LevelBuilder(context).rootOf(table, level)
  return get({ table, alias: table.name, fields, bare, nests, where, groupBy, orderBy, limit, offset })
}

/** The clauses of a read of rows of a table from another source, such as a function. */
export function buildClauses(table: Table, alias: string, level: BoundLevel, context: LevelContext): Clauses {
  return new LevelBuilder(context).rootOf(table, level, alias)
}

/** Counts the rows without a range. */
export function buildCount(table: Table, level: BoundLevel, context: LevelContext): Get {
  const { where } = new LevelBuilder(context).rootOf(table, level)
  return get({ table, alias: table.name, where, fields: [COUNT] })
}

/** Counts the rows without a range, up to `max`. */
export function buildBoundedCount(table: Table, level: BoundLevel, context: LevelContext, max: number): Get {
  const query = { ...buildPlanned(table, level, context), limit: integer(String(max)) }
  return getFrom({ kind: 'query source', query, alias: ROWS, span: NOWHERE }, { fields: [COUNT] })
}

/** A read of one constant for each row, from which PostgreSQL estimates their number. */
export function buildPlanned(table: Table, level: BoundLevel, context: LevelContext): Get {
  const { where } = new LevelBuilder(context).rootOf(table, level)
  return get({ table, alias: table.name, where, fields: [field(integer('1'), 'one')] })
}

const COUNT = field(call('count', [], { star: true }), 'count')

/** The names of the columns of a result. */
export function resultNames(table: Table, level: BoundLevel, context: LevelContext): readonly string[] {
  const { fields, nests } = new LevelBuilder(context).rootOf(table, level)
  return [
    ...fields.flatMap(item => {
      if (item.kind === 'star') return readableColumns(table, context.view.rights).map(({ name }) => name)
      return item.alias ?? (item.expression.kind === 'column' ? (item.expression.path.at(-1) ?? '') : '')
    }),
    ...nests.map(({ name }) => name ?? ''),
  ]
}

/** The clauses of a read. */
export type Clauses = Pick<Get, 'fields' | 'nests' | 'where' | 'groupBy' | 'orderBy' | 'limit' | 'offset'> & {
  readonly bare: boolean
}

/** A member of the rows of a level: a value, or an aggregate of values. */
type Output = { readonly name: string } & (
  | { readonly kind: 'star' }
  | { readonly kind: 'value'; readonly value: Expression }
  | { readonly kind: 'nest'; readonly nest: Nest }
  | { readonly kind: 'aggregate'; readonly aggregate: Aggregated }
)

/** A relation in a statement; its name is its alias there. */
interface Source extends ColumnSource {
  readonly table: Table
  readonly alias: string
}

/** An embedded relation, found in the catalog. */
interface Embedded {
  /** The alias of the row that it is embedded in. */
  readonly parent: string
  readonly embed: BoundEmbed
  readonly relationship: Relationship
  readonly source: Source
  readonly depth: number
  /** The condition for the rows of the row around them; null for those that a function returns. */
  readonly on: Expression | null
  /** The function that returns the rows; null for those of a table. */
  readonly from: FunctionSource | null
}

class LevelBuilder {
  readonly #computed: Computed
  readonly #context: LevelContext
  #junctions = 0

  constructor(context: LevelContext) {
    this.#context = context
    this.#computed = new Computed(context.view.catalog, context.isExposed)
  }

  #source(table: Table, alias: string): Source {
    return { table, alias, ...tableSource(table, alias, this.#context) }
  }

  rootOf(table: Table, level: BoundLevel, alias: string = table.name): Clauses {
    assertCastable(level, this.#context.view)
    return this.#clauses(level, this.#source(table, alias), 0)
  }

  #clauses(level: BoundLevel, source: Source, depth: number): Clauses {
    const embedded = level.embedded.map(embed => this.#embedded(embed, source, depth + 1))
    const isGrouped = hasAggregates(level) || level.fields.some(selected => countOf(selected, source.table) !== null)
    const outputs = this.#outputs(level, source, embedded, isGrouped)
    const fields = outputs.flatMap((output): readonly Field[] => {
      if (output.kind === 'nest') return []
      return [output.kind === 'star' ? star(source.alias) : repeatableField(valueIn(output), output.name)]
    })
    const nests = outputs.flatMap(output => (output.kind === 'nest' ? [output.nest] : []))
    return {
      ...{ fields, nests, bare: fields.length === 0, where: this.#where(level, source, embedded) },
      groupBy: isGrouped ? groupsOf(outputs) : [],
      orderBy: level.order.map(term => this.#order(term, source, embedded)),
      limit: level.limit === null ? null : integer(String(level.limit)),
      offset: level.offset === null ? null : position(level.offset),
    }
  }

  #embedded(embed: BoundEmbed, parent: Source, depth: number): Embedded {
    const relationship = findRelationship(parent.table, embed, this.#context.view, this.#computed)
    const source = this.#source(relationship.to, `${relationship.to.name}_${depth}`)
    const { computed } = relationship
    const from = computed === undefined ? null : callOf(computed, parent, source.alias)
    const on = from === null ? this.#on(relationship, parent.alias, source.alias) : null
    return { parent: parent.alias, embed, relationship, source, depth, on, from }
  }

  #on({ columns, toColumns, junction }: Relationship, parent: string, alias: string): Expression {
    if (junction === null) return columnsEqual(alias, toColumns, parent, columns)
    const via = this.#viaOf(junction)
    const where = and(
      columnsEqual(via, junction.from, parent, columns),
      columnsEqual(via, junction.to, alias, toColumns),
    )
    return exists(get({ table: junction.table, alias: via, where }))
  }

  /** A new alias of a junction. */
  #viaOf({ table }: NonNullable<Relationship['junction']>): string {
    this.#junctions += 1
    return `${table.name}_j${this.#junctions}`
  }

  // ---- members --------------------------------------------------------------------------------------------

  /** `isGrouped`: the values are grouped by, so JSON is `jsonb`. */
  #outputs(level: BoundLevel, source: Source, embedded: readonly Embedded[], isGrouped: boolean): readonly Output[] {
    const own = level.fields.flatMap((selected): readonly Output[] => {
      const { path, alias, cast: type } = selected
      const aggregate = selected.aggregate ?? countOf(selected, source.table)
      if (aggregate !== null) {
        if (selected.aggregate !== null && !this.#context.aggregatesEnabled) throw noAggregates()
        const value = isStar(path) || selected.aggregate === null ? integer('1') : selectedValue(source, selected)
        const made = aggregateOf(aggregate, value)
        return [{ kind: 'aggregate', name: alias ?? aggregate.name, aggregate: made }]
      }
      if (!isStar(path))
        return [{ kind: 'value', name: alias ?? path.name, value: selectedValue(source, { ...selected, cast: type }) }]
      const isPlain = !isGrouped && !hasRepresentedColumns(source.table, this.#context.view.catalog)
      return isPlain ? [{ kind: 'star', name: '*' }] : this.#columns(source)
    })
    return [...own, ...embedded.filter(({ embed }) => !isEmpty(embed)).flatMap(item => this.#member(item, isGrouped))]
  }

  #columns({ table, alias }: Source): readonly Output[] {
    const { catalog, rights } = this.#context.view
    return readableColumns(table, rights).map(({ name, type }) => ({
      ...({ kind: 'value', name, value: shownValue(column(alias, name), type, catalog) } as const),
    }))
  }

  #member(item: Embedded, isGrouped: boolean): readonly Output[] {
    if (item.embed.isSpread) return this.#spread(item, isGrouped)
    const name = keyOf(item.embed)
    const binary = isGrouped || this.#context.isFolded === true
    return [{ kind: 'nest', name, nest: this.#nest(item, name, binary) }]
  }

  #nest({ embed, relationship, source, depth, on, from }: Embedded, name: string, binary: boolean): Nest {
    const many = !isToOne(relationship)
    const { groupBy, limit, offset, ...clauses } = this.#clauses(embed, source, depth)
    return nest({
      ...{ many, table: source.table, alias: source.alias, name, on, from, ...clauses, binary, repeats: true },
      ...(groupBy.length === 0 ? {} : { groupBy }),
      ...{ limit: many ? limit : limitOfOne(relationship), offset },
    })
  }

  /** The members of a spread relation, each as a subquery that is a value of the row around it. */
  #spread(item: Embedded, isGrouped: boolean): readonly Output[] {
    const { embed, relationship, source, depth } = item
    const inner = embed.embedded.map(below => this.#embedded(below, source, depth + 1))
    const outputs = this.#outputs(embed, source, inner, true).flatMap(output =>
      output.kind === 'star' ? this.#columns(source) : [output],
    )
    const where = allOf([item.on, this.#where(embed, source, inner)])
    const rows = (value: Pick<Clauses, 'fields' | 'nests' | 'bare'>): Get => rowsOf(item, { where, ...value })
    const ordered = (value: Pick<Clauses, 'fields' | 'nests' | 'bare'>): Get => ({
      ...rows(value),
      orderBy: embed.order.map(term => this.#order(term, source, inner)),
      limit: embed.limit === null ? null : integer(String(embed.limit)),
      offset: embed.offset === null ? null : position(embed.offset),
    })
    const wrap = isToOne(relationship) ? (value: Value) => subquery(rows(value)) : undefined
    return outputs.flatMap((output): readonly Output[] => {
      const { name } = output
      switch (output.kind) {
        case 'star':
          return []
        case 'aggregate': {
          const { aggregate } = output
          const inside = (value: Expression) => ({ fields: [field(value, VALUE)], nests: [], bare: false })
          const hoisted =
            wrap === undefined
              ? merged(
                  aggregate,
                  partialsOf(aggregate, (of, value) => subquery(folded(ordered(inside(value)), of))),
                )
              : { ...aggregate, values: aggregate.values.map(value => wrap(inside(value))) }
          return [{ kind: 'aggregate', name, aggregate: hoisted }]
        }
        default: {
          const value =
            output.kind === 'nest'
              ? { fields: [], nests: [{ ...output.nest, name: VALUE, binary: isGrouped }], bare: true }
              : { fields: [field(output.value, VALUE)], nests: [], bare: false }
          return [{ kind: 'value', name, value: wrap === undefined ? arrayOf(ordered(value), isGrouped) : wrap(value) }]
        }
      }
    })
  }

  // ---- conditions and order -------------------------------------------------------------------------------

  #where(level: BoundLevel, source: Source, embedded: readonly Embedded[]): Expression | null {
    const present: EmbedCondition = (path, test) => this.#presence(path, test, source, embedded)
    const required = embedded.filter(({ embed }) => embed.join === 'inner').map(item => this.#exists(item))
    return allOf([buildWhere(source, level.where, present), ...required])
  }

  /** `clients=is.null` and `clients=not.is.null` test whether a row has an embedded one. */
  #presence(
    { name, steps }: BoundFieldPath,
    test: BoundTest,
    columns: ColumnSource,
    embedded: readonly Embedded[],
  ): Expression | null {
    const item = steps.length > 0 ? undefined : embedded.find(({ embed }) => keyOf(embed) === name)
    if (item === undefined) return null
    if (test.kind !== 'is' || (test.what !== 'null' && test.what !== 'not_null')) {
      // A relation can be named by the column of its key.
      if (columns.columnByName.has(name)) return null
      throw badEmbedFilter(name)
    }
    const found = this.#exists(item)
    return test.what === 'null' ? not(found) : found
  }

  /**
   * True if a related row exists. The related table is inside of its junction: PostgreSQL can only join the
   * three tables if each `exists` refers to the query around it.
   */
  #exists(item: Embedded): Expression {
    const { parent, embed, relationship, source, on, depth } = item
    const inner = embed.embedded.map(below => this.#embedded(below, source, depth + 1))
    const where = this.#where(embed, source, inner)
    const { columns, toColumns, junction } = relationship
    if (junction === null) return exists(rowsOf(item, { where: allOf([on, where]) }))
    const via = this.#viaOf(junction)
    const isOfJunction = columnsEqual(via, junction.to, source.alias, toColumns)
    const related = exists(rowsOf(item, { where: allOf([isOfJunction, where]) }))
    const isOfParent = columnsEqual(via, junction.from, parent, columns)
    return exists(get({ table: junction.table, alias: via, where: and(isOfParent, related) }))
  }

  #order(term: BoundOrder, source: Source, embedded: readonly Embedded[]): Order {
    const { relation, path, descending, nulls } = term
    if (relation === null) return order(pathOf(source, path), { descending, nulls })
    const item = embedded.find(({ embed }) => keyOf(embed) === relation)
    if (item === undefined) throw notEmbedded(relation)
    if (!isToOne(item.relationship)) throw noRelatedOrder(source.table.name, relation)
    const inner = item.embed.embedded.map(below => this.#embedded(below, item.source, item.depth + 1))
    const where = allOf([item.on, this.#where(item.embed, item.source, inner)])
    // A column, or the alias of one among the members of the relation.
    const aliased = item.embed.fields.find(selected => selected.alias === path.name && selected.aggregate === null)
    const value =
      item.source.columnByName.has(path.name) || aliased === undefined
        ? pathOf(item.source, path)
        : selectedValue(item.source, aliased)
    return order(subquery(rowsOf(item, { where, fields: [field(value, VALUE)] })), { descending, nulls })
  }
}

/** The read of the rows of an embedded relation. */
function rowsOf(
  { from, source: { table, alias }, relationship }: Embedded,
  parts: Omit<GetParts, 'table' | 'alias'>,
): Get {
  if (from === null) return get({ table, alias, ...parts })
  return getFrom(from, isToOne(relationship) ? { ...parts, limit: limitOfOne(relationship) } : parts)
}

/** `ROWS 1` is only an estimate: a function can return more rows. */
function limitOfOne({ computed }: Relationship): Get['limit'] {
  return computed?.returnsSet === true ? integer('1') : null
}

/** The call of a function with the row of `parent`. */
function callOf(of: DatabaseFunction, { alias: row, table }: Source, alias: string): FunctionSource {
  const argument = {
    kind: 'argument',
    name: null,
    value: wholeRow(row, table),
    variadic: false,
    span: NOWHERE,
  } as const
  return {
    ...{ kind: 'function source', function: tableName(of), identity: of.identityArgs, arguments: [argument] },
    ...{ alias, columns: [], span: NOWHERE },
  }
}

/** The member that a subquery returns: one field, or one nest. */
type Value = Pick<Clauses, 'fields' | 'nests' | 'bare'>

/** The name of the only column of a subquery. */
const VALUE = 'value'

/** The alias of the rows that are folded into one value. */
const ROWS = 'rows_of'

function keyOf({ alias, name }: BoundEmbed): string {
  return alias ?? name
}

/** Reports whether the rows of a level are grouped: by its aggregates, or by those of a spread relation. */
function hasAggregates({ fields, embedded }: BoundLevel): boolean {
  return (
    fields.some(({ aggregate }) => aggregate !== null) || embedded.some(embed => embed.isSpread && hasAggregates(embed))
  )
}

/** Reports whether a relation is embedded for its conditions only, as in `clients!inner()`. */
function isEmpty({ fields, embedded }: BoundLevel): boolean {
  return fields.length === 0 && embedded.every(isEmpty)
}

/** `select=count` counts the rows of a table without a column of that name. */
function countOf({ path, cast: type }: BoundLevel['fields'][number], { columnByName }: Table) {
  const isCount = path.name === 'count' && path.steps.length === 0 && type === null
  return isCount && !columnByName.has('count') ? ({ name: 'count', cast: null } as const) : null
}

function valueIn(output: Exclude<Output, { kind: 'star' | 'nest' }>): Expression {
  if (output.kind === 'value') return output.value
  const { aggregate } = output
  return castToTypeName(aggregate.combine(aggregate.values), aggregate.cast)
}

/** Groups by position: all members except aggregates. Nests follow the fields. */
function groupsOf(outputs: readonly Output[]): readonly Expression[] {
  const printed = [...outputs.filter(({ kind }) => kind !== 'nest'), ...outputs.filter(({ kind }) => kind === 'nest')]
  return printed.flatMap(({ kind }, index) => (kind === 'aggregate' ? [] : [integer(String(index + 1))]))
}

/** An aggregate function over the only column of the rows. */
function folded(rows: Get, name: string): Get {
  return getFrom(
    { kind: 'query source', query: rows, alias: ROWS, span: NOWHERE },
    { fields: [field(call(name, [column(ROWS, VALUE)]), VALUE)] },
  )
}

/** The values of the only column as an array. */
function arrayOf(rows: Get, binary: boolean): Expression {
  const [of, type] = binary ? ['jsonb_agg', 'jsonb'] : ['json_agg', 'json']
  return call('coalesce', [subquery(folded(rows, of)), cast(text('[]'), type)])
}
