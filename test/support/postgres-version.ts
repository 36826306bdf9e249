/** The PostgreSQL version under test: the embedded one, or one of the matrix (`npm run test:matrix`). */
import { basename } from 'node:path'
import { PLAIN_ROLE } from './roles.ts'

/**
 * A folder in which a platform package of another version is installed, named `postgresql-<version>`;
 * undefined for the embedded version.
 */
export const POSTGRES_FOLDER: string | undefined = process.env.SVC_TEST_POSTGRESQL

const EMBEDDED_MAJOR = 18

export const POSTGRES_MAJOR: number =
  POSTGRES_FOLDER === undefined ? EMBEDDED_MAJOR : Number(/^postgresql-(\d+)/.exec(basename(POSTGRES_FOLDER))?.[1])

/** SQL that PostgreSQL supports since a major version, and its replacement for older versions. */
export function sqlSince(major: number, sql: string, before = ''): string {
  return POSTGRES_MAJOR < major ? before : sql
}

/**
 * The option that makes a view run with its caller's rights. Empty before PostgreSQL 15, which introduced it.
 */
export const INVOKER: string = sqlSince(15, 'with (security_invoker)')

/**
 * Whether this PostgreSQL supports every clause of the statement: MERGE since 15, WHEN NOT MATCHED BY SOURCE
 * since 17.
 */
export function hasGrammarFor(sql: string): boolean {
  if (POSTGRES_MAJOR < 15 && sql.includes('MERGE INTO')) return false
  return POSTGRES_MAJOR >= 17 || !sql.includes('BY SOURCE')
}

/** Views created without `security_invoker` because this PostgreSQL does not support it. */
const LISTED_VIEWS = new Set<string>()

/**
 * The same statements without `security_invoker` before PostgreSQL 15. Their views then belong to the
 * gateway's role and run with its rights, so they must be listed in `exposedViews` to be published.
 */
export function forThisVersion(sql: string): string {
  if (POSTGRES_MAJOR >= 15) return sql
  return sql.replace(INVOKER_VIEW, (_, start: string, name: string, query: string) => {
    LISTED_VIEWS.add(name)
    return `${start}${query}; alter view ${name} owner to ${PLAIN_ROLE}`
  })
}

const INVOKER_VIEW = /\b(create (?:or replace )?view ([\w.]+)) with \(security_invoker(?: = (?:true|on))?\)([^;]*)/g

/** Lines of `[gateway]` that publish a test's views on every version of PostgreSQL. */
export function withViews(toml: string): string {
  if (POSTGRES_MAJOR >= 15) return toml
  const own = /^exposed_views = (\[.*\])$/m.exec(toml)
  const names = new Set(['monthly_sales', ...LISTED_VIEWS, ...JSON.parse(own?.[1] ?? '[]')])
  return `exposed_views = ${JSON.stringify([...names])}\n${toml.replace(own?.[0] ?? '', '')}`
}
