/**
 * Databases that nobody here wrote, with their rows, as files of SQL beside the project. They are dumps for psql: what only psql understands is
 * left out, and the rows of `COPY … FROM stdin` become INSERTs.
 */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { execute } from './execute.ts'
import { type TestDatabase, testDatabase } from './postgres.ts'

const FOLDER = fileURLToPath(new URL('../../../shared/data/', import.meta.url))

export const REAL_DATABASES = ['chinook', 'northwind', 'pagila'] as const

/** Why the files cannot be had; null when they can. */
export const REAL_DATA_MISSING: string | null = existsSync(FOLDER) ? null : `the databases of ${FOLDER} are not here`

/** A new database with the rows of one; the plain role may read everything. */
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

/** Loads may be at odds with autovacuum, or over roles with those of other files; who loses has been undone whole and tries again. */
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
/** So many rows in one INSERT. */
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

/** A line of COPY's text format (PostgreSQL manual, COPY) as the values of a row. */
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
