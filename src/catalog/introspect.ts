/** Reads the live schema from a database: one statement, one round trip, one snapshot. */
import { buildCatalog } from './build.ts'
import type { Catalog } from './model.ts'
import { type CatalogOptions, catalogStatement, fingerprintStatement } from './statement.ts'

/** The database access that the catalog needs: text and text parameters in, rows of text cells out. */
export type Query = (
  text: string,
  parameters: readonly (string | null)[],
) => Promise<readonly (readonly (string | null)[])[]>

/**
 * Rejects with what `query` rejects with, or `CatalogError` when the configuration names a schema that does
 * not exist.
 */
export async function introspect(query: Query, options: CatalogOptions): Promise<Catalog> {
  const { text, parameters } = catalogStatement(options)
  return buildCatalog(await query(text, parameters), options)
}

/**
 * A text that changes exactly when `introspect` would answer something else: it is made from the same rows,
 * in the database. Data, statistics, grants, temporary tables and objects of other schemas do not touch it.
 */
export async function readFingerprint(query: Query, options: CatalogOptions): Promise<string> {
  const { text, parameters } = fingerprintStatement(options)
  const fingerprint = (await query(text, parameters))[0]?.[0]
  if (typeof fingerprint !== 'string') throw new Error('the fingerprint statement returned no row')
  return fingerprint
}
