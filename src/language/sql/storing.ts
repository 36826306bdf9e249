/** A statement within a write that writes down what it did: what its author says of it, and what the printer has for it. */

/** SQL of names in the catalogue and the configuration alone. */
export interface Storing {
  /** Columns of the table that the statement asks for, beside the rows as JSON. */
  readonly columns: readonly string[]
  /** Shows that the statement is a gateway's. A parameter, so that no other SQL of the session can read it. */
  readonly ticket: string
  readonly statement: (rows: RowsWritten) => string
}

/** The rows that the write wrote, in SQL. */
export interface RowsWritten {
  readonly from: string
  /** What happened to them: one word for all, or a column of text. */
  readonly happened: { readonly always: string } | { readonly column: string }
  /** Expressions of type json, over `from`; NULL where there is no such row. */
  readonly after: string
  readonly before: string
  /** The parameter with the ticket: one, however often it is asked for. */
  ticket(): string
  /** Of the row as the write leaves it, or of one that is deleted. Throws for what was not asked for. */
  column(name: string): string
}
