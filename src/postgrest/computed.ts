/**
 * Functions of a row: one that returns a value computes a column of the row, and one that returns rows of a
 * table computes a relationship (PostgreSQL manual, 36.5.2).
 */
import { resultTable } from '../access/columns.ts'
import { isOfRow } from '../access/functions.ts'
import { type Catalog, type DatabaseFunction, resourceName, type Table } from '../catalog/model.ts'
import type { Relationship } from './relationship.ts'
import type { IsExposed } from './rpc/resolve.ts'

/** Finds the functions of a row in the schema of its table. */
export class Computed {
  readonly #catalog: Catalog
  readonly #isExposed: IsExposed

  constructor(catalog: Catalog, isExposed: IsExposed) {
    this.#catalog = catalog
    this.#isExposed = isExposed
  }

  /** The function that computes a column; null for none. */
  column(table: Table, name: string): DatabaseFunction | null {
    return this.#of(table, name).find(({ result, returnsSet }) => result.kind === 'scalar' && !returnsSet) ?? null
  }

  /** The relationship that a function computes; null for none. */
  relationship(table: Table, name: string): Relationship | null {
    for (const computed of this.#of(table, name)) {
      const to = resultTable(computed, this.#catalog)
      if (to === null) continue
      return {
        cardinality: computed.returnsSet && computed.oneRow !== true ? 'one-to-many' : 'many-to-one',
        ...{ from: table, to, columns: [], toColumns: [], constraint: computed.name, junction: null, computed },
      }
    }
    return null
  }

  #of(table: Table, name: string): readonly DatabaseFunction[] {
    const { schema } = table
    const overloads = this.#catalog.functions.get(resourceName({ schema, name }, this.#catalog.schemas)) ?? []
    return overloads.filter(of => of.schema === schema && isOfRow(of, table) && this.#isExposed(of))
  }
}
