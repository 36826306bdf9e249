/** The rows of an import as its readers return them, whatever their format. */
import type { StatementPart } from '../steps.ts'

/** A row that cannot be imported. */
export interface RowError {
  /** The line on which the record begins, from 1. */
  readonly line: number
  /** The column that the error is about; null if it is about the row, or unknown. */
  readonly column: string | null
  readonly message: string
}

/** Rows that one statement writes. */
export interface ImportBatch {
  /** The line of each row. */
  readonly lines: readonly number[]
  /** The statement that writes the rows from `start` up to `end`. */
  part(start: number, end: number): StatementPart | Promise<StatementPart>
  /** The column and the message of an error about one row. */
  explain(row: number, error: unknown): Promise<Pick<RowError, 'column'> & { readonly error: unknown }>
  /** Called when the rows are written, if the reader uses the memory for other rows. */
  release?(): void
}

/** Rows, or a record that is not a row. */
export type Imported =
  | { readonly kind: 'rows'; readonly batch: ImportBatch }
  | { readonly kind: 'error'; readonly error: RowError }

/**
 * Limit on the rows of one statement. While a statement runs, several blocks are collected for the next one,
 * because PostgreSQL pauses between statements, and each costs the gateway some milliseconds.
 */
export const BATCH_ROWS_MAX = 20_000
/** A statement takes no further block once its rows have this size. */
export const BATCH_BYTES: number = 1024 * 1024
