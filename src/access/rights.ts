/**
 * What a caller may do: with which tables, which of their columns, which of their rows
 * (docs/guides/access-policies.md, decision 0012).
 *
 * The check asks at every mention; who makes the answers – policies, or nothing at all – it does not know.
 */
import type { Catalog, Column, Table } from '../catalog/model.ts'
import type { Expression } from '../language/tree/ast.ts'
import type { StatementLimits } from '../statement-limits.ts'

export const OPERATIONS = ['read', 'create', 'update', 'delete'] as const

export type Operation = (typeof OPERATIONS)[number]

export type Columns = 'any' | ReadonlySet<string>

export interface TableRights {
  /** Why an operation is refused, for the caller; null where it is allowed. */
  readonly refused: Readonly<Record<Operation, string | null>>
  /** None where `read` is refused. */
  readonly read: Columns
  readonly create: Columns
  readonly update: Columns
  /** What a write may answer; null: the columns that it wrote and those that may be read. */
  readonly returning: Columns | null
  /**
   * A condition, not yet checked, that rows must meet; null: all of them. Parameters are named for what they
   * say of the caller.
   */
  readonly rows: Readonly<Record<Operation, Expression | null>>
}

/** The rights of one caller, and of all others with the same. */
export interface Rights {
  /** Part of the key of whatever is kept for callers with these rights. */
  readonly key: string
  of(table: Table): TableRights
}

/** The schema as a caller sees it. */
export interface View {
  readonly catalog: Catalog
  readonly rights: Rights
  /** On each statement of a caller; the defaults where they are left out. */
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

/** Where there is no policy; row-level security decides alone. */
export const EVERYTHING: Rights = { key: '', of: () => ALL }

export function allows(columns: Columns, name: string): boolean {
  return columns === 'any' || columns.has(name)
}

/** What `*` means, and which names a suggestion may offer. */
export function readableColumns(table: Table, rights: Rights): readonly Column[] {
  const { read } = rights.of(table)
  return read === 'any' ? table.columns : table.columns.filter(({ name }) => read.has(name))
}

/** Whether a caller may learn that the table is there: some operation is allowed. */
export function isKnown(table: Table, rights: Rights): boolean {
  const { refused } = rights.of(table)
  return OPERATIONS.some(operation => refused[operation] === null)
}

/**
 * A column is hidden from a caller who may neither read nor write it: it is never suggested, and its mention
 * is 403.
 */
export function isKnownColumn(name: string, { read, create, update }: TableRights): boolean {
  return allows(read, name) || allows(create, name) || allows(update, name)
}

/** For `_schema`: what the caller may use, a column (null: the table) to read or to write. */
export function canSee(table: Table, column: Column | null, rights: Rights): boolean {
  return column === null ? isKnown(table, rights) : isKnownColumn(column.name, rights.of(table))
}

/** The columns that a write answers, having written `written`. */
export function returnable({ returning, read }: TableRights, written: readonly string[]): Columns {
  if (returning !== null) return returning
  return read === 'any' ? read : new Set([...read, ...written])
}
