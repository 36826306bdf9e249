/**
 * The lowest OID of an object that was not created with the database cluster (PostgreSQL manual, System
 * Catalog Initial Data).
 */
export const FIRST_OWN_OID = 16_384

/** SQL for the OID of one of PostgreSQL's catalogs, as in `pg_depend.classid`. */
export const classOf = (catalog: string): string => `'pg_catalog.${catalog}'::regclass::oid`
