/**
 * The plan of a subscription: the tree of a list request with its filters and columns, checked like every
 * other read. Plans that differ only in their filters are evaluated together (`evaluation.ts`).
 */
import type { Approvals } from '../access/list/approvals.ts'
import type { QueryShape } from '../access/list/pattern.ts'
import { shapeOfQuery } from '../access/list/query-shape.ts'
import type { ParameterKey, ParameterUse } from '../access/parameters.ts'
import { assertAllowed } from '../access/refusals.ts'
import { readableColumns, type View } from '../access/rights.ts'
import type { Table } from '../catalog/model.ts'
import { compile } from '../compile/compile.ts'
import type { PlanCache, PlanOwner } from '../compile/plans.ts'
import type { BoundStatement, CompiledStatement, ReadStatement, StreamStatement } from '../compile/statement.ts'
import { GatewayError } from '../errors.ts'
import type { Expression, Field, Get } from '../language/tree/ast.ts'
import { allOf, column, field, type GetParts, get, integer, star } from '../language/tree/build.ts'
import { printLine } from '../rest/allow-list/line.ts'
import { bindValues, textOf } from '../rest/bind.ts'
import { buildFilter, type FilterLimits, parseFilters } from '../rest/parameters/filters.ts'
import { partitionParameters } from '../rest/parameters/request-parameters.ts'
import { buildFields, parseSelect } from '../rest/parameters/select.ts'
import { refuseMisspeltParameter } from '../rest/read/request.ts'
import { LIST_PARAMETERS, parametersIn, type RequestLimits, readRequest, type WrittenRequest } from '../rest/request.ts'
import { requireTable, TABLE_ALIAS } from '../rest/resource.ts'
import { Values } from '../rest/values.ts'
import {
  columnOf,
  columnsIn,
  contextOf,
  type EvaluatedColumns,
  type EvaluatedFilter,
  type Evaluation,
  evaluatedFields,
  planEvaluation,
  type Variant,
} from './evaluation.ts'
import { numbersAsValues } from './number-values.ts'

/** A subscription as requested. */
export interface SubscriptionRequest {
  /** The resource name. */
  readonly table: string
  /** The query string of a list request. */
  readonly filter: string
  /** Columns as in the `select` of a list request; undefined selects all that the caller can read. */
  readonly select: string | undefined
  /** Rows as texts, which the query string does not describe: `filter` and `select` are empty. */
  readonly texts?: TextRows
}

/** Rows whose values are PostgreSQL's texts. */
export interface TextRows {
  /** Equal for rows with the same columns, condition and values. */
  readonly key: string
  /** The columns; null for all that the caller can read. */
  readonly columns: readonly string[] | null
  /**
   * Adds the values of the condition and builds it, with columns qualified by `alias` or unqualified; null
   * for all rows.
   */
  condition(values: Values, alias: string | null): Expression | null
}

/** Adds the values of a part of the rows and builds it, with columns qualified by `alias` or unqualified. */
export type TextPart = (
  values: Values,
  alias: string | null,
) => Required<Pick<GetParts, 'where' | 'orderBy' | 'limit' | 'offset'>>

/** A checked subscription. */
export interface SubscriptionPlan {
  readonly table: Table
  /** Equal for plans that read the same apart from the values of their filters. */
  readonly name: string
  /** Plans with equal columns, of callers with the same rights, can be evaluated together. */
  readonly columns: string
  /** The key of the caller's rights. */
  readonly rights: string
  readonly hasFilter: boolean
  readonly variant: Variant
  /** The columns that the filter and a route policy read. */
  readonly filtered: ReadonlySet<string>
  /**
   * The caller's settings that a route policy's filter reads: callers with different values see different
   * rows.
   */
  readonly settings: readonly string[]
  /** A statement without rows that fails with the same errors as the reads of this plan. */
  readonly trial: BoundStatement<ReadStatement>
  /** The evaluation of this plan alone. */
  readonly evaluation: Evaluation
  /**
   * The evaluation of this plan and others with the same `columns`, in this order.
   * @throws GatewayError if they are refused together.
   */
  together(others: readonly SubscriptionPlan[]): Evaluation
  readonly filter: EvaluatedFilter
  /** The columns, in the form `texts`. */
  readonly textColumns: readonly string[]
  /** The statement that reads all rows of the subscription. */
  stream(): BoundStatement<StreamStatement>
  /**
   * The statement that reads a part of the rows, in the form `texts`.
   * @throws GatewayError if it is malformed or not allowed.
   */
  streamPart(part: TextPart): BoundStatement<StreamStatement>
}

/** The inputs for planning a subscription. */
export interface SubscriptionPlanParts {
  readonly view: View
  readonly searchLanguage: string
  readonly limits: FilterLimits & RequestLimits
  /** The allow-list; null if every query is allowed. */
  readonly approvals: Approvals | null
  /** The plans of the view's catalog, and the caller who makes this one. */
  readonly plans: PlanCache
  readonly owner: PlanOwner
}

/** The texts of a plan: the statements that read current rows, evaluate old ones, and try the read. */
const STATEMENTS = 3

/**
 * Plans a subscription. Callers with the same rights share the plan of the same request: a shape is requested
 * again after every change, and by many clients.
 * @throws GatewayError if it is malformed or not allowed.
 */
export function planSubscription(request: SubscriptionRequest, parts: SubscriptionPlanParts): SubscriptionPlan {
  const { texts, table, filter, select = null } = request
  const { view, limits, approvals, plans, owner } = parts
  const written = readRequest(
    { method: 'GET', query: request.filter, headers: {} },
    { kind: 'list', table: request.table },
    limits,
  )
  approvals?.approve(
    request,
    texts === undefined ? printLine(withSelect(written, request.select)) : shapeOfTexts(request.table, texts),
  )
  const key = JSON.stringify([table, filter, select, texts?.key ?? null])
  const kept = plans.plans<SubscriptionPlan>('subscription', ({ evaluation }) => STATEMENTS * evaluation.text.length)
  const plan = kept.of(owner, view, key, () => makePlan(request, written, parts))
  approvals?.answered(request)
  return plan
}

function makePlan(
  request: SubscriptionRequest,
  written: WrittenRequest,
  { view, searchLanguage, limits, approvals }: SubscriptionPlanParts,
): SubscriptionPlan {
  const { texts } = request
  const table = requireTable(view, request.table)
  assertAllowed('read', table, view.rights)
  assertSubscribable(table)
  const values = new Values()
  const { named, others, related } = partitionParameters(parametersIn(written), LIST_PARAMETERS)
  const [misplaced] = [...named.keys(), ...related.map(({ name }) => name)]
  if (misplaced !== undefined && !table.columnByName.has(misplaced)) {
    throw new GatewayError(
      'PARSE_ERROR',
      `the filter of a subscription can contain only filters; remove "${misplaced}"`,
    )
  }
  refuseMisspeltParameter(others, table, view, [])
  const build = (given: Values) => {
    if (texts === undefined) return buildFilter(parseFilters(others, given, limits), TABLE_ALIAS)
    const condition = texts.condition(given, TABLE_ALIAS)
    return condition && numbersAsValues(condition, given)
  }
  const where = build(values)
  const filterValues = values.all.length
  const columns = columnsOf(request, table, view)
  const context = contextOf({ view, searchLanguage, columns })
  const fields = evaluatedFields(columns, values)
  const plain = compile(plainTree(table, fields, where), context, { kind: 'read', form: 'rows' })
  const uses = usesIn(plain)
  const varying = varyingOf(uses, filterValues, columns.form)
  const filter: EvaluatedFilter = { build, varying }
  const parts = { table, columns, view, searchLanguage }
  const evaluation = planEvaluation([filter], parts)
  const free = view.rights.of(table).rows.read
  return {
    ...{
      table,
      trial: bindValues(plain, values.all),
      filter,
      evaluation,
      rights: view.rights.key,
      hasFilter: where !== null,
    },
    name: JSON.stringify([evaluation.text, evaluation.fixed]),
    columns: JSON.stringify(columns.form === 'texts' ? columns.names : (request.select ?? null)),
    variant: variantOf(varying, uses, values),
    filtered: new Set([
      ...[where, free].flatMap(part => (part === null ? [] : [...columnsIn(part)])),
      ...markerOf(table),
    ]),
    settings: free === null ? [] : settingsIn(evaluation.text),
    textColumns: columns.form === 'texts' ? columns.names : [],
    stream: () =>
      bindValues(compile(get({ table, alias: TABLE_ALIAS, fields, where }), context, { kind: 'stream' }), values.all),
    streamPart(part) {
      const asked = { part }
      if (texts !== undefined) approvals?.approve(asked, shapeOfTexts(request.table, texts, part))
      const given = new Values()
      const own = build(given)
      const { where: more, ...rest } = part(given, TABLE_ALIAS)
      const tree = {
        table,
        alias: TABLE_ALIAS,
        fields: evaluatedFields(columns, given),
        where: allOf([own, more ?? null]),
        ...rest,
      }
      const statement = bindValues(compile(get(tree), context, { kind: 'stream' }), given.all)
      approvals?.answered(asked)
      return statement
    },
    together: these => planEvaluation([filter, ...these.map(other => other.filter)], parts),
  }
}

function columnsOf({ select, texts }: SubscriptionRequest, table: Table, view: View): EvaluatedColumns {
  if (texts === undefined) {
    return { form: 'json', build: values => buildFields(parseSelect(select, values), TABLE_ALIAS) }
  }
  return { form: 'texts', names: texts.columns ?? readableColumns(table, view.rights).map(({ name }) => name) }
}

/** For the allow-list, rows with a condition are the query `get table[condition] { columns }`. */
function shapeOfTexts(resource: string, { columns, condition }: TextRows, part?: TextPart): QueryShape {
  const [name = '', schema = null] = resource.split('.').toReversed()
  const fields = columns === null ? [star()] : columns.map(each => field(column(each)))
  const values = new Values()
  const own = condition(values, null)
  const { where = null, ...rest } = part?.(values, null) ?? {}
  return shapeOfQuery(get({ table: { schema, name }, fields, where: allOf([own, where]), ...rest }))
}

function markerOf({ managed }: Table): readonly string[] {
  const marker = managed?.softDelete ?? null
  return marker === null ? [] : [marker]
}

function assertSubscribable(table: Table): void {
  if (table.primaryKey.length === 0) {
    throw new GatewayError(
      'PARSE_ERROR',
      `"${table.resource}" has no primary key, so its changes cannot identify rows; use live_query`,
    )
  }
  if (table.kind === 'view' || table.kind === 'materialized view') {
    throw new GatewayError(
      'PARSE_ERROR',
      `"${table.resource}" is a ${table.kind}; subscribe to its tables, or use live_query`,
    )
  }
}

/** The use of each parameter of the statement, by its key. */
function usesIn({ parameters }: CompiledStatement): ReadonlyMap<ParameterKey, ParameterUse> {
  return new Map(parameters.flatMap(parameter => ('key' in parameter ? [[parameter.key, parameter.use] as const] : [])))
}

/** The parameters of the filter that can be read from a column of text. */
function varyingOf(
  parameters: ReadonlyMap<ParameterKey, ParameterUse>,
  filterValues: number,
  form: EvaluatedColumns['form'],
): readonly number[] {
  const keys: number[] = []
  for (const [key, { type, typeName, list }] of parameters) {
    // A list whose type is unknown cannot be cast.
    const isListTyped = !list || type !== null || typeName !== 'any type'
    // PostgreSQL derives the type of a parameter in SQL from its context, but not the type of a column.
    const isTyped = isListTyped && (form === 'json' || list || type !== null || typeName !== 'text')
    if (Number(key) <= filterValues && isTyped) keys.push(Number(key))
  }
  return keys
}

function variantOf(
  varying: readonly number[],
  parameters: ReadonlyMap<ParameterKey, ParameterUse>,
  { all }: Values,
): Variant {
  const members = varying.map((key, index) => {
    const value = all[key - 1] ?? null
    const use = parameters.get(key)
    const written = String(use === undefined ? value : textOf(value, use))
    return `${JSON.stringify(columnOf(index))}:${JSON.stringify(written)}`
  })
  const text = members.join()
  return { name: text, members: text }
}

/** The allow-list treats a subscription as a list request for its rows. */
function withSelect(written: WrittenRequest, select: string | undefined): WrittenRequest {
  if (select === undefined) return written
  return { ...written, parameters: [...written.parameters, { kind: 'named', name: 'select', value: select }] }
}

/**
 * A read of the same columns that returns no rows, so that errors are worded like those of any other read.
 */
function plainTree(table: Table, fields: readonly Field[], where: Expression | null): Get {
  const named = fields.length === 0 ? [star(TABLE_ALIAS)] : fields
  const keys = table.primaryKey.map((name, index) => field(column(TABLE_ALIAS, name), `key ${index}`))
  return get({ table, alias: TABLE_ALIAS, fields: [...named, ...keys], where, limit: integer('0') })
}

const SETTING = /current_setting\('([^']*)'/g

/** The settings that appear in the text to execute. */
function settingsIn(text: string): readonly string[] {
  return [...text.matchAll(SETTING)].map(([, name = '']) => name)
}
