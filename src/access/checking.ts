/**
 * The interface through which the parts of one check call each other: reads contain sources, sources
 * contain queries, and common tables contain reads and writes.
 */
import type { Catalog, Table } from '../catalog/model.ts'
import type { Add, CommonTable, Del, Expression, Get, Set as SetStatement } from '../language/tree/ast.ts'
import type { ExpressionChecker } from './expressions.ts'
import type { Rights } from './rights.ts'
import type { AccessScope, RowsetColumn, ScopeSource } from './scope.ts'
import type { Tally } from './tally.ts'

/** A statement that changes rows. */
export type Write = Add | SetStatement | Del

/** A checked statement with the columns of its rows, which a query around it can mention. */
export interface Answering<T extends Get | Write> {
  readonly statement: T
  readonly outputs: readonly RowsetColumn[]
}

/**
 * `check`: a condition that every row must meet after it is written, in terms of the names that `returning`
 * can mention; null for none.
 */
export interface AnsweringWrite extends Answering<Write> {
  readonly check: Expression | null
}

/** The check of one statement and of everything that it contains. */
export interface Checking {
  readonly catalog: Catalog
  readonly rights: Rights
  /**
   * True if rows that a policy hides are removed before anything else is evaluated: true for statements
   * whose author writes expressions.
   */
  readonly rowsFirst: boolean
  readonly expressions: ExpressionChecker
  /** The tables that the whole statement writes to, one entry for each write in it. */
  readonly writes: Table[]
  /**
   * `itself`: the recursive common table that this statement defines. In its other parts, the name means
   * the rows of the first part.
   */
  read(query: Get, outside: AccessScope, itself?: CommonTable | null): Answering<Get>
  write(write: Write, outside: AccessScope): AnsweringWrite
  /** A policy's condition on the rows of `source`, which can mention columns that the caller cannot. */
  rows(condition: Expression, source: ScopeSource): Expression
  /** The totals of the whole statement; rejects what is above a limit. */
  readonly tally: Tally
  /** Rejects the statement if its stars expand to too many columns in total. */
  countWritten(columns: number): void
}
