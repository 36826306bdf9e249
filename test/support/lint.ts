/** A database to lint: empty schemas, a role with the rights of a gateway, and what the lints say of it. */
import type { Finding } from '../../src/finding.ts'
import type { LintTarget } from '../../src/lint/lint.ts'
import { lintDatabase } from '../../src/lint/lint-database.ts'
import { openSession, type Session } from './catalog.ts'
import { testDatabase } from './postgres.ts'

export const TARGET: LintTarget = {
  schemas: ['public', 'sales'],
  exposedViews: [],
  tenantColumn: 'tenant_id',
  searchLanguage: 'english',
  acceptedFindings: [],
}

export interface LintedDatabase {
  /** Superuser. */
  readonly admin: Session
  /** Role `app`, which may read and write the tables that are made. */
  readonly app: Session
  /** Empties both schemas. */
  reset(): Promise<void>
  /** As `app` finds them, but for the version of this server, which is a matter of its own. */
  findings(target?: Partial<LintTarget>): Promise<readonly Finding[]>
  drop(): Promise<void>
}

export async function lintedDatabase(): Promise<LintedDatabase> {
  const database = await testDatabase()
  const admin = await openSession(database.adminUrl)
  const app = await openSession(database.url)
  return {
    admin,
    app,
    reset: () =>
      admin.run(`
        drop schema public cascade; drop schema if exists sales cascade;
        create schema public; create schema sales;
        grant usage on schema public, sales to app;
        alter default privileges grant select, insert, update, delete on tables to app`),
    async findings(target = {}) {
      const { findings } = await lintDatabase(app.query, { ...TARGET, ...target })
      return findings.filter(({ check }) => check !== 'version-reads-past-rls')
    },
    async drop() {
      await app.close()
      await admin.close()
      await database.drop()
    },
  }
}
