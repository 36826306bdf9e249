/** The interface between an outbox insert, which the webhooks define, and the write that it is part of. */

/** An insert into the outbox. Its SQL contains only names from the catalog and the configuration. */
export interface OutboxInsert {
  /** Columns of the table that the insert needs in addition to the rows as JSON. */
  readonly columns: readonly string[]
  /**
   * Proves that the statement comes from a gateway. It is sent as a parameter, so that no other SQL of the
   * session can read it.
   */
  readonly ticket: string
  readonly statement: (rows: OutboxRows) => string
}

/** The written rows, as SQL expressions. */
export interface OutboxRows {
  readonly from: string
  /** The operation: one name for all rows, or a column of type text. */
  readonly operation: { readonly always: string } | { readonly column: string }
  /** Expressions of type json, over `from`; NULL if the write has no such row. */
  readonly after: string
  readonly before: string
  /** The parameter with the ticket. All calls return the same parameter. */
  ticket(): string
  /**
   * A column of the row after the write, or of the deleted row.
   *
   * @throws Error for a column that is not in `columns`.
   */
  column(name: string): string
}
