/**
 * The plan of a subscription: the tree of a list request with its filters and columns, checked like every
 * other read. Plans that differ only in their filters are evaluated together (`evaluation.ts`).
 */
import type { Approvals } from '../access/list/approvals.ts'
import type { ParameterKey, ParameterUse } from '../access/parameters.ts'
import { assertAllowed } from '../access/refusals.ts'
import type { View } from '../access/rights.ts'
import type { Table } from '../catalog/model.ts'
import { compile } from '../compile/compile.ts'
import type { BoundStatement, ReadStatement, Statement } from '../compile/statement.ts'
import { GatewayError } from '../errors.ts'
import type { Expression, Field, Get } from '../language/tree/ast.ts'
import { column, field, get, integer, star } from '../language/tree/build.ts'
import { printLine } from '../rest/allow-list/line.ts'
import { bindValues, textOf } from '../rest/bind.ts'
import { buildFilter, type FilterLimits, parseFilters } from '../rest/parameters/filters.ts'
import { partitionParameters } from '../rest/parameters/request-parameters.ts'
import { buildFields, parseSelect } from '../rest/parameters/select.ts'
import { refuseMisspeltParameter } from '../rest/read/request.ts'
import { LIST_PARAMETERS, parametersIn, readRequest, type WrittenRequest } from '../rest/request.ts'
import { requireTable, TABLE_ALIAS } from '../rest/resource.ts'
import { Values } from '../rest/values.ts'
import {
  columnOf,
  columnsIn,
  type EvaluatedFilter,
  type Evaluation,
  planEvaluation,
  type Variant,
} from './evaluation.ts'

/** A subscription as requested. */
export interface SubscriptionRequest {
  /** The resource name. */
  readonly table: string
  /** The query string of a list request. */
  readonly filter: string
  /** Columns as in the `select` of a list request; undefined selects all that the caller can read. */
  readonly select: string | undefined
}

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
  /** A statement that fails as the reads of this plan would. */
  readonly trial: BoundStatement<ReadStatement>
  /** The evaluation of this plan alone. */
  readonly evaluation: Evaluation
  /**
   * The evaluation of this plan and others with the same `columns`, in this order.
   * @throws GatewayError if they are refused together.
   */
  together(others: readonly SubscriptionPlan[]): Evaluation
  readonly filter: EvaluatedFilter
}

/** What planning needs. */
export interface SubscriptionPlanParts {
  readonly view: View
  readonly searchLanguage: string
  readonly limits: FilterLimits
  /** The allow-list; null if every query is allowed. */
  readonly approvals: Approvals | null
}

/**
 * Plans a subscription.
 * @throws GatewayError if it is malformed or not allowed.
 */
export function planSubscription(
  request: SubscriptionRequest,
  { view, searchLanguage, limits, approvals }: SubscriptionPlanParts,
): SubscriptionPlan {
  const written = readRequest(
    { method: 'GET', query: request.filter, headers: {} },
    { kind: 'list', table: request.table },
  )
  approvals?.approve(request, printLine(withSelect(written, request.select)))
  const context = { ...view, searchLanguage }
  const table = requireTable(view, request.table)
  assertAllowed('read', table, view.rights)
  assertSubscribable(table)
  const values = new Values()
  const { named, others } = partitionParameters(parametersIn(written), LIST_PARAMETERS)
  const [misplaced] = named.keys()
  if (misplaced !== undefined && !table.columnByName.has(misplaced)) {
    throw new GatewayError(
      'PARSE_ERROR',
      `the filter of a subscription can contain only filters; remove "${misplaced}"`,
    )
  }
  refuseMisspeltParameter(others, table, view, [])
  const filters = parseFilters(others, values, limits)
  const where = buildFilter(filters, TABLE_ALIAS)
  const filterValues = values.all.length
  const fields = buildFields(parseSelect(request.select, values), TABLE_ALIAS)
  const plain = compile(plainTree(table, fields, where), context, { kind: 'read', form: 'rows' })
  const uses = usesIn(plain)
  const varying = varyingOf(uses, filterValues)
  const filter: EvaluatedFilter = { conditions: others, varying }
  const parts = { table, select: request.select, view, searchLanguage, limits }
  const evaluation = planEvaluation([filter], parts)
  approvals?.answered(request)
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
    columns: JSON.stringify([request.select ?? null]),
    variant: variantOf(varying, uses, values),
    filtered: new Set([buildFilter(filters, null), free].flatMap(part => (part === null ? [] : [...columnsIn(part)]))),
    settings: free === null ? [] : settingsIn(evaluation.text),
    together: these => planEvaluation([filter, ...these.map(other => other.filter)], parts),
  }
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
function usesIn({ parameters }: Statement): ReadonlyMap<ParameterKey, ParameterUse> {
  return new Map(parameters.flatMap(parameter => ('key' in parameter ? [[parameter.key, parameter.use] as const] : [])))
}

/** The parameters of the filter that can be read from a column of text. */
function varyingOf(parameters: ReadonlyMap<ParameterKey, ParameterUse>, filterValues: number): readonly number[] {
  const keys: number[] = []
  for (const [key, { type, typeName, list }] of parameters) {
    // A list whose type is unknown cannot be cast.
    const isTyped = !list || type !== null || typeName !== 'any type'
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
    return `${JSON.stringify(columnOf(index))}:${JSON.stringify(String(use === undefined ? value : textOf(value, use)))}`
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
