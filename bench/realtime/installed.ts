/** Databases with schema `svc`, separate from the shared one, which is measured without triggers. */
import pg from 'pg'
import { installScript } from '../../src/install/script.ts'
import type { Database } from '../harness/database.ts'

export interface InstalledDatabase {
  /** Connects as the gateway's role. */
  readonly url: string
  /** Connects as superuser. */
  readonly adminUrl: string
}

export interface InstalledParts {
  readonly name: string
  /** SQL that creates its tables, with `$role` for the gateway's role. */
  readonly statements: readonly string[]
  /** Tables of `public`. */
  readonly captured: readonly string[]
}

export async function installedDatabase(
  database: Database,
  { name, statements, captured }: InstalledParts,
): Promise<InstalledDatabase> {
  const role = decodeURIComponent(new URL(database.url).username)
  await database.admin(`drop database if exists ${name} with (force)`)
  await database.admin(`create database ${name}`)
  const chosen = captured.map(table => ({ schema: 'public', table }))
  const client = new pg.Client({ connectionString: withName(database.adminUrl, name) })
  await client.connect()
  const script = [
    ...statements.map(text => text.replaceAll('$role', role)),
    ...installScript({ role, selected: chosen, superuser: true }),
  ]
  await client.query(['begin', ...script, 'commit'].join(';\n'))
  await client.end()
  return { url: withName(database.url, name), adminUrl: withName(database.adminUrl, name) }
}

function withName(url: string, name: string): string {
  const named = new URL(url)
  named.pathname = `/${name}`
  return named.href
}
