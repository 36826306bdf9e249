/**
 * The route policy (docs/guides/access-policies.md#the-route-policy): a list of rules that grant roles
 * operations on tables. Any matching rule that allows an operation is enough, whatever its position. The
 * columns of matching rules add up, and so do the rows that their filters allow.
 */
import type { Table } from '../../catalog/model.ts'
import { isWritten } from '../../catalog/table-names.ts'
import type { Expression } from '../../language/tree/ast.ts'
import { or } from '../../language/tree/build.ts'
import { type ColumnSet, OPERATIONS, type Operation, type TableRights } from '../rights.ts'
import { NONE, type PolicyCaller, refusals, WILDCARD } from './native.ts'

/** One rule of a route policy. */
export interface RoutePolicy {
  readonly name: string
  /** A resource, `schema.table`, or `*`. */
  readonly table: string
  /** A role, or `*`. */
  readonly role: string
  readonly operations: readonly Operation[]
  /** The condition on rows; null for every row. */
  readonly filter: Expression | null
  /** The columns that it grants; null for every column. */
  readonly allowedColumns: readonly string[] | null
}

/** The rights that the rules grant a caller on a table. */
export function routeRights(policies: readonly RoutePolicy[], table: Table, { role }: PolicyCaller): TableRights {
  const matching = policies.filter(policy => isFor(policy, table) && (policy.role === role || policy.role === WILDCARD))
  const allowing = (operation: Operation) => matching.filter(({ operations }) => operations.includes(operation))
  const columns = (operation: Operation): ColumnSet => unitedColumns(allowing(operation))
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

/** True if a rule applies to the table. */
export function isFor({ table: name }: Pick<RoutePolicy, 'table'>, table: Table): boolean {
  return name === WILDCARD || isWritten(name, table)
}

function unitedColumns(policies: readonly RoutePolicy[]): ColumnSet {
  if (policies.length === 0) return NONE
  if (policies.some(({ allowedColumns }) => allowedColumns === null)) return 'any'
  return new Set(policies.flatMap(({ allowedColumns }) => allowedColumns ?? []))
}

function unitedRows(policies: readonly RoutePolicy[]): Expression | null {
  const filters = policies.map(({ filter }) => filter)
  if (filters.length === 0 || filters.includes(null)) return null
  return or(...filters.filter(filter => filter !== null))
}
