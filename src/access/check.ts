/**
 * The only check between a tree and its SQL: resolves every name against the catalog and types every
 * parameter by the column it is compared with.
 * Only this file makes a `CheckedQuery`, and nothing else is printed for execution (`compile/compile.ts`),
 * so code that forgets the check does not compile.
 * The checked tree is the same tree with nothing left open: tables carry their schema, columns their alias,
 * `*` is expanded, joins have their condition, and parameters are cast.
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
import { isParameter, type ParameterKey, type ParameterUse, parameterKeyOf } from './parameters.ts'
import { tableOf } from './resources.ts'
import { EVERYTHING, type Rights } from './rights.ts'
import { fromSettings, rowsFor } from './row-filter.ts'
import { NOTHING, type ScopeSource, scopeWithin, sourceOf, tableRowset } from './scope.ts'
import { type Growth, Tally } from './tally.ts'

export type { Write } from './checking.ts'
export type { ParameterKey, ParameterUse } from './parameters.ts'

declare const checked: unique symbol

/** A tree that passed the check. Only this file can create the brand. */
export interface CheckedQuery<T extends Get | Write = Get> {
  readonly [checked]: true
  readonly query: T
  /** The use of each parameter, for encoding its value and for errors about it. */
  readonly parameters: ReadonlyMap<ParameterKey, ParameterUse>
  /** Every table that the statement writes to, once for each mention. */
  readonly writes: readonly Table[]
  /** The limits that statements made from this one must respect too. */
  readonly limits: StatementLimits
}

/**
 * The context of a check: catalog, rights, limits, and what the caller of the check knows about its
 * parameters.
 */
export interface CheckContext {
  readonly catalog: Catalog
  /** The rights of the caller. */
  readonly rights: Rights
  /**
   * True if the statement contains expressions written by its author, which must not be evaluated on rows
   * that a policy hides.
   */
  readonly rowsFirst?: boolean
  /** The PostgreSQL name of a text search configuration, for `@@`. */
  readonly searchLanguage: string
  /** Decides which functions of the database an expression can call; without it, none can be called. */
  readonly isCallable?: IsCallable
  /**
   * The type of a parameter whose context has no type, derived from its value; null leaves the type to
   * PostgreSQL.
   */
  readonly parameterType?: (parameter: Parameter) => string | null
  /** The length of a parameter's value in bytes, if it is known. */
  readonly parameterBytes?: (parameter: Parameter) => number
  /** Defaults apply if the limits are omitted. */
  readonly limits?: StatementLimits
  /** True if the author is the operator, who can cast to any type. */
  readonly anyType?: boolean
}

/** A write that passed the check, with the table that it writes to. */
export interface CheckedWrite<T extends Write = Write> extends CheckedQuery<T> {
  readonly table: Table
  readonly serverVersion: number
  /** A condition that every row must meet after it is written; null for none. */
  readonly check: Expression | null
}

/**
 * An invalid regular expression fails when a row is compared with it, so no row that a policy hides may
 * reach the comparison.
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
 * Checks a read. Throws `PARSE_ERROR` for a name that does not exist, with the nearest name that the caller
 * can read (docs/guides/access-policies.md#every-mention-counts).
 */
export function checkRead(query: Get, context: CheckContext): CheckedQuery {
  const checking = begin(guarded(query, context))
  const { statement } = checking.read(query, NOTHING)
  refuseSameNames(statement.fields)
  return brand(statement, checking)
}

/**
 * Like `checkRead`, for conditions on given row images that may no longer be in `table`: if a policy hides
 * a row of the table from the caller, its fields are NULL.
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
 * The same query with its parameters as columns of one of its record sources, as texts: one statement
 * serves many values of each parameter.
 */
export function withParametersIn(
  checked: CheckedQuery,
  source: string,
  columns: ReadonlyMap<ParameterKey, string>,
): CheckedQuery {
  const query = rewrite(checked.query, {
    expression(inner) {
      const name = isParameter(inner) ? columns.get(parameterKeyOf(inner)) : undefined
      return name === undefined ? inner : column(source, name)
    },
  })
  const parameters = new Map([...checked.parameters].filter(([key]) => !columns.has(key)))
  return { ...checked, query, parameters }
}

/** Like `checkRead`. Also rejects columns that cannot be written and conflict targets that are not keys. */
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

/**
 * Checks the condition of a policy. Throws `PARSE_ERROR` or `FORBIDDEN` if it does not match the table that
 * it is for.
 */
export function checkCondition(
  condition: Expression,
  table: Table,
  context: Pick<CheckContext, 'catalog' | 'searchLanguage'>,
): void {
  conditionIn(condition, sourceOf(table.name, tableRowset(table, 'any')), context)
}

/** A policy's own conditions can mention every column, and the caller's values are texts in them. */
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
  const expression = checking.expressions.expression(condition, scopeWithin(NOTHING, [source]))
  return { checked: fromSettings(expression), growth: checking.tally.mark() }
}

/**
 * The condition was valid when the policy was loaded and the schema has changed since, which the caller
 * cannot fix.
 */
function outdated<T>({ alias }: ScopeSource, check: () => T): T {
  try {
    return check()
  } catch (cause) {
    if (!(cause instanceof GatewayError)) throw cause
    throw new GatewayError('INTERNAL', `the route policy for "${alias}" no longer matches the schema`, { cause })
  }
}

function brand<T extends Get | Write>(query: T, { expressions, writes, tally: { limits } }: Checking): CheckedQuery<T> {
  return { query, parameters: expressions.parameters, writes, limits } as unknown as CheckedQuery<T>
}

/**
 * The maximum number of tokens of a text. Without a limit, a short text of stars over joins of wide tables
 * becomes millions of columns.
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
      inlined: name => catalog.inlinedBodies.get(name),
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
        `"*" in this query expands to more than ${WRITTEN_OUT_MAX} columns; name the columns you need`,
      )
    },
  }
  return checking
}
