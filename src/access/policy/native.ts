/**
 * The native access policy (docs/guides/access-policies.md#the-native-policy): what a role with its scopes
 * may do with a table and its columns.
 */
import type { Table } from '../../catalog/model.ts'
import { type Columns, OPERATIONS, type Operation, type TableRights } from '../rights.ts'

export interface NativePolicy {
  /** For tables without an entry, and for operations of which an entry says nothing. */
  readonly defaultDecision: 'allow' | 'deny'
  /** By the name in the file: of a resource, `schema.table`, or `*` for tables without their own. */
  readonly tables: ReadonlyMap<string, NativeEntry>
}

export interface NativeEntry {
  /** Null: the default decides. */
  readonly operations: readonly Operation[] | null
  readonly deniedOperations: readonly Operation[]
  readonly readColumns: ColumnRule
  readonly writeColumns: ColumnRule
  /** Null: what was written or may be read. */
  readonly returningColumns: ColumnRule | null
  /** Null: any. */
  readonly requireAnyRole: readonly string[] | null
  readonly requireScopes: readonly string[]
}

export type ColumnRule =
  | { readonly kind: 'any' }
  | { readonly kind: 'none' }
  | { readonly kind: 'only'; readonly columns: readonly string[] }
  | { readonly kind: 'except'; readonly columns: readonly string[] }

/** What of a caller a policy looks at. */
export interface PolicyCaller {
  readonly role: string
  readonly scopes: readonly string[]
}

export const WILDCARD = '*'

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

export const NONE: ReadonlySet<string> = new Set()

const EVERY_ROW: TableRights['rows'] = { read: null, create: null, update: null, delete: null }

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
  if (!isListed || deniedOperations.includes(operation)) return `the access policy does not allow to ${operation}`
  if (requireAnyRole !== null && !requireAnyRole.includes(role)) return 'the access policy asks for another role'
  const missing = requireScopes.filter(scope => !scopes.includes(scope))
  return missing.length === 0 ? null : `the access policy asks for scope ${missing.join(', ')}`
}

function columnsOf(rule: ColumnRule, table: Table): Columns {
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
