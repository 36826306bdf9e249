/**
 * The row conditions of an access policy (docs/guides/access-policies.md#the-route-policy): the condition
 * becomes part of every statement that uses the table.
 * Properties of the caller are read from the session settings of the transaction, so callers with the same
 * rights share one statement: `tenant_id = $tenant_id` is `tenant_id =
 * cast(nullif(current_setting('app.current_tenant_id', true), '') as uuid)`.
 */
import type { Table } from '../catalog/model.ts'
import type { Expression, QuerySource, Span } from '../language/tree/ast.ts'
import {
  allOf,
  and,
  call,
  caseWhen,
  cast,
  column,
  compare,
  field,
  get,
  impliedColumn,
  integer,
  isNull,
  jsonStep,
  literal,
  text,
} from '../language/tree/build.ts'
import { rewrite } from '../language/tree/walk.ts'
import type { Checking } from './checking.ts'
import { allows, type Operation } from './rights.ts'
import { sourceOf, tableRowset } from './scope.ts'

/** The session setting that each `$name` in a condition reads, by name. */
const SETTINGS: ReadonlyMap<string, string> = new Map([
  ['tenant_id', 'app.current_tenant_id'],
  ['user_id', 'app.current_user_id'],
  ['agent_id', 'app.current_agent_id'],
  ['role', 'app.current_role'],
])

const CLAIM = 'claims.'

/** The `$names` that a condition can use, for error messages. */
export const CALLER_PARAMETERS: string = [...SETTINGS.keys(), `${CLAIM}x`].map(name => `$${name}`).join(', ')

/** True if a condition can use `$name`. */
export function isCallerParameter(name: string): boolean {
  return SETTINGS.has(name) || (name.startsWith(CLAIM) && name.length > CLAIM.length)
}

/** A checked condition in which every `$name` reads its session setting, without parameters of the caller. */
export function fromSettings(condition: Expression): Expression {
  const { where } = rewrite(get({ table: { schema: null, name: 'any' }, where: condition }), {
    expression(inner) {
      if (inner.kind === 'column') return { ...inner, implied: true }
      return inner.kind === 'named' ? callerValue(inner.name) : inner
    },
  })
  if (where === null) throw new Error('a condition stays one')
  return where
}

/**
 * NULL if the setting is empty: a caller without a tenant matches no row, and an empty text is not a valid
 * uuid.
 */
export function callerValue(name: string): Expression {
  const setting = SETTINGS.get(name)
  const value = setting === undefined ? claim(name.slice(CLAIM.length).split('.')) : settingOf(setting)
  return call('nullif', [value, text('')])
}

/** The claim `a`, or `a.b` for a claim within a claim. */
function claim(path: readonly string[]): Expression {
  const claims = cast(settingOf('request.jwt.claims'), 'jsonb')
  const last = path.length - 1
  return path.reduce<Expression>((of, name, index) => jsonStep(index === last ? '->>' : '->', of, text(name)), claims)
}

function settingOf(name: string): Expression {
  return call('current_setting', [text(name), literal('boolean', 'true')], { schema: 'pg_catalog' })
}

/**
 * The condition for these operations on the rows of `table`, which the statement calls `alias`; null if all
 * rows are allowed. Rows that are marked as deleted are not among those that can be read.
 */
export function rowsFor(
  checking: Checking,
  table: Table,
  alias: string,
  ...operations: readonly Operation[]
): Expression | null {
  const policy = policyRows(checking, table, alias, ...operations)
  return operations.includes('read') ? allOf([unmarked(table, alias), policy]) : policy
}

/** The condition that a row is not marked as deleted; null for a table whose rows are really deleted. */
export function unmarked({ managed }: Table, alias: string): Expression | null {
  const marker = managed?.softDelete ?? null
  return marker === null ? null : isNull(impliedColumn(alias, marker))
}

function policyRows(
  checking: Checking,
  table: Table,
  alias: string,
  ...operations: readonly Operation[]
): Expression | null {
  // The policy's condition can mention columns that the caller cannot.
  const source = { ...sourceOf(alias, tableRowset(table, 'any')), otherwise: table.name }
  const { rows } = checking.rights.of(table)
  const conditions = [...new Set(operations.map(operation => rows[operation]))].filter(condition => condition !== null)
  return conditions.length === 0 ? null : and(...conditions.map(condition => checking.rows(condition, source)))
}

/**
 * A table of which the read sees some rows only, as a derived table, so that joins of every kind see no
 * others. With `rowsFirst`, nothing else of the statement is evaluated on the hidden rows either: an
 * expression that fails would reveal them (PostgreSQL manual, 39.5).
 */
export function readRows(checking: Checking, table: Table, alias: string, span: Span): QuerySource | null {
  const where = rowsFor(checking, table, alias, 'read')
  if (where === null) return null
  // The key as well, which the gateway itself uses. No other column name appears in the output of
  // `_explain`.
  const { read } = checking.rights.of(table)
  const needed = table.columns.filter(({ name }) => allows(read, name) || table.primaryKey.includes(name))
  const query = get({
    table,
    alias,
    fields: needed.map(({ name }) => field(column(alias, name))),
    where,
    offset: checking.rowsFirst ? integer('0') : null,
  })
  return { kind: 'query source', query, alias, span }
}

/** Like `rowsFor`, but the statement fails on a row that does not meet the condition. */
export function rowsOrFail(
  checking: Checking,
  table: Table,
  alias: string,
  ...operations: readonly Operation[]
): Expression | null {
  const condition = policyRows(checking, table, alias, ...operations)
  return condition === null ? null : orFail(condition, REFUSED_ROW, table, alias)
}

/** The same for rows that are marked as deleted, whose key remains taken. */
export function unmarkedOrFail(table: Table, alias: string): Expression | null {
  const condition = unmarked(table, alias)
  return condition === null ? null : orFail(condition, MARKED_ROW, table, alias)
}

/** `condition`, applied only to rows that meet `first`. */
export function conditionAfter(checking: Checking, first: Expression | null, condition: Expression): Expression {
  if (first === null) return condition
  return checking.rowsFirst ? onlyAfter(first, condition) : and(first, condition)
}

/** The same if `condition` must not be evaluated on other rows. */
function onlyAfter(first: Expression, condition: Expression): Expression {
  return caseWhen(first, condition, literal('boolean', 'false'))
}

/** Random, so that no caller's value can equal it. */
export const REFUSED_ROW: string = `${crypto.randomUUID()} `

/** The same for a row that is marked as deleted. */
export const MARKED_ROW: string = `${crypto.randomUUID()} `

/** True for a row that meets the condition. For any other row the statement fails and is rolled back. */
function orFail(condition: Expression, marker: string, table: Table, alias: string): Expression {
  // PostgreSQL evaluates constant expressions before it reads any row.
  const varying = call('num_nulls', [column(alias, table.columns[0]?.name ?? '')])
  const failure = compare('=', cast(call('concat', [text(marker), varying]), 'int4'), integer('0'))
  return caseWhen(condition, literal('boolean', 'true'), failure)
}
