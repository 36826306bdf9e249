/**
 * The legacy route policy (docs/guides/access-policies.md#the-route-policy): a list of what roles may do with
 * tables. Any policy that matches and allows wins, wherever in the list it stands; their columns add up, and
 * so do the rows that their filters leave.
 */
import type { Table } from '../../catalog/model.ts'
import { isWritten } from '../../catalog/table-names.ts'
import type { Expression } from '../../language/tree/ast.ts'
import { or } from '../../language/tree/build.ts'
import { type Columns, OPERATIONS, type Operation, type TableRights } from '../rights.ts'
import { NONE, type PolicyCaller, refusals, WILDCARD } from './native.ts'

export interface RoutePolicy {
  readonly name: string
  /** A resource, `schema.table`, or `*`. */
  readonly table: string
  /** A role, or `*`. */
  readonly role: string
  readonly operations: readonly Operation[]
  /** Null: every row. */
  readonly filter: Expression | null
  /** Null: every column. */
  readonly allowedColumns: readonly string[] | null
}

export function routeRights(policies: readonly RoutePolicy[], table: Table, { role }: PolicyCaller): TableRights {
  const matching = policies.filter(policy => isFor(policy, table) && (policy.role === role || policy.role === WILDCARD))
  const allowing = (operation: Operation) => matching.filter(({ operations }) => operations.includes(operation))
  const columns = (operation: Operation): Columns => unitedColumns(allowing(operation))
  return {
    refused: refusals(operation => (allowing(operation).length > 0 ? null : 'no route policy allows it')),
    read: columns('read'),
    create: columns('create'),
    update: columns('update'),
    returning: null,
    rows: Object.fromEntries(
      OPERATIONS.map(operation => [operation, unitedRows(allowing(operation))]),
    ) as TableRights['rows'],
  }
}

export function isFor({ table: name }: Pick<RoutePolicy, 'table'>, table: Table): boolean {
  return name === WILDCARD || isWritten(name, table)
}

function unitedColumns(policies: readonly RoutePolicy[]): Columns {
  if (policies.length === 0) return NONE
  if (policies.some(({ allowedColumns }) => allowedColumns === null)) return 'any'
  return new Set(policies.flatMap(({ allowedColumns }) => allowedColumns ?? []))
}

function unitedRows(policies: readonly RoutePolicy[]): Expression | null {
  const filters = policies.map(({ filter }) => filter)
  if (filters.length === 0 || filters.includes(null)) return null
  return or(...filters.filter(filter => filter !== null))
}
