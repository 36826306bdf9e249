/** Names of tables and columns as clients write them, and the ones that they mean. */
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
 * Finds what the names of a shape mean. A table without a schema is one of the first published schema. Names
 * that do not exist stay as they are written, for the errors of later stages.
 */
export function nameShape({ schemas, tables }: Catalog, written: WrittenShape): NamedShape {
  const schema = written.schema === null ? null : nameOf(written.schema, name => schemas.includes(name))
  const resourceOf = (name: string): string => (schema === null ? name : resourceName({ schema, name }, schemas))
  // A table of another name cannot be addressed by a name that contains a dot.
  const find = (name: string): Table | undefined => {
    const found = tables.get(resourceOf(name))
    return found?.name === name ? found : undefined
  }
  const table = nameOf(written.table, name => find(name) !== undefined)
  const known = find(table)
  const columns = written.columns?.map(name => nameOf(name, each => known?.columnByName.has(each) === true)) ?? null
  const missing = schema === null ? table : `${schema}.${table}`
  return { shape: { ...written, schema, table, columns }, resource: known?.resource ?? missing }
}

/** A name without quotes is first the one that is written, and then that in lower case. */
function nameOf({ text, isQuoted }: WrittenName, isKnown: (name: string) => boolean): string {
  const folded = foldName(text)
  return !isQuoted && !isKnown(text) && isKnown(folded) ? folded : text
}
