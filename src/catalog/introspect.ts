/** Reads the live schema from a database: one statement, one round trip, one snapshot. */
import { buildCatalog } from './build.ts'
import type { Catalog } from './model.ts'
import { type CatalogOptions, catalogStatement, fingerprintStatement } from './statement.ts'

/** Runs a statement with text parameters; returns rows of text cells. */
export type Query = (
  text: string,
  parameters: readonly (string | null)[],
) => Promise<readonly (readonly (string | null)[])[]>

/**
 * Reads the catalog. Rejects with the errors of `query`, or with `CatalogError` if the configuration contains
 * a schema that does not exist.
 */
export async function introspect(query: Query, options: CatalogOptions): Promise<Catalog> {
  const { text, parameters } = catalogStatement(options)
  return buildCatalog(await query(text, parameters), options)
}

/**
 * Reads a text that changes exactly when the result of `introspect` would: the database computes it from the
 * same rows. Data, statistics, grants, temporary tables and objects of other schemas do not affect it.
 */
export async function readFingerprint(query: Query, options: CatalogOptions): Promise<string> {
  const { text, parameters } = fingerprintStatement(options)
  const fingerprint = (await query(text, parameters))[0]?.[0]
  if (typeof fingerprint !== 'string') throw new Error('the fingerprint statement returned no row')
  return fingerprint
}
