/** Resolves the names of tables and columns that clients write. */
import { type Catalog, resourceName, type Table } from '../catalog/model.ts'
import type { ShapeDefinition, WrittenShape } from './shape-request.ts'

/** A name of a table or a column, without the quotes. */
export interface WrittenName {
  readonly text: string
  readonly isQuoted: boolean
}

/** A shape with the names of its tables and columns. */
export interface NamedShape {
  readonly shape: ShapeDefinition
  /** The resource name of the table. */
  readonly resource: string
}

/** Folds a name to lower case as PostgreSQL does: only letters of ASCII. */
export function foldName(text: string): string {
  return text.replace(/[A-Z]+/g, letters => letters.toLowerCase())
}

/**
 * Resolves the names of a shape. A table without a schema is in the first published schema. Names that do not
 * exist stay as they are written, for the errors of later stages.
 */
export function nameShape({ schemas, tables }: Catalog, written: WrittenShape): NamedShape {
  const schema = written.schema === null ? null : nameOf(written.schema, name => schemas.includes(name))
  const resourceOf = (name: string): string => (schema === null ? name : resourceName({ schema, name }, schemas))
  // The resource name of a table in another schema contains a dot, which does not make it a name in this one.
  const find = (name: string): Table | undefined => {
    const found = tables.get(resourceOf(name))
    return found?.name === name ? found : undefined
  }
  const table = nameOf(written.table, name => find(name) !== undefined)
  const known = find(table)
  const namesOf = (columns: readonly WrittenName[] | null): readonly string[] | null =>
    columns?.map(name => nameOf(name, each => known?.columnByName.has(each) === true)) ?? null
  const queryable = namesOf(written.queryable)
  const columns = namesOf(written.columns) ?? queryable
  const missing = schema === null ? table : `${schema}.${table}`
  return { shape: { ...written, schema, table, columns, queryable }, resource: known?.resource ?? missing }
}

/** A name without quotes is looked up as written, and then in lower case. */
function nameOf({ text, isQuoted }: WrittenName, isKnown: (name: string) => boolean): string {
  const folded = foldName(text)
  return !isQuoted && !isKnown(text) && isKnown(folded) ? folded : text
}
