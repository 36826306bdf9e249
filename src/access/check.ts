/**
 * The one check between a tree and its SQL: every name against the catalogue, every parameter typed by the
 * column it meets.
 *
 * Only this file makes a `CheckedQuery`, and nothing else can be printed for execution
 * (`compile/compile.ts`), so a door that forgets to check does not compile. The checked tree is the same tree
 * with nothing left open: tables carry their schema, columns their alias, `*` is written out, joins have
 * their condition, and parameters are cast.
 */
import type { Catalog, Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Expression, Get, Parameter } from '../language/tree/ast.ts'
import { caseWhen, column } from '../language/tree/build.ts'
import { rewrite } from '../language/tree/walk.ts'
import { type StatementLimits, UNLIMITED } from '../statement-limits.ts'
import { castableType } from './castable.ts'
import { refuseSameNames } from './check-fields.ts'
import { readIn } from './check-read.ts'
import { writeIn } from './check-write.ts'
import type { Checking, Write } from './checking.ts'
import { ExpressionChecker } from './expressions.ts'
import { callableName, type IsCallable } from './functions.ts'
import { isParameter, keyOf, type ParameterKey, type ParameterUse } from './parameters.ts'
import { tableOf } from './resources.ts'
import { EVERYTHING, type Rights } from './rights.ts'
import { fromSettings, rowsFor } from './row-filter.ts'
import { NOTHING, type ScopeSource, sourceOf, tableRowset, within } from './scope.ts'
import { type Growth, Tally } from './tally.ts'

export type { Write } from './checking.ts'
export type { ParameterKey, ParameterUse } from './parameters.ts'

declare const checked: unique symbol

/** A tree that passed the check. The brand cannot be written down outside this file. */
export interface CheckedQuery<T extends Get | Write = Get> {
  readonly [checked]: true
  readonly query: T
  /** What each parameter met, for encoding its value and for errors about it. */
  readonly parameters: ReadonlyMap<ParameterKey, ParameterUse>
  /** Every table that it changes, as often as it names one to write to. */
  readonly writes: readonly Table[]
  /** For what is made of it. */
  readonly limits: StatementLimits
}

export interface CheckContext {
  readonly catalog: Catalog
  /** What the caller may do. */
  readonly rights: Rights
  /**
   * The statement has expressions of its author's, which must not be computed of rows that a policy hides.
   */
  readonly rowsFirst?: boolean
  /** PostgreSQL's name of a text search configuration, for `@@`. */
  readonly searchLanguage: string
  /** Which functions of the database an expression may call; none where it is left out. */
  readonly isCallable?: IsCallable
  /**
   * The type of a parameter that meets nothing which has one, from its value; null leaves it to PostgreSQL.
   */
  readonly parameterType?: (parameter: Parameter) => string | null
  /** How long a parameter's value is, where that is known. */
  readonly parameterBytes?: (parameter: Parameter) => number
  /** The defaults where it is left out. */
  readonly limits?: StatementLimits
  /** Its author is the operator, who may cast to any type. */
  readonly anyType?: boolean
}

/** A write that passed, with the table that it writes to. */
export interface CheckedWrite<T extends Write = Write> extends CheckedQuery<T> {
  readonly table: Table
  readonly serverVersion: number
  /** Must be true of every row as it was written; null for nothing. */
  readonly check: Expression | null
}

/**
 * A regular expression that is none fails when a row is compared with it, so no row that a policy hides may
 * be.
 */
function guarded(statement: Get | Write, context: CheckContext): CheckContext {
  if (context.rowsFirst === true || context.rights === EVERYTHING) return context
  let rowsFirst = false
  rewrite(statement, {
    expression(inner) {
      if (inner.kind === 'comparison' && (inner.operator === 'regex' || inner.operator === '~*')) rowsFirst = true
      return inner
    },
  })
  return { ...context, rowsFirst }
}

/**
 * Throws `PARSE_ERROR` for a name that does not exist, with the nearest one that the caller may read
 * (docs/guides/access-policies.md#every-mention-counts).
 */
export function checkRead(query: Get, context: CheckContext): CheckedQuery {
  const checking = begin(guarded(query, context))
  const { statement } = checking.read(query, NOTHING)
  refuseSameNames(statement.fields)
  return brand(statement, checking)
}

/**
 * As `checkRead`, of conditions over rows that are given and not those of `table` any more: where a policy
 * hides a row of the table from the caller, its fields are answered as NULL.
 */
export function checkPast(query: Get, table: Table, context: CheckContext): CheckedQuery {
  const checking = begin(context)
  const { statement } = checking.read(query, NOTHING)
  const alias = statement.source.alias ?? table.name
  const rows = rowsFor(checking, table, alias, 'read')
  if (rows === null) return brand(statement, checking)
  const fields = statement.fields.map(item =>
    item.kind === 'field' ? { ...item, expression: caseWhen(rows, item.expression, null) } : item,
  )
  return brand({ ...statement, fields }, checking)
}

/**
 * The same query with parameters in columns of a record source that it has, as texts: one statement for many
 * values of each.
 */
export function withParametersIn(
  checked: CheckedQuery,
  source: string,
  columns: ReadonlyMap<ParameterKey, string>,
): CheckedQuery {
  const query = rewrite(checked.query, {
    expression(inner) {
      const name = isParameter(inner) ? columns.get(keyOf(inner)) : undefined
      return name === undefined ? inner : column(source, name)
    },
  })
  const parameters = new Map([...checked.parameters].filter(([key]) => !columns.has(key)))
  return { ...checked, query, parameters }
}

/** As `checkRead`; also for columns that cannot be written, and conflict targets that are no key. */
export function checkWrite<T extends Write>(write: T, context: CheckContext): CheckedWrite<T> {
  const checking = begin(guarded(write, context))
  const { catalog } = context
  const { statement, check } = checking.write(write, NOTHING)
  refuseSameNames(statement.returning ?? [])
  return {
    ...brand(statement as T, checking),
    check,
    table: tableOf(write.table, catalog, context.rights),
    serverVersion: catalog.serverVersion,
  }
}

/** Throws `PARSE_ERROR` or `FORBIDDEN` where a policy's condition does not fit the table that it is for. */
export function checkCondition(
  condition: Expression,
  table: Table,
  context: Pick<CheckContext, 'catalog' | 'searchLanguage'>,
): void {
  conditionIn(condition, sourceOf(table.name, tableRowset(table, 'any')), context)
}

/** A policy's own conditions may mention everything, and what they say of the caller is a text to them. */
function conditionIn(
  condition: Expression,
  source: ScopeSource,
  { catalog, searchLanguage }: Pick<CheckContext, 'catalog' | 'searchLanguage'>,
): { readonly checked: Expression; readonly growth: Growth } {
  const checking = begin({
    ...{ catalog, searchLanguage, rights: EVERYTHING, limits: UNLIMITED, anyType: true },
    isCallable: () => true,
    parameterType: () => 'text',
  })
  const expression = checking.expressions.expression(condition, within(NOTHING, [source]))
  return { checked: fromSettings(expression), growth: checking.tally.mark() }
}

/**
 * It fitted when the policy was read; the schema has changed since, which is nothing that the caller could
 * mend.
 */
function outdated<T>({ alias }: ScopeSource, check: () => T): T {
  try {
    return check()
  } catch (cause) {
    if (!(cause instanceof GatewayError)) throw cause
    throw new GatewayError('INTERNAL', `the route policy for "${alias}" does not fit the schema any more`, { cause })
  }
}

function brand<T extends Get | Write>(query: T, { expressions, writes, tally: { limits } }: Checking): CheckedQuery<T> {
  return { query, parameters: expressions.parameters, writes, limits } as unknown as CheckedQuery<T>
}

/**
 * As many as a text may have tokens; without a limit a short text of stars over joins of wide tables becomes
 * millions of columns.
 */
const WRITTEN_OUT_MAX = 16_384

function begin(context: CheckContext): Checking {
  const { catalog, rights, searchLanguage, rowsFirst = false, anyType = false } = context
  const { isCallable = () => false, parameterType = () => null, parameterBytes = () => 0 } = context
  const tally = new Tally(context.limits)
  let written = 0
  const checking: Checking = {
    catalog,
    rights,
    rowsFirst,
    tally,
    writes: [],
    expressions: new ExpressionChecker({
      searchLanguage,
      tally,
      parameterType,
      parameterBytes,
      query: (query, outer) => checking.read(query, outer).statement,
      function: call => callableName(call, catalog, isCallable),
      type: type => (anyType ? type : castableType(type, context)),
    }),
    read: (query, outside, itself = null) => readIn(checking, query, outside, itself),
    write: (write, outside) => writeIn(checking, write, outside),
    rows(condition, source) {
      const { checked, growth } = outdated(source, () => conditionIn(condition, source, context))
      tally.add(growth)
      return checked
    },
    countWritten(columns) {
      written += columns
      if (written <= WRITTEN_OUT_MAX) return
      throw new GatewayError(
        'PARSE_ERROR',
        `the stars of this query stand for more than ${WRITTEN_OUT_MAX} columns; name those that you need`,
      )
    },
  }
  return checking
}
