/**
 * Databases from other projects with their rows, as SQL files next to this repository. They are dumps for
 * psql: commands that only psql supports are removed, and the rows of `COPY … FROM stdin` become INSERT
 * statements.
 */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { execute } from './execute.ts'
import { type TestDatabase, testDatabase } from './postgres.ts'

const FOLDER = fileURLToPath(new URL('../../../shared/data/', import.meta.url))

export const REAL_DATABASES = ['chinook', 'northwind', 'pagila'] as const

/** The reason why the files cannot be used; null if they can. */
export const REAL_DATA_MISSING: string | null = existsSync(FOLDER) ? null : `the folder ${FOLDER} does not exist`

/** Creates a database with the schema and rows of one of these files. The plain role can read all tables. */
export async function realDatabase(name: (typeof REAL_DATABASES)[number]): Promise<TestDatabase> {
  const database = await testDatabase()
  await load(database.adminUrl, toStatements(await readFile(`${FOLDER}${name}.sql`, 'utf8')))
  await load(
    database.adminUrl,
    `grant select on all tables in schema public to app;
     grant execute on all functions in schema public to app;
     analyze;
     do $$ declare one record;
     begin
       for one in select oid::regclass as name from pg_class where relkind = 'm' loop
         execute format('refresh materialized view %s', one.name);
       end loop;
     end $$`,
  )
  return database
}

/**
 * A load can conflict with autovacuum, or with another load over shared roles. The loser is rolled back
 * completely and tries again.
 */
const TRIES = 5
const DEADLOCK = '40P01'

async function load(url: string, sql: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await execute(url, sql)
      return
    } catch (error) {
      if (tries === TRIES || (error as { readonly code?: unknown }).code !== DEADLOCK) throw error
    }
  }
}

const PSQL_ONLY = /^(?:DROP DATABASE|CREATE DATABASE|\\).*$/gm
const COPY = /^COPY (.*) FROM stdin;\n([\s\S]*?)^\\\.$/gm
/** The number of rows in one INSERT statement. */
const ROWS_MAX = 500

function toStatements(sql: string): string {
  return sql.replaceAll(COPY, (_, target: string, block: string) => toInserts(target, block)).replaceAll(PSQL_ONLY, '')
}

function toInserts(target: string, block: string): string {
  const rows = block.split('\n').filter(line => line !== '')
  const inserts: string[] = []
  for (let at = 0; at < rows.length; at += ROWS_MAX) {
    inserts.push(
      `INSERT INTO ${target} VALUES ${rows
        .slice(at, at + ROWS_MAX)
        .map(toTuple)
        .join(',')};`,
    )
  }
  return inserts.join('\n')
}

/** Parses a line of COPY's text format (PostgreSQL manual, COPY) into the values of a row. */
function toTuple(line: string): string {
  return `(${line
    .split('\t')
    .map(field => (field === '\\N' ? 'NULL' : `'${unescapeField(field).replaceAll("'", "''")}'`))
    .join(',')})`
}

const ESCAPES: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }

function unescapeField(field: string): string {
  return field.replaceAll(/\\(.)/g, (_, letter: string) => ESCAPES[letter] ?? letter)
}
