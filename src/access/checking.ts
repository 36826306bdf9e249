/**
 * What the parts of one check have of each other: reads contain sources, sources queries, common tables both
 * kinds of statement.
 */
import type { Catalog, Table } from '../catalog/model.ts'
import type { Add, CommonTable, Del, Expression, Get, Set as SetStatement } from '../language/tree/ast.ts'
import type { ExpressionChecker } from './expressions.ts'
import type { Rights } from './rights.ts'
import type { RowsetColumn, Scope, ScopeSource } from './scope.ts'
import type { Tally } from './tally.ts'

export type Write = Add | SetStatement | Del

/** A checked statement with the columns of its rows: what a query around it can mention. */
export interface Answering<T extends Get | Write> {
  readonly statement: T
  readonly outputs: readonly RowsetColumn[]
}

/**
 * `check`: what must be true of every row as it was written, in terms of what `returning` may mention; null
 * for nothing.
 */
export interface AnsweringWrite extends Answering<Write> {
  readonly check: Expression | null
}

/** The check of one statement, with all that it contains. */
export interface Checking {
  readonly catalog: Catalog
  readonly rights: Rights
  /**
   * Rows that a policy hides are left out before anything else is computed: for statements whose author
   * writes expressions.
   */
  readonly rowsFirst: boolean
  readonly expressions: ExpressionChecker
  /** What the whole statement writes to, one for each write in it. */
  readonly writes: Table[]
  /**
   * `itself`: the recursive common table whose statement this is; its name means what the first part answers,
   * in the others.
   */
  read(query: Get, outside: Scope, itself?: CommonTable | null): Answering<Get>
  write(write: Write, outside: Scope): AnsweringWrite
  /** A policy's condition on the rows of `source`, which may mention what the caller may not. */
  rows(condition: Expression, source: ScopeSource): Expression
  /** What the whole statement adds up to; refuses what is above a limit. */
  readonly tally: Tally
  /** Refuses more columns than the stars of the whole statement may stand for. */
  countWritten(columns: number): void
}
