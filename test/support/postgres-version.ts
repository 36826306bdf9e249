/** The PostgreSQL that a run tests: the embedded one, or that of the matrix (`npm run test:matrix`). */
import { basename } from 'node:path'
import { PLAIN_ROLE } from './roles.ts'

/** A folder in which a platform package of another version is installed, named `postgresql-<version>`; undefined for the embedded one. */
export const POSTGRES_FOLDER: string | undefined = process.env.SVC_TEST_POSTGRESQL

const EMBEDDED_MAJOR = 18

export const POSTGRES_MAJOR: number =
  POSTGRES_FOLDER === undefined ? EMBEDDED_MAJOR : Number(/^postgresql-(\d+)/.exec(basename(POSTGRES_FOLDER))?.[1])

/** SQL that PostgreSQL understands since a major version, and what stands in its place before it. */
export function sqlSince(major: number, sql: string, before = ''): string {
  return POSTGRES_MAJOR < major ? before : sql
}

/** Makes a view run with its caller's rights; before PostgreSQL 15 there is no such view. */
export const INVOKER: string = sqlSince(15, 'with (security_invoker)')

/** Whether the grammar of this PostgreSQL has the statement, of all that the query language can say: it got MERGE in 15, and WHEN NOT MATCHED BY SOURCE in 17. */
export function hasGrammarFor(sql: string): boolean {
  if (POSTGRES_MAJOR < 15 && sql.includes('MERGE INTO')) return false
  return POSTGRES_MAJOR >= 17 || !sql.includes('BY SOURCE')
}

/** Views that were made without `security_invoker` because this PostgreSQL has none. */
const LISTED_VIEWS = new Set<string>()

/**
 * The same statements without `security_invoker` before PostgreSQL 15. Their views then belong to the gateway's role, with whose rights they run, and must be
 * listed to be published: `exposedViews`.
 */
export function forThisVersion(sql: string): string {
  if (POSTGRES_MAJOR >= 15) return sql
  return sql.replace(INVOKER_VIEW, (_, start: string, name: string, query: string) => {
    LISTED_VIEWS.add(name)
    return `${start}${query}; alter view ${name} owner to ${PLAIN_ROLE}`
  })
}

const INVOKER_VIEW = /\b(create (?:or replace )?view ([\w.]+)) with \(security_invoker(?: = (?:true|on))?\)([^;]*)/g

/** The lines of `[gateway]`, and in them what a gateway must be told to publish, so that the views of a test are published on every version. */
export function withViews(toml: string): string {
  if (POSTGRES_MAJOR >= 15) return toml
  const own = /^exposed_views = (\[.*\])$/m.exec(toml)
  const names = new Set(['monthly_sales', ...LISTED_VIEWS, ...JSON.parse(own?.[1] ?? '[]')])
  return `exposed_views = ${JSON.stringify([...names])}\n${toml.replace(own?.[0] ?? '', '')}`
}
