/**
 * The lowest OID of an object that was not created with the database cluster (PostgreSQL manual, System
 * Catalog Initial Data).
 */
export const FIRST_OWN_OID = 16_384
