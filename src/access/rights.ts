/**
 * The rights of a caller: operations, tables, columns and rows (docs/guides/access-policies.md, decision
 * 0012). The check queries them at every mention and does not know where they come from.
 */
import type { Catalog, Column, Table } from '../catalog/model.ts'
import type { Expression } from '../language/tree/ast.ts'
import type { StatementLimits } from '../statement-limits.ts'

/** The operations that rights grant or refuse. */
export const OPERATIONS = ['read', 'create', 'update', 'delete'] as const

/** One of `OPERATIONS`. */
export type Operation = (typeof OPERATIONS)[number]

/** A set of columns; `any` for all of them. */
export type ColumnSet = 'any' | ReadonlySet<string>

/** The rights of a caller on one table. */
export interface TableRights {
  /** Why each operation is refused, as a message for the caller; null if it is allowed. */
  readonly refused: Readonly<Record<Operation, string | null>>
  /** The columns that can be read; empty if `read` is refused. */
  readonly read: ColumnSet
  readonly create: ColumnSet
  readonly update: ColumnSet
  /** The columns that a write can return; null for the columns that it wrote and those that can be read. */
  readonly returning: ColumnSet | null
  /**
   * The condition, not yet checked, that rows must meet for each operation; null for all rows. Parameters
   * are named after properties of the caller.
   */
  readonly rows: Readonly<Record<Operation, Expression | null>>
}

/** The rights of one caller, shared by all callers with the same rights. */
export interface Rights {
  /** Part of the key of everything that is cached for callers with these rights. */
  readonly key: string
  of(table: Table): TableRights
}

/** The schema as a caller sees it. */
export interface View {
  readonly catalog: Catalog
  readonly rights: Rights
  /** Limits on each statement of a caller; the defaults if omitted. */
  readonly limits?: StatementLimits
}

const ALL: TableRights = {
  refused: { read: null, create: null, update: null, delete: null },
  read: 'any',
  create: 'any',
  update: 'any',
  returning: 'any',
  rows: { read: null, create: null, update: null, delete: null },
}

/** The rights without any access policy: only row-level security restricts the caller. */
export const EVERYTHING: Rights = { key: '', of: () => ALL }

/** True if a read of the table with these rights cannot see all of its rows. */
export function hidesRows(table: Table, rights: Rights): boolean {
  return rights.of(table).rows.read !== null || (table.managed?.softDelete ?? null) !== null
}

/** True if these rights limit the rows that can be read of any table. */
export function limitsRows({ catalog, rights }: View): boolean {
  return rights !== EVERYTHING && [...catalog.tables.values()].some(table => rights.of(table).rows.read !== null)
}

/** True if the set contains the column. */
export function allows(columns: ColumnSet, name: string): boolean {
  return columns === 'any' || columns.has(name)
}

/** True if the set contains all of these columns. */
export function allowsAll(columns: ColumnSet, names: readonly string[]): boolean {
  if (columns === 'any') return true
  for (const name of names) if (!columns.has(name)) return false
  return true
}

/** The columns that `*` means, and that a suggestion can offer. */
export function readableColumns(table: Table, rights: Rights): readonly Column[] {
  const { read } = rights.of(table)
  return read === 'any' ? table.columns : table.columns.filter(({ name }) => read.has(name))
}

/** True if the caller can learn that the table exists: some operation is allowed. */
export function isKnown(table: Table, rights: Rights): boolean {
  const { refused } = rights.of(table)
  return OPERATIONS.some(operation => refused[operation] === null)
}

/**
 * True if the caller can learn that the column exists. A column that they can neither read nor write is
 * hidden: it is never suggested, and a mention is answered with 403.
 */
export function isKnownColumn(name: string, { read, create, update }: TableRights): boolean {
  return allows(read, name) || allows(create, name) || allows(update, name)
}

/** True if `_schema` shows the column (null: the table) to the caller, because they can read or write it. */
export function canSee(table: Table, column: Column | null, rights: Rights): boolean {
  return column === null ? isKnown(table, rights) : isKnownColumn(column.name, rights.of(table))
}

/** The columns that a write of the columns `written` can return. */
export function returnable({ returning, read }: TableRights, written: readonly string[]): ColumnSet {
  if (returning !== null) return returning
  return read === 'any' ? read : new Set([...read, ...written])
}
