/** The statement that lists what the database role of a request has privileges on. */
import { statement } from './print.ts'
import type { BoundStatement, CallStatement } from './statement.ts'
import { NO_TABLE_DEPENDENCIES } from './table-dependencies.ts'

/** The objects to test. */
export interface Candidates {
  readonly schema: string
  /** OIDs of tables and views. */
  readonly tables: readonly number[]
  /** OIDs of functions. */
  readonly functions: readonly number[]
}

/** A table is visible with any privilege on it or on a column, as in PostgreSQL's information schema. */
const TEXT = `
SELECT
  (SELECT pg_catalog.json_agg(t.oid::int8) FROM pg_catalog.unnest($1::oid[]) AS t(oid)
   WHERE pg_catalog.has_table_privilege(t.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
      OR pg_catalog.has_any_column_privilege(t.oid, 'SELECT, INSERT, UPDATE, REFERENCES')),
  (SELECT pg_catalog.json_agg(f.oid::int8) FROM pg_catalog.unnest($2::oid[]) AS f(oid)
   WHERE pg_catalog.has_function_privilege(f.oid, 'EXECUTE')),
  (SELECT pg_catalog.obj_description(n.oid, 'pg_namespace')
   FROM pg_catalog.pg_namespace AS n WHERE n.nspname = $3::name)`.trim()

const OIDS = { typeName: 'oid[]', type: null, subject: 'a list of OIDs', list: true } as const

const PRIVILEGES = statement<CallStatement>({
  kind: 'call',
  text: TEXT,
  parameters: [
    { key: 1, use: OIDS },
    { key: 2, use: OIDS },
    { key: 3, use: { typeName: 'name', type: null, subject: 'the name of a schema', list: false } },
  ],
  dependencies: NO_TABLE_DEPENDENCIES,
})

/**
 * Its only row has a JSON array of the OIDs of tables, one of the OIDs of functions (each NULL if there are
 * none), and the comment of the schema. The role is that of the session.
 */
export function privilegesOf({ schema, tables, functions }: Candidates): BoundStatement<CallStatement> {
  return { statement: PRIVILEGES, values: [`{${tables.join(',')}}`, `{${functions.join(',')}}`, schema] }
}
