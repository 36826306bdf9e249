/** One value that the database makes of all rows, instead of the rows. */
import { quoteIdentifier } from '../language/sql/quote.ts'

/** The value, and the number of rows. The names are those of the catalog. */
export interface Folding {
  /** An aggregate over the rows, or for `features` a function that makes a GeoJSON feature of a row. */
  readonly function: QualifiedName
  readonly makes: 'value' | 'features'
  /** The table whose row type the aggregate takes; null if it takes rows of any type. */
  readonly row: QualifiedName | null
  /** True if the value is bytes, which are returned in hexadecimal. */
  readonly isBinary: boolean
}

/** The name of an object in its schema. */
export interface QualifiedName {
  readonly schema: string
  readonly name: string
}

/** The SQL of the value. `row`: the SQL of a row of the type that the function takes. */
export function printFolded({ function: of, makes, isBinary }: Folding, row: string): string {
  const called = `${qualified(of)}(${row})`
  if (makes === 'features') {
    const features = `coalesce(pg_catalog.json_agg(${called}::pg_catalog.json), '[]')`
    return `pg_catalog.json_build_object('type', 'FeatureCollection', 'features', ${features})`
  }
  return isBinary ? `pg_catalog.encode((${called})::bytea, 'hex')` : called
}

/** The SQL of a row of the type that the function takes. `row`: the SQL of a subquery's whole row. */
export function printFoldedRow({ row: type }: Folding, row: string): string {
  return type === null ? row : `${row}::${qualified(type)}`
}

function qualified({ schema, name }: QualifiedName): string {
  return `${quoteIdentifier(schema)}.${quoteIdentifier(name)}`
}
