/** The PostgreSQL that a run tests: the embedded one, or that of the matrix (`npm run test:matrix`). */
import { basename } from 'node:path'

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

/** Views that were made without `security_invoker` because this PostgreSQL has none. */
const LISTED_VIEWS = new Set<string>()

/** The same statements without `security_invoker` before PostgreSQL 15; `exposedViews` then has the views. */
export function forThisVersion(sql: string): string {
  if (POSTGRES_MAJOR >= 15) return sql
  return sql.replace(/\bview (\w+) with \(security_invoker(?: = true)?\)/g, (_, name: string) => {
    LISTED_VIEWS.add(name)
    return `view ${name}`
  })
}

/** What a gateway must be told to publish, so that the views of a test are published on every version. */
export function exposedViews(): readonly string[] {
  return [...LISTED_VIEWS]
}
