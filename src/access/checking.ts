/** What the parts of one check have of each other: reads contain sources, sources queries, common tables both kinds of statement. */
import type { Catalog } from '../catalog/model.ts'
import type { Add, CommonTable, Del, Get, Nest, Set as SetStatement, Source } from '../language/ast.ts'
import type { ExpressionChecker } from './expressions.ts'
import type { RowsetColumn, Scope } from './scope.ts'

export type Write = Add | SetStatement | Del

/** A checked statement with the columns of its rows: what a query around it can mention. */
export interface Answering<T extends Get | Write> {
  readonly statement: T
  readonly outputs: readonly RowsetColumn[]
}

/** The check of one statement, with all that it contains. */
export interface Checking {
  readonly catalog: Catalog
  readonly expressions: ExpressionChecker
  /** `itself`: the recursive common table whose statement this is; its name means what the first part answers, in the others. */
  read(query: Get, outside: Scope, itself?: CommonTable | null): Answering<Get>
  write(write: Write, outside: Scope): Answering<Write>
  /** Refuses one more than the whole statement may read from. */
  countSource(source: Source | Nest): void
  /** Refuses more columns than the stars of the whole statement may stand for. */
  countWritten(columns: number): void
}
