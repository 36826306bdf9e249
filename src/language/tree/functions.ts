/**
 * Properties of PostgreSQL's functions that the printer needs: which are aggregates, and which have a special
 * spelling or syntax.
 */

import type { Expression, ExpressionField, FunctionCall } from './ast.ts'
import { childrenOf } from './children.ts'

/** Aggregates (PostgreSQL manual, 9.21), except those in `AGGREGATES_IF_ORDERED`. */
const AGGREGATES = words(`
  any_value array_agg avg bit_and bit_or bit_xor bool_and bool_or corr count covar_pop covar_samp every
  json_agg json_agg_strict json_object_agg json_object_agg_strict json_object_agg_unique
  json_object_agg_unique_strict jsonb_agg jsonb_agg_strict jsonb_object_agg jsonb_object_agg_strict
  jsonb_object_agg_unique jsonb_object_agg_unique_strict max min percentile_cont percentile_disc range_agg
  range_intersect_agg regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy
  regr_syy stddev stddev_pop stddev_samp string_agg sum var_pop var_samp variance xmlagg
`)

/**
 * Ordered-set aggregates. They need an order, which SQL writes after the arguments (`WITHIN GROUP`;
 * PostgreSQL manual, 9.21).
 */
const ORDERED_SET_AGGREGATES = words('percentile_cont percentile_disc')

/**
 * Aggregates of `WITHIN GROUP` only if called with an order. `mode` is then an ordered-set aggregate; the
 * others are hypothetical-set aggregates, which return the rank that a row of the arguments would have.
 * Without an order, the call is a window function or a user-defined function.
 */
const AGGREGATES_IF_ORDERED = words('mode rank dense_rank percent_rank cume_dist')

/** Functions of the SQL standard, and `now`. They are printed in upper case, however the text spells them. */
const UPPER_CASE = words(`
  abs array_agg avg cardinality ceil ceiling coalesce corr count cume_dist dense_rank every exp extract
  first_value floor greatest grouping lag last_value lead least length ln lower max min mod normalize now
  nth_value ntile nullif overlay percent_rank percentile_cont percentile_disc power rank round row_number
  sqrt stddev_pop stddev_samp substring sum trim upper var_pop var_samp
`)

/**
 * Keywords that PostgreSQL's grammar treats as function names (`func_expr_common_subexpr`), with their
 * numbers of arguments.
 */
export const SYNTAX_FUNCTIONS: ReadonlyMap<string, { readonly min: number; readonly max: number }> = new Map([
  ['coalesce', { min: 1, max: Number.POSITIVE_INFINITY }],
  ['greatest', { min: 1, max: Number.POSITIVE_INFINITY }],
  ['least', { min: 1, max: Number.POSITIVE_INFINITY }],
  ['grouping', { min: 1, max: Number.POSITIVE_INFINITY }],
  ['trim', { min: 1, max: Number.POSITIVE_INFINITY }],
  ['nullif', { min: 2, max: 2 }],
  ['normalize', { min: 1, max: 1 }],
  ['substring', { min: 0, max: Number.POSITIVE_INFINITY }],
  ['overlay', { min: 0, max: Number.POSITIVE_INFINITY }],
])

/** Functions that are called without parentheses (PostgreSQL manual, 9.9.5 and 9.27). */
export const VALUE_FUNCTIONS: ReadonlySet<string> = words(`
  current_catalog current_date current_role current_schema current_time current_timestamp current_user
  localtime localtimestamp session_user system_user user
`)

/**
 * Functions with arguments of any type (`"any"`). PostgreSQL cannot infer the type of a parameter there, so
 * it needs a cast.
 */
export const UNTYPED_ARGUMENTS: ReadonlySet<string> = words(`
  concat concat_ws count format json_build_array json_build_object json_object_agg json_object_agg_strict
  json_object_agg_unique json_object_agg_unique_strict jsonb_build_array jsonb_build_object jsonb_object_agg
  jsonb_object_agg_strict jsonb_object_agg_unique jsonb_object_agg_unique_strict num_nonnulls num_nulls
  pg_typeof
`)

/** The fields that `extract` accepts (PostgreSQL manual, 9.9.1). */
export const EXTRACT_FIELDS: ReadonlySet<string> = words(`
  century day decade dow doy epoch hour isodow isoyear julian microseconds millennium milliseconds minute
  month quarter second timezone timezone_hour timezone_minute week year
`)

/** Reports whether a name, in lower case, is a built-in aggregate of PostgreSQL. */
export function isKnownAggregate(name: string): boolean {
  return AGGREGATES.has(name)
}

/** The function's name in upper case if it is printed that way, otherwise null. */
export function upperCased(call: FunctionCall): string | null {
  const name = call.name.toLowerCase()
  return call.schema === null && UPPER_CASE.has(name) ? name.toUpperCase() : null
}

/** Reports whether the order of the call belongs to `WITHIN GROUP`. */
export function isOrderedSet({ schema, name, orderBy }: FunctionCall): boolean {
  if (schema !== null && schema !== 'pg_catalog') return false
  const known = name.toLowerCase()
  return ORDERED_SET_AGGREGATES.has(known) || (AGGREGATES_IF_ORDERED.has(known) && orderBy.length > 0)
}

/**
 * Reports whether the call is an aggregate. A call of an unknown function counts as one if its syntax is
 * valid only for aggregates.
 */
export function isAggregate(call: FunctionCall): boolean {
  if (call.over !== null) return false
  if (call.star || call.distinct || call.orderBy.length > 0 || call.filter !== null) return true
  return (call.schema === null || call.schema === 'pg_catalog') && AGGREGATES.has(call.name.toLowerCase())
}

/** Reports whether the expression contains an aggregate of the same query; subqueries are not searched. */
export function containsAggregate(expression: Expression): boolean {
  return (expression.kind === 'function' && isAggregate(expression)) || childrenOf(expression).some(containsAggregate)
}

/**
 * The implied `group by` of a query with aggregates: for each field, the largest subexpressions that depend
 * on the row and contain no aggregate. `a + count(*)` groups by `a`, `lower(a)` by `lower(a)`; a constant
 * adds no group.
 */
export function impliedGroups(fields: readonly ExpressionField[]): readonly Expression[] {
  const groups: Expression[] = []
  for (const field of fields) collectGroups(field.expression, groups)
  return groups
}

function collectGroups(expression: Expression, groups: Expression[]): void {
  if (expression.kind === 'function' && isAggregate(expression)) return
  if (containsAggregate(expression) || containsWindow(expression)) {
    for (const child of childrenOf(expression)) collectGroups(child, groups)
  } else if (dependsOnRow(expression)) {
    groups.push(expression)
  }
}

/**
 * Reports whether the expression contains a window function of the same query; subqueries are not searched.
 */
export function containsWindow(expression: Expression): boolean {
  return (expression.kind === 'function' && expression.over !== null) || childrenOf(expression).some(containsWindow)
}

/**
 * Reports whether the value can differ between rows: it contains a column or a query, which may be
 * correlated.
 */
function dependsOnRow(expression: Expression): boolean {
  return expression.kind === 'column' || isOfQuery(expression) || childrenOf(expression).some(dependsOnRow)
}

/** Reports whether the expression contains a query. */
export function containsQuery(expression: Expression): boolean {
  return isOfQuery(expression) || childrenOf(expression).some(containsQuery)
}

function isOfQuery(expression: Expression): boolean {
  return (
    expression.kind === 'subquery' ||
    expression.kind === 'exists' ||
    (expression.kind === 'in' && expression.set.kind === 'subquery')
  )
}

function words(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/))
}
