/** Builds the columns and conditions of one relation, resolving the names of its columns. */
import { baseOf, isJson, isText } from '../access/types.ts'
import type { Catalog, Column, DatabaseFunction, Table } from '../catalog/model.ts'
import type { ComparisonOperator, Expression, Field, Order } from '../language/tree/ast.ts'
import {
  allOf,
  and,
  call,
  cast,
  column,
  compare,
  inSet,
  isDistinct,
  isNull,
  jsonStep,
  like,
  literal,
  not,
  or,
  order,
  position,
  repeatableField,
  star,
  text,
  wholeRow,
} from '../language/tree/build.ts'
import { unreachable } from '../unreachable.ts'
import type { BoundCondition, BoundField, BoundFieldPath, BoundOrder, BoundTest, ValueNumber } from './bind.ts'
import { castType } from './cast-type.ts'
import { noAggregates, notImplemented, undefinedColumn, undefinedOperator } from './errors.ts'
import { comparedSet, comparedValue, isRepresented, shownValue } from './representations.ts'
import { suggestedColumns } from './similar-name.ts'

/** The columns of a table, or of the result of a function. `name` is the alias of its rows. */
export interface ColumnSource extends Pick<Table, 'name' | 'columnByName'> {
  /**
   * Reports whether the caller is allowed to learn that a column exists. If omitted, every column is allowed.
   */
  readonly isKnown?: (name: string) => boolean
  /** The table of the rows, and the function that computes a column from one. */
  /** The casts of domains; omitted for rows that do not come from a table. */
  readonly casts?: Pick<Catalog, 'representations'>
  readonly computed?: { readonly table: Table; readonly find: (name: string) => DatabaseFunction | null }
}

/** The condition that a filter on an embedded relation means; null if the name is not embedded. */
export type EmbedCondition = (path: BoundFieldPath, test: BoundTest) => Expression | null

/** The condition of all filters; null for none. */
export function buildWhere(
  of: ColumnSource,
  conditions: readonly BoundCondition[],
  embedded: EmbedCondition = () => null,
): Expression | null {
  return allOf(conditions.map(condition => buildCondition(of, condition, embedded)))
}

/** The columns of a result. */
export function buildSelected(of: ColumnSource, fields: readonly BoundField[]): readonly Field[] {
  return fields.map(selected => buildField(of, selected))
}

function buildField(of: ColumnSource, selected: BoundField): Field {
  const { path, alias, aggregate } = selected
  if (aggregate !== null) throw noAggregates()
  if (isStar(path)) return star(of.name)
  return repeatableField(selectedValue(of, selected), alias ?? path.name)
}

/** Reports whether a member of `select` is `*`. */
export function isStar({ name, steps }: BoundFieldPath): boolean {
  return name === '*' && steps.length === 0
}

/** The value of a member of `select`, before its aggregate. */
export function selectedValue(of: ColumnSource, { path, cast: type }: BoundField): Expression {
  const value = pathOf(of, path)
  const found = path.steps.length === 0 ? of.columnByName.get(path.name) : undefined
  const shown = found === undefined || of.casts === undefined ? value : shownValue(value, found.type, of.casts)
  return castToTypeName(shown, type)
}

/** The value cast to the type with this name; unchanged for null. */
export function castToTypeName(value: Expression, type: string | null): Expression {
  return type === null ? value : { ...cast(value, 'text'), type: castType(type) }
}

/** The terms of an order. */
export function buildOrders(of: ColumnSource, terms: readonly BoundOrder[]): readonly Order[] {
  return terms.map(term => buildOrder(of, term))
}

function buildOrder(of: ColumnSource, { relation, path, descending, nulls }: BoundOrder): Order {
  if (relation !== null) throw notImplemented('Order by the columns of an embedded relation')
  return order(pathOf(of, path), { descending, nulls })
}

// ---- columns ----------------------------------------------------------------------------------------------

function columnOf(of: ColumnSource, name: string): { readonly type: Column['type']; readonly value: Expression } {
  const found = of.columnByName.get(name)
  if (found !== undefined) return { type: found.type, value: column(of.name, name) }
  const computed = of.computed?.find(name) ?? null
  if (of.computed !== undefined && computed?.result.kind === 'scalar') {
    const value = call(computed.name, [wholeRow(of.name, of.computed.table)], { schema: computed.schema })
    return { type: computed.result.column.type, value }
  }
  const { isKnown = () => true } = of
  throw undefinedColumn(name, of.name, suggestedColumns(name, [...of.columnByName.keys()].filter(isKnown)))
}

/** The value of a column or of a part of its JSON. */
export function pathOf(of: ColumnSource, { name, steps }: BoundFieldPath): Expression {
  const { type, value: whole } = columnOf(of, name)
  if (steps.length === 0) return whole
  const start: Expression = isJson(type) ? whole : call('to_jsonb', [whole])
  return steps.reduce<Expression>((of, { operator, isPosition, key }, index) => {
    const isIntoText = steps[index - 1]?.operator === '->>'
    if (isIntoText) throw undefinedOperator('text', operator, isPosition ? 'integer' : 'unknown')
    return jsonStep(operator, of, cast(position(key), isPosition ? 'int4' : 'text'))
  }, start)
}

// ---- conditions -------------------------------------------------------------------------------------------

function buildCondition(of: ColumnSource, condition: BoundCondition, embedded: EmbedCondition): Expression {
  const inner =
    condition.kind === 'filter'
      ? (embedded(condition.path, condition.test) ?? buildTest(of, condition.path, condition.test))
      : joined(
          condition.operator,
          condition.items.map(item => buildCondition(of, item, embedded)),
        )
  if (!condition.negated) return inner
  // PostgreSQL makes a join of `EXISTS`, but not of its double negation.
  return inner.kind === 'not' ? inner.operand : not(inner)
}

function joined(operator: 'and' | 'or', items: readonly Expression[]): Expression {
  const [only] = items
  if (items.length === 1 && only !== undefined) return only
  return operator === 'and' ? and(...items) : or(...items)
}

function buildTest(of: ColumnSource, path: BoundFieldPath, test: BoundTest): Expression {
  const operand = pathOf(of, path)
  const { casts } = of
  const type = path.steps.length === 0 ? of.columnByName.get(path.name)?.type : undefined
  const given = (value: ValueNumber) =>
    casts === undefined || type === undefined ? position(value) : comparedValue(value, type, casts)
  const compared = (operator: Operator, value: ValueNumber) => {
    if (operator !== 'like' && operator !== 'ilike') return given(value)
    // A pattern is not a value of the domain.
    if (casts !== undefined && type !== undefined && isRepresented(type, casts) && !isText(type)) {
      throw undefinedOperator(nameIn(of, type), operator === 'like' ? '~~' : '~~*', 'unknown')
    }
    return position(value)
  }
  switch (test.kind) {
    case 'compared':
      return comparison(test.operator, operand, compared(test.operator, test.value))
    case 'quantified': {
      if (test.values.length === 0) return literal('boolean', test.of === 'any' ? 'false' : 'true')
      const items = test.values.map(value => comparison(test.operator, operand, compared(test.operator, value)))
      return joined(test.of === 'any' ? 'or' : 'and', items)
    }
    case 'search': {
      const { type } = columnOf(of, path.name)
      const isVector = path.steps.length === 0 && baseOf(type).name === 'tsvector'
      const language = test.language === null ? [] : [text(test.language)]
      const document = isVector ? operand : call('to_tsvector', [...language, operand])
      const words = call(SEARCHES[test.operator], [...language, cast(position(test.value), 'text')])
      return compare('matches', document, words)
    }
    case 'in':
      return inSet(
        operand,
        casts === undefined || type === undefined ? position(test.value) : comparedSet(test.value, type, casts),
      )
    case 'isdistinct':
      return isDistinct(operand, given(test.value))
    case 'is':
      return buildIs(operand, test.what)
    default:
      return unreachable(test)
  }
}

/** The name of a type, with its schema if that is not the one of the table. */
function nameIn({ computed }: ColumnSource, { schema, name }: Column['type']): string {
  return computed?.table.schema === schema ? name : `${schema}.${name}`
}

function buildIs(operand: Expression, what: Extract<BoundTest, { kind: 'is' }>['what']): Expression {
  switch (what) {
    case 'null':
      return isNull(operand)
    case 'not_null':
      return isNull(operand, 'negated')
    // For a boolean, `is.unknown` means `is null`.
    case 'unknown':
      return isNull(operand)
    case 'true':
    case 'false':
      return { ...isNull(operand), what }
  }
}

const SEARCHES = {
  fts: 'to_tsquery',
  plfts: 'plainto_tsquery',
  phfts: 'phraseto_tsquery',
  wfts: 'websearch_to_tsquery',
} as const

type Operator = Extract<BoundTest, { kind: 'compared' }>['operator']

const COMPARISONS: Readonly<Record<Exclude<Operator, 'like' | 'ilike'>, ComparisonOperator>> = {
  ...{ eq: '=', neq: '<>', gt: '>', gte: '>=', lt: '<', lte: '<=' },
  ...{ match: 'regex', imatch: '~*', cs: '@>', cd: '<@', ov: '&&' },
  ...{ sl: '<<', sr: '>>', nxr: '&<', nxl: '&>', adj: '-|-' },
} as const

function comparison(operator: Operator, left: Expression, right: Expression): Expression {
  if (operator === 'like' || operator === 'ilike') return like(operator, left, right)
  return compare(COMPARISONS[operator], left, right)
}
