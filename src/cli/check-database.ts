/** The database part of `svc check`: whether the schema can be published, and fits the files. */
import { introspect, type Query } from '../catalog/introspect.ts'
import type { Config } from '../config/config.ts'
import type { Environment } from '../config/expand.ts'
import type { Finding } from '../finding.ts'
import { checkAgainstSchema } from '../gateway/database-checks.ts'
import { feedError, feedTarget } from '../gateway/feed.ts'
import { withPreConfig } from '../gateway/pre-config.ts'
import { replicaFindings } from '../gateway/replica-findings.ts'
import type { DatabaseLints } from '../lint/lint-database.ts'
import { lintPostgrest } from '../lint/postgrest.ts'
import { openDatabase } from './database.ts'
import { printFailure } from './failure.ts'

/** Reading a schema of 5 000 tables takes seconds on an idle machine. */
const TIMEOUT_MS = 120_000

/** Further checks. */
export interface CheckOptions {
  /** True to compare the database with what is served in PostgREST's dialect. */
  readonly postgrest: boolean
}

/** Checks the database. An unavailable database is a finding as well; never rejects. */
export async function checkDatabase(
  config: Config,
  environment: Environment,
  { postgrest }: CheckOptions,
): Promise<DatabaseLints> {
  const { databaseUrl, preparedStatements, gssModule } = config.gateway
  if (databaseUrl === null) {
    const fix = 'Set DATABASE_URL or [gateway] database_url to postgres://user:password@host:5432/database.'
    return { findings: [error('No database is configured.', fix)], accepted: 0 }
  }
  try {
    const { query, close } = await openDatabase(databaseUrl, { preparedStatements, gssModule, timeoutMs: TIMEOUT_MS })
    try {
      // Rejects if the schema cannot be published, for example because a configured schema is missing.
      const catalog = await introspect(query, {
        ...config.gateway,
        settingReaders: config.gateway.sessionSettings === 'readable',
      })
      const openFeed = (role: string) => logInAsFeed(config, role)
      const checks = await checkAgainstSchema(config, { query, catalog, environment, openFeed })
      return {
        findings: [
          ...checks.findings,
          ...(await replicaFindings(config, query, (url, text) => askReplica(config, url, text))),
          ...(postgrest ? await postgrestFindings(await withPreConfig(config, query), query, checks.captured) : []),
        ],
        accepted: checks.accepted,
      }
    } finally {
      await close()
    }
  } catch (failure) {
    const message = `The database cannot be checked: ${printFailure(failure)}`
    return { findings: [error(message, 'See database_url (DATABASE_URL) and schemas.')], accepted: 0 }
  }
}

async function askReplica({ gateway }: Config, url: string, text: string): ReturnType<Query> {
  const replica = await openDatabase(url, gateway)
  try {
    return await replica.query(text, [])
  } finally {
    await replica.close()
  }
}

/** Unlike the feed of a gateway, rejects with the first failure to connect. */
async function logInAsFeed(config: Config, role: string): Promise<Query> {
  const target = feedTarget(config, role)
  const { query, close } = await openDatabase(target, config.gateway)
  try {
    await query('SELECT 1', [])
    return query
  } catch (error) {
    throw feedError(target, error)
  } finally {
    await close()
  }
}

/** Rejects if a schema of `[postgrest]` is missing. */
async function postgrestFindings(
  { postgrest, gateway }: Config,
  ask: Query,
  captured: ReadonlySet<string> | null,
): Promise<readonly Finding[]> {
  const { enabled, schemas, anonRole, realtime } = postgrest
  const disabled: Finding = {
    level: 'note',
    message: "[postgrest] enabled is false: no request is served in PostgREST's dialect.",
    fix: 'Set enabled = true under [postgrest] to serve it.',
  }
  const closed: Finding = {
    level: 'note',
    message: '[postgrest] anon_role is not set: requests without a token are answered with 401.',
    fix: "Set anon_role to PostgREST's db-anon-role, if clients send requests without a token.",
  }
  const { acceptedFindings } = gateway
  await introspect(ask, { ...gateway, schemas, exposedViews: [], allViews: true })
  return [
    ...(enabled ? [] : [disabled]),
    ...(anonRole === null ? [closed] : []),
    ...(await lintPostgrest(ask, {
      ...postgrest,
      acceptedFindings,
      captured: realtime ? [...(captured ?? [])] : null,
    })),
  ]
}

function error(message: string, fix: string): Finding {
  return { level: 'error', message, fix }
}
