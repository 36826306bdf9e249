/**
 * The access policy (docs/guides/access-policies.md#the-native-policy): what a role with its scopes can do
 * with a table and its columns.
 */
import type { Table } from '../../catalog/model.ts'
import { type ColumnSet, OPERATIONS, type Operation, type TableRights } from '../rights.ts'

/** A parsed access policy. */
export interface NativePolicy {
  /** Applies to tables without an entry, and to operations that an entry does not mention. */
  readonly defaultDecision: 'allow' | 'deny'
  /** Entries by the name in the file: a resource, `schema.table`, or `*` for all tables without an entry. */
  readonly tables: ReadonlyMap<string, NativeEntry>
}

/** The entry of one table. */
export interface NativeEntry {
  /** The allowed operations; null if the default decides. */
  readonly operations: readonly Operation[] | null
  readonly deniedOperations: readonly Operation[]
  readonly readColumns: ColumnRule
  readonly writeColumns: ColumnRule
  /** The columns that a write can return; null for those that were written or can be read. */
  readonly returningColumns: ColumnRule | null
  /** The roles of which the caller needs one; null for any role. */
  readonly requireAnyRole: readonly string[] | null
  readonly requireScopes: readonly string[]
}

/** A rule for columns: all, none, a list, or all except a list. */
export type ColumnRule =
  | { readonly kind: 'any' }
  | { readonly kind: 'none' }
  | { readonly kind: 'only'; readonly columns: readonly string[] }
  | { readonly kind: 'except'; readonly columns: readonly string[] }

/** The properties of a caller that a policy uses. */
export interface PolicyCaller {
  readonly role: string
  readonly scopes: readonly string[]
}

/** The name that means every table, or every role. */
export const WILDCARD = '*'

/** The rights that the access policy grants a caller on a table. */
export function nativeRights(policy: NativePolicy, table: Table, caller: PolicyCaller): TableRights {
  const { tables, defaultDecision } = policy
  const entry = tables.get(table.resource) ?? tables.get(`${table.schema}.${table.name}`) ?? tables.get(WILDCARD)
  const refused = refusals(operation => refusalOf(entry, operation, defaultDecision, caller))
  const read = entry === undefined ? 'any' : columnsOf(entry.readColumns, table)
  const write = entry === undefined ? 'any' : columnsOf(entry.writeColumns, table)
  const returning = entry?.returningColumns ?? null
  return {
    refused,
    read: refused.read === null ? read : NONE,
    create: refused.create === null ? write : NONE,
    update: refused.update === null ? write : NONE,
    returning: returning === null ? null : columnsOf(returning, table),
    rows: EVERY_ROW,
  }
}

/** The empty set of columns. */
export const NONE: ReadonlySet<string> = new Set()

const EVERY_ROW: TableRights['rows'] = { read: null, create: null, update: null, delete: null }

/** The refusal of each operation, by a function of the operation. */
export function refusals(refusal: (operation: Operation) => string | null): TableRights['refused'] {
  return Object.fromEntries(OPERATIONS.map(operation => [operation, refusal(operation)])) as TableRights['refused']
}

function refusalOf(
  entry: NativeEntry | undefined,
  operation: Operation,
  defaultDecision: NativePolicy['defaultDecision'],
  { role, scopes }: PolicyCaller,
): string | null {
  if (entry === undefined) return defaultDecision === 'allow' ? null : 'the access policy has no entry for it'
  const { operations, deniedOperations, requireAnyRole, requireScopes } = entry
  const isListed = operations === null ? defaultDecision === 'allow' : operations.includes(operation)
  if (!isListed || deniedOperations.includes(operation)) return `the access policy does not allow ${operation}`
  if (requireAnyRole !== null && !requireAnyRole.includes(role)) return 'the access policy requires another role'
  const missing = requireScopes.filter(scope => !scopes.includes(scope))
  return missing.length === 0 ? null : `the access policy requires scope ${missing.join(', ')}`
}

function columnsOf(rule: ColumnRule, table: Table): ColumnSet {
  switch (rule.kind) {
    case 'any':
      return 'any'
    case 'none':
      return NONE
    case 'only':
      return new Set(rule.columns)
    case 'except':
      return new Set(table.columns.map(({ name }) => name).filter(name => !rule.columns.includes(name)))
  }
}
