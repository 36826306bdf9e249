/** What the printer must know of PostgreSQL's functions: which are aggregates, which have a spelling or syntax of their own. */

import type { Expression, ExpressionField, FunctionCall } from './ast.ts'
import { childrenOf } from './children.ts'

/** Aggregates (PostgreSQL manual, 9.21), but those that are known by their order only. */
const AGGREGATES = words(`
  any_value array_agg avg bit_and bit_or bit_xor bool_and bool_or corr count covar_pop covar_samp every json_agg json_agg_strict
  json_object_agg json_object_agg_strict json_object_agg_unique json_object_agg_unique_strict jsonb_agg jsonb_agg_strict
  jsonb_object_agg jsonb_object_agg_strict jsonb_object_agg_unique jsonb_object_agg_unique_strict max min percentile_cont
  percentile_disc range_agg
  range_intersect_agg regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy stddev
  stddev_pop stddev_samp string_agg sum var_pop var_samp variance xmlagg
`)

/** Ordered-set aggregates: what is ordered is all they are about, and SQL writes the order behind the arguments (`WITHIN GROUP`; PostgreSQL manual, 9.21). */
const NEED_ORDER = words('percentile_cont percentile_disc')

/**
 * With an order these are such aggregates, too; without one somebody's own function or, but for the first, a function of a window: with it they
 * are the rank that a row of the arguments would have.
 */
const TAKE_ORDER = words('mode rank dense_rank percent_rank cume_dist')

/** Functions of the SQL standard, and `now`: written in upper case as SQL writes them, whatever case the author used. */
const UPPER_CASE = words(`
  abs array_agg avg cardinality ceil ceiling coalesce corr count cume_dist dense_rank every exp extract first_value floor greatest
  grouping lag last_value lead least length ln lower max min mod normalize now nth_value ntile nullif overlay percent_rank
  percentile_cont percentile_disc power rank round row_number sqrt stddev_pop stddev_samp substring sum trim upper var_pop var_samp
`)

/** Key words that PostgreSQL's grammar calls like functions (`func_expr_common_subexpr`), with how many arguments it takes. */
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

/** Functions that are written without parentheses (PostgreSQL manual, 9.9.5 and 9.27). */
export const VALUE_FUNCTIONS: ReadonlySet<string> = words(`
  current_catalog current_date current_role current_schema current_time current_timestamp current_user localtime localtimestamp
  session_user system_user user
`)

/** Functions whose arguments PostgreSQL cannot guess the type of (`"any"`): a parameter there needs a cast. */
export const UNTYPED_ARGUMENTS: ReadonlySet<string> = words(`
  concat concat_ws count format json_build_array json_build_object json_object_agg json_object_agg_strict json_object_agg_unique
  json_object_agg_unique_strict jsonb_build_array jsonb_build_object jsonb_object_agg jsonb_object_agg_strict
  jsonb_object_agg_unique jsonb_object_agg_unique_strict num_nonnulls num_nulls pg_typeof
`)

/** What `extract` takes (PostgreSQL manual, 9.9.1). */
export const EXTRACT_FIELDS: ReadonlySet<string> = words(`
  century day decade dow doy epoch hour isodow isoyear julian microseconds millennium milliseconds minute month quarter second
  timezone timezone_hour timezone_minute week year
`)

/** Whether the name, in lower case, is that of an aggregate of PostgreSQL. */
export function isKnownAggregate(name: string): boolean {
  return AGGREGATES.has(name)
}

/** The name in lower case when the function is one of those that are written in upper case; else null. */
export function upperCased(call: FunctionCall): string | null {
  const name = call.name.toLowerCase()
  return call.schema === null && UPPER_CASE.has(name) ? name.toUpperCase() : null
}

/** Whether the order of the call is that of `WITHIN GROUP`. */
export function isOrderedSet({ schema, name, orderBy }: FunctionCall): boolean {
  if (schema !== null && schema !== 'pg_catalog') return false
  const known = name.toLowerCase()
  return NEED_ORDER.has(known) || (TAKE_ORDER.has(known) && orderBy.length > 0)
}

/** Whether the call folds many rows into one. An unknown function is an aggregate when it is written as only an aggregate can be. */
export function isAggregate(call: FunctionCall): boolean {
  if (call.over !== null) return false
  if (call.star || call.distinct || call.orderBy.length > 0 || call.filter !== null) return true
  return (call.schema === null || call.schema === 'pg_catalog') && AGGREGATES.has(call.name.toLowerCase())
}

/** Whether an aggregate of this query is inside; those of subqueries are theirs. */
export function containsAggregate(expression: Expression): boolean {
  return (expression.kind === 'function' && isAggregate(expression)) || childrenOf(expression).some(containsAggregate)
}

/**
 * What a projection with aggregates groups by when nobody said so: of each field the largest parts that stand outside of every
 * aggregate and depend on the row. `a + count(*)` groups by `a`, `lower(a)` by `lower(a)`, a constant by nothing.
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

/** Whether a window function of this query is inside; those of subqueries are theirs. */
export function containsWindow(expression: Expression): boolean {
  return (expression.kind === 'function' && expression.over !== null) || childrenOf(expression).some(containsWindow)
}

/** A column is inside, or a query, which may be correlated. */
function dependsOnRow(expression: Expression): boolean {
  return expression.kind === 'column' || isOfQuery(expression) || childrenOf(expression).some(dependsOnRow)
}

/** Whether a query is inside. */
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
