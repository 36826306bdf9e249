/**
 * Prints reads: `get`, `count`, `export`, compounds and common tables. Clauses are printed in the order of
 * the SQL text, because parameters are numbered in that order.
 */

import type { Compound, Expression, ExpressionField, Field, Get, With } from '../tree/ast.ts'
import { mapChildren } from '../tree/children.ts'
import { LanguageError } from '../tree/error.ts'
import { containsAggregate, containsQuery, impliedGroups, isAggregate } from '../tree/functions.ts'
import { commonTableScopes, getScope, joinSources, type NameScope, withCommonTables } from '../tree/scope.ts'
import { LEVEL } from './precedence.ts'
import { structureOf } from './print-expression.ts'
import { printOrder, printWindow } from './print-function.ts'
import { constant, printCount } from './print-literal.ts'
import { printNest } from './print-nest.ts'
import { printConditions, printJoin, printSource, sourceConditions } from './print-source.ts'
import { countRepetitions, onceMore, type Printer, type Shared, type SharedText } from './printer.ts'
import { inDoubleQuotes, quoteIdentifier } from './quote.ts'

/** Prints a read at the top level, in a common table, or in parentheses. */
export function printQuery(get: Get, outer: NameScope, printer: Printer): string {
  refuseContradictions(get)
  const commonTables = printWith(get.with, outer, printer)
  const around = withCommonTables(outer, get.with)
  const groupBy = groupsOf(get)
  const sharedBefore = printer.shared
  printer.shared = sharedOf(get, groupBy, printer)
  if (get.groupBy.length === 0) {
    // These are printed in the select list and again in GROUP BY.
    for (const group of groupBy) if (containsQuery(group)) countRepetitions(printer, onceMore(group), group)
  }
  const scope = getScope(get, around)
  let text = `${commonTables}SELECT ${printDistinct(get, scope, printer)}${printProjection(get, scope, printer)}`
  text += ` FROM ${printSource(get.source, scope, printer)}`
  for (const [index, join] of get.joins.entries()) text += ` ${printJoin(join, index, get, scope, printer)}`
  text += printConditions('WHERE', conditionsOf(get), scope, printer)
  text += printGroups(groupBy, scope, printer)
  if (get.having !== null) {
    text += printConditions('HAVING', [withoutAliases(get.having, get.fields, printer)], scope, printer)
  }
  text += printWindows(get, scope, printer)
  for (const compound of get.compounds) text += ` ${printCompound(compound, around, printer)}`
  if (get.orderBy.length > 0) {
    text += ` ORDER BY ${printOrder(get.orderBy, item => printPositional(item, scope, printer))}`
  }
  if (get.limit !== null) text += ` LIMIT ${printCount(get.limit, 'limit', printer)}`
  if (get.offset !== null) text += ` OFFSET ${printCount(get.offset, 'offset', printer)}`
  if (get.lock !== null) {
    const wait = get.lock.wait === null ? '' : ` ${get.lock.wait.toUpperCase()}`
    text += ` FOR ${get.lock.strength.toUpperCase()}${wait}`
  }
  printer.shared = sharedBefore
  return text
}

/** The conditions of the sources, followed by those of the read. */
function conditionsOf(get: Get): readonly Expression[] {
  const conditions = sourceConditions([get.source, ...joinSources(get.joins)])
  return get.where === null ? conditions : [...conditions, get.where]
}

/**
 * `WITH a AS (…), b AS (…) `, or an empty text. It is printed before the statement, so that parameters are in
 * order.
 */
export function printWith(clause: With | null, outer: NameScope, printer: Printer): string {
  if (clause === null) return ''
  const scopes = commonTableScopes(outer, clause)
  const tables = clause.tables.map((table, index) => {
    const columns =
      table.columns.length > 0 ? ` (${table.columns.map(name => quoteIdentifier(name.text)).join(', ')})` : ''
    const statement = printer.commonTable(table.statement, scopes[index] ?? outer)
    // `WITH recursive AS` would be parsed as the keyword.
    const name = table.name.text === 'recursive' ? inDoubleQuotes(table.name.text) : quoteIdentifier(table.name.text)
    return `${name}${columns} AS (${statement})`
  })
  return `WITH ${clause.recursive ? 'RECURSIVE ' : ''}${tables.join(', ')} `
}

function printDistinct(get: Get, scope: NameScope, printer: Printer): string {
  if (get.distinct === null) return ''
  if (get.distinct.on.length === 0) return 'DISTINCT '
  return `DISTINCT ON (${get.distinct.on.map(item => printPositional(item, scope, printer)).join(', ')}) `
}

function printProjection(get: Get, scope: NameScope, printer: Printer): string {
  if (get.purpose === 'count') return 'COUNT(*)'
  return printFields(get, scope, printer)
}

/** Prints a select list: fields, then nests. An empty list of fields means all columns. */
export function printFields(
  { fields, nests, bare = false }: Pick<Get, 'fields' | 'nests' | 'bare'>,
  scope: NameScope,
  printer: Printer,
): string {
  const columns = fields.length === 0 && !bare ? ['*'] : fields.map(field => printField(field, scope, printer))
  return [...columns, ...nests.map(nest => printNest(nest, scope, printer))].join(', ')
}

/** Prints one column of a select list or of `RETURNING`. */
export function printField(field: Field, scope: NameScope, printer: Printer): string {
  if (field.kind === 'star') return field.of === null ? '*' : `${quoteIdentifier(field.of)}.*`
  const expression = printer.expression(field.expression, scope, LEVEL.any)
  return field.alias === null ? expression : `${expression} AS ${quoteIdentifier(field.alias)}`
}

/** ` GROUP BY a, b`, or an empty text. */
function printGroups(groups: readonly Expression[], scope: NameScope, printer: Printer): string {
  if (groups.length === 0) return ''
  // `(a, b)` alone would be a grouping set, not a row.
  const items = groups.map(
    item => `${item.kind === 'row' && item.items.length > 1 ? 'ROW' : ''}${printPositional(item, scope, printer)}`,
  )
  return ` GROUP BY ${items.join(', ')}`
}

/** ` WINDOW w AS (…)`, or an empty text. */
function printWindows(get: Get, scope: NameScope, printer: Printer): string {
  if (get.windows.length === 0) return ''
  const windows = get.windows.map(
    window => `${quoteIdentifier(window.name.text)} AS (${printWindow(window.body, scope, printer)})`,
  )
  return ` WINDOW ${windows.join(', ')}`
}

/**
 * Prints a part of a compound. PostgreSQL's precedence applies: `intersect` before `union` and `except`,
 * which are left-associative.
 */
function printCompound(compound: Compound, scope: NameScope, printer: Printer): string {
  const { query } = compound
  if (query.lock !== null)
    throw new LanguageError(
      '"for" locks the rows of a single get; it cannot follow union, intersect or except',
      query.lock.span,
    )
  const operator = `${compound.operator.toUpperCase()}${compound.all ? ' ALL' : ''}`
  const text = printer.query(query, scope)
  const plain =
    query.with === null &&
    query.compounds.length === 0 &&
    query.orderBy.length === 0 &&
    query.limit === null &&
    query.offset === null
  return `${operator} ${plain ? text : `(${text})`}`
}

/**
 * Prints an item of `order by` or `group by`. An integer there is a position in the select list, so it cannot
 * become a parameter.
 */
function printPositional(expression: Expression, scope: NameScope, printer: Printer): string {
  return expression.kind === 'literal' && expression.type === 'integer'
    ? constant(expression).text
    : printer.expression(expression, scope, LEVEL.any, 'none')
}

/** The groups as written, or those that a select list with aggregates implies. */
export function groupsOf(get: Get): readonly Expression[] {
  if (get.groupBy.length > 0 || get.purpose === 'count') return get.groupBy
  const fields = get.fields.filter((field): field is ExpressionField => field.kind === 'field')
  if (!fields.some(field => containsAggregate(field.expression))) return []
  const star = get.fields.find(field => field.kind === 'star')
  if (star !== undefined) {
    throw new LanguageError('* cannot be combined with an aggregate; name the columns to group by', star.span)
  }
  const groups = impliedGroups(fields)
  if (groups.length < 2) return groups
  const seen = new Set<string>()
  return groups.filter(group => {
    const structure = structureOf(group)
    return !seen.has(structure) && seen.add(structure)
  })
}

/** The expressions that must share parameters; see `Printer.shared`. */
function sharedOf(get: Get, groupBy: readonly Expression[], printer: Printer): Shared | null {
  const isComparing = groupBy.length > 0 || get.distinct !== null || get.having !== null
  if (printer.mode === 'keep' || !isComparing) return null
  const fields = get.fields.filter((field): field is ExpressionField => field.kind === 'field')
  const distinct =
    get.distinct === null ? [] : get.distinct.on.length > 0 ? get.distinct.on : fields.map(field => field.expression)
  const aliased = get.having === null ? [] : fields.filter(field => field.alias !== null).map(field => field.expression)
  const shared = new Map<Expression['kind'], Map<string, SharedText | null>>()
  for (const expression of [...groupBy, ...distinct, ...aliased]) {
    const alike = shared.get(expression.kind) ?? new Map<string, SharedText | null>()
    shared.set(expression.kind, alike.set(structureOf(expression), null))
  }
  return shared
}

/**
 * `having` with aliases of the select list replaced by their expressions, which PostgreSQL does not do.
 * Inside an aggregate, a name is a column, so `sum(total) as total having sum(total) > 5` works as expected.
 * Subqueries have their own names and are unchanged.
 */
export function withoutAliases(having: Expression, fields: readonly Field[], printer: Printer): Expression {
  if (having.kind === 'column' && having.path.length === 1) {
    const field = fields.find(candidate => candidate.kind === 'field' && candidate.alias === having.path[0])
    if (field?.kind !== 'field') return having
    countRepetitions(printer, onceMore(field.expression), having)
    return field.expression
  }
  if (having.kind === 'function' && isAggregate(having)) return having
  return mapChildren(having, { expression: part => withoutAliases(part, fields, printer), query: query => query })
}

function refuseContradictions(get: Get): void {
  if (get.purpose === 'count') refuseClausesOfCount(get)
  if (get.nests.length > 0) {
    if (get.distinct !== null && get.distinct.on.length === 0)
      throw new LanguageError('distinct cannot compare nested rows; use "distinct on (…)"', get.span)
    const compared = get.compounds.find(({ operator, all }) => operator !== 'union' || !all)
    if (compared !== undefined) {
      throw new LanguageError(`${compared.operator} cannot compare nested rows; only "union all" takes nests`, get.span)
    }
  }
  if (get.lock !== null) {
    const clause = clauseThatMixesRows(get)
    if (clause !== null) {
      throw new LanguageError(
        `"for ${get.lock.strength}" locks the rows of a table; it cannot follow ${clause}`,
        get.span,
      )
    }
  }
}

/** The clause because of which a result row is not a row of one table; null if absent. */
function clauseThatMixesRows(get: Get): string | null {
  if (get.compounds.length > 0) return 'a compound'
  if (get.purpose === 'count') return 'count'
  if (get.distinct !== null) return 'distinct'
  if (get.groupBy.length > 0) return 'group by'
  if (get.having !== null) return 'having'
  if (get.windows.length > 0) return 'window'
  return get.fields.some(field => field.kind === 'field' && containsAggregate(field.expression)) ? 'an aggregate' : null
}

function refuseClausesOfCount(get: Get): void {
  const clauses: readonly (readonly [string, boolean])[] = [
    ['distinct', get.distinct !== null],
    ['nest', get.nests.length > 0],
    ['fields', get.fields.length > 0],
    ['group by', get.groupBy.length > 0],
    ['having', get.having !== null],
    ['window', get.windows.length > 0],
    ['union, intersect or except', get.compounds.length > 0],
    ['order by', get.orderBy.length > 0],
    ['limit', get.limit !== null],
    ['offset', get.offset !== null],
    ['for', get.lock !== null],
  ]
  const [clause] = clauses.find(([, present]) => present) ?? []
  if (clause !== undefined) {
    throw new LanguageError(
      `count takes no ${clause}; it is one number: count the rows of (get …) alias instead`,
      get.span,
    )
  }
}
