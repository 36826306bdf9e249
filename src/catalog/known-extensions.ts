/** Extensions of which it is known what their compiled functions do. */

/**
 * Extensions whose compiled functions neither read the settings of a caller nor run a text that they are
 * given, and change the session only if they are VOLATILE. Some others do: `pg_session_jwt` reads
 * `request.jwt.claims`, `tablefunc` runs texts, and `isn_weak` of `isn` sets a setting.
 */
const NAMES: readonly string[] = [
  ...['bloom', 'btree_gin', 'btree_gist', 'citext', 'cube', 'dblink', 'dict_int', 'dict_xsyn', 'earthdistance'],
  ...['file_fdw', 'fuzzystrmatch', 'hstore', 'intarray', 'lo', 'ltree', 'pg_stat_statements', 'pg_trgm'],
  ...['pgcrypto', 'plpgsql', 'postgis', 'postgres_fdw', 'seg', 'tcn', 'unaccent', 'uuid-ossp', 'vector'],
]

/** Their names as literals of SQL, separated by commas. */
export const KNOWN_EXTENSIONS: string = NAMES.map(name => `'${name}'`).join()
