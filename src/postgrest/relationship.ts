/** A relationship leads from the rows of one table to those of another, so that they can be embedded. */
import type { DatabaseFunction, Table } from '../catalog/model.ts'

/** How many rows of one table belong to how many rows of the other. */
export type Cardinality = 'many-to-one' | 'one-to-one' | 'one-to-many' | 'many-to-many'

/** Leads from the rows of one table to those of another. */
export interface Relationship {
  readonly cardinality: Cardinality
  readonly from: Table
  readonly to: Table
  readonly columns: readonly string[]
  /** Columns of `to`, paired with `columns`, or with `junction.to`. */
  readonly toColumns: readonly string[]
  /** The foreign key; the first of two for a junction. */
  readonly constraint: string
  readonly junction: JunctionTable | null
  /** The function of a row that returns the related rows, if there is no key; columns are then empty. */
  readonly computed?: DatabaseFunction
}

/** A table with keys to both ends of a relationship. */
export interface JunctionTable {
  readonly table: Table
  readonly from: readonly string[]
  readonly to: readonly string[]
  /** The key to the other table. */
  readonly constraint: string
}

/** Reports whether at most one row belongs to each row. */
export function isToOne({ cardinality }: Relationship): boolean {
  return cardinality === 'many-to-one' || cardinality === 'one-to-one'
}
