/** Statements: plain data that `compile` makes of a checked tree. */
import type { CheckedWrite } from '../access/check.ts'
import type { ParameterKey, ParameterUse } from '../access/parameters.ts'
import type { Table } from '../catalog/model.ts'
import type { WriteRowsOptions } from '../language/sql/print-write-rows.ts'
import type { TableName } from '../language/tree/ast.ts'
import type { Extent } from './extent.ts'
import type { Mention } from './mentions.ts'
import type { ChangeOperation } from './row-images.ts'
import type { TableDependencies } from './table-dependencies.ts'

declare const printed: unique symbol

/**
 * SQL text that can run, and the description of its parameters. It depends on the request shape, never on
 * values.
 */
interface Printed {
  readonly [printed]: true
  readonly text: string
  readonly parameters: readonly StatementParameter[]
}

/** A read that can be judged by PostgreSQL's estimates. */
interface Judged extends Printed {
  readonly dependencies: TableDependencies
  /** True if the estimate depends too much on the values to be cached. */
  readonly valueDependent: boolean
  /** The indexes of parameters that are lists of keys, each of which finds at most one row. */
  readonly keyLists: readonly number[]
  /** How many of the rows it finds the read returns, for advice. */
  readonly extent: Extent
  /** The columns that it filters and sorts by, for advice. */
  readonly mentions: readonly Mention[]
}

/**
 * A read whose first column is the row as JSON text. For a binary response it has the columns of the read
 * instead.
 */
export interface ReadStatement extends Judged {
  readonly kind: 'read'
}

/** A read whose first column is followed by the sort keys, for the next cursor, or by the row's version. */
export interface PagedStatement extends Judged {
  readonly kind: 'paged'
}

/** A read whose rows are fetched in batches. */
export interface StreamStatement extends Judged {
  readonly kind: 'stream'
}

/** A call of a database function, which can do anything. */
export interface CallStatement extends Printed {
  readonly kind: 'call'
  readonly dependencies: TableDependencies
}

/** `EXPLAIN`; the only value of the result is the execution plan. */
export interface ExplainStatement extends Printed {
  readonly kind: 'explain'
  readonly dependencies: TableDependencies
  /** The statement that it executes to measure it, or null if it only plans. */
  readonly runs: ReadStatement | PagedStatement | StreamStatement | null
}

/** A write, or a read with writes in its common table expressions. */
export interface WriteStatement extends Printed {
  readonly kind: 'write'
  readonly dependencies: TableDependencies
  /** The resource names of further tables that it writes, without notifications of their rows. */
  readonly otherTables: readonly string[]
  /** The tables that its common table expressions write; their rows are not returned. */
  readonly hidden: readonly HiddenWrite[]
  /** The write itself, or null for a read with writes in its common table expressions. */
  readonly own: OwnWrite | null
}

/**
 * A write and what it is printed from, so that it can be printed again to return what it did
 * (`print-write.ts`).
 */
export interface OwnWrite {
  readonly checked: CheckedWrite
  readonly options: WriteRowsOptions
  readonly table: Table
  readonly operations: readonly ChangeOperation[]
  /** How it notifies of its rows; null if it cannot. */
  readonly notification: NotificationPlan | null
}

/** How a write notifies of its rows (run/write-notifications). */
export interface NotificationPlan {
  /** `one` if the write has at most one row. */
  readonly rows: 'one' | 'many'
  /** True if the old versions of the rows are available; an insert has none. */
  readonly hasBefore: boolean
  /** The columns that an update assigns, or null if rows are inserted or deleted as a whole. */
  readonly assigned: readonly string[] | null
}

/** A write in a common table expression. */
export interface HiddenWrite {
  readonly table: TableName
  readonly operations: readonly ChangeOperation[]
}

/** A statement of any kind. */
export type CompiledStatement =
  | ReadStatement
  | PagedStatement
  | StreamStatement
  | CallStatement
  | WriteStatement
  | ExplainStatement

/** A statement that runs in a read-only transaction and whose result is read completely. */
export type ReadableStatement = ReadStatement | PagedStatement | ExplainStatement

/** The source of a parameter's value. */
export type StatementParameter =
  /** A value of the caller, identified by `$n` or `:name` of the tree. */
  | { readonly key: ParameterKey; readonly use: ParameterUse }
  /** A literal of the query, moved out of the text so that the text depends on the shape only. */
  | { readonly literal: string }

/** A value: text in PostgreSQL's text form, or bytes that are JSON text. */
export type StatementValue = string | Buffer | null

/**
 * A statement with the values of its parameters, in the order of the statement and in PostgreSQL's text form.
 */
export interface BoundStatement<S extends CompiledStatement = CompiledStatement> {
  readonly statement: S
  readonly values: readonly StatementValue[]
}

/** A statement without the brand that only `compile/` can add. */
export type Unbranded<S extends CompiledStatement> = S extends CompiledStatement ? Omit<S, typeof printed> : never
