/** A database for tests of lints: empty schemas, a role with a gateway's privileges, and the findings. */
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
  /** Connects as superuser. */
  readonly admin: Session
  /** Connects as role `app`, which can read and write all tables created here. */
  readonly app: Session
  /** Empties both schemas. */
  reset(): Promise<void>
  /** The findings as `app` sees them, without the finding about this server's version. */
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
