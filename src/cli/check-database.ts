/**
 * The database part of `svc check`: checks that the schema can be published, that policies and triggers match
 * it, and runs the lints.
 */
import { createPolicies, PolicyError } from '../access/policy/policies.ts'
import { introspect, type Query } from '../catalog/introspect.ts'
import type { Catalog } from '../catalog/model.ts'
import type { Config } from '../config/config.ts'
import type { Environment } from '../config/expand.ts'
import { policyFiles } from '../config/policy-files.ts'
import { ConfigError, printProblem } from '../config/problem.ts'
import type { Finding } from '../finding.ts'
import { feedError, feedTarget } from '../gateway/feed.ts'
import { unmatchedFindings } from '../gateway/lists.ts'
import { replicaFindings } from '../gateway/replica-findings.ts'
import { tableFindings } from '../gateway/table-settings.ts'
import { inspectInstallation, unusableFeed } from '../install/installation.ts'
import { installationProblem } from '../install/installed.ts'
import { findingAbout } from '../lint/finding-about.ts'
import { type DatabaseLints, lintDatabase } from '../lint/lint-database.ts'
import { lintPostgrest } from '../lint/postgrest.ts'
import { invalidExamples } from '../openapi/invalid-examples.ts'
import { createAddressGuard } from '../outbound/address-guard.ts'
import { loadTriggers } from '../webhooks/triggers.ts'
import { undeliverable } from '../webhooks/undeliverable.ts'
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
    const database = await openDatabase(databaseUrl, { preparedStatements, gssModule, timeoutMs: TIMEOUT_MS })
    try {
      // Rejects if the schema cannot be published, for example because a configured schema is missing.
      const catalog = await introspect(database.query, config.gateway)
      const policies = await policyFindings(config, catalog)
      const found = await installationOf(config, database.query)
      const triggers = await triggerFindings(config, catalog, capturedBy(found), environment)
      const { findings, accepted } = await lintDatabase(database.query, config.gateway)
      const examples = exampleFindings(catalog)
      const unmatched = await unmatchedFindings(config, catalog)
      return {
        findings: [
          ...findings,
          ...policies,
          ...triggers,
          ...installationFindings(found),
          ...examples,
          ...unmatched,
          ...tableFindings(config, catalog),
          ...(await replicaFindings(config, database.query, (url, text) => askReplica(config, url, text))),
          ...(postgrest ? await postgrestFindings(config, database.query, capturedBy(found)) : []),
        ],
        accepted,
      }
    } finally {
      await database.close()
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

/** The installation as a gateway uses it: only if its feed role can log in. */
async function installationOf(config: Config, ask: Query): Promise<Found> {
  const found = await inspectInstallation(ask)
  if (found === null || 'reason' in found) return found
  const target = feedTarget(config, found.feed)
  const feed = await openDatabase(target, config.gateway)
  try {
    await feed.query('SELECT 1', [])
    return found
  } catch (error) {
    return unusableFeed(feedError(target, error))
  } finally {
    await feed.close()
  }
}

async function policyFindings(config: Config, catalog: Catalog): Promise<readonly Finding[]> {
  try {
    const schema = () => ({ catalog, ...config.gateway })
    await createPolicies({ ...policyFiles(config), schema, onProblem: () => {} })
    return []
  } catch (failure) {
    if (!(failure instanceof PolicyError)) throw failure
    const fix = 'Correct the policy; the gateway does not start while it has problems.'
    return failure.problems.map(problem => error(printProblem(problem), fix))
  }
}

/** Invalid examples do not affect the API. */
function exampleFindings(catalog: Catalog): readonly Finding[] {
  const found = invalidExamples(catalog)
  if (found.length === 0) return []
  const about = {
    level: 'warning',
    what: 'Comments with an example that does not match its type',
    why: 'The OpenAPI document shows a generated example instead.',
    remedy: 'Correct the example, or remove the line.',
  } as const
  return [findingAbout(about, found)]
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

type Found = Awaited<ReturnType<typeof inspectInstallation>>

/** Findings about the installation; a missing installation is not one. */
function installationFindings(found: Found): readonly Finding[] {
  const problem = installationProblem(found)
  if (problem === null) return []
  // The gateway continues as if nothing were installed.
  const level = found !== null && 'reason' in found ? 'error' : 'warning'
  return [{ level, ...problem }]
}

/** The captured tables; null without an outbox. */
function capturedBy(found: Found): ReadonlySet<string> | null {
  return found === null || 'reason' in found ? null : found.captured
}

async function triggerFindings(
  { gateway, devMode }: Config,
  catalog: Catalog,
  captured: ReadonlySet<string> | null,
  environment: Environment,
): Promise<readonly Finding[]> {
  if (gateway.eventsPath === null) return []
  const loopback = devMode ? 'allowed' : 'refused'
  try {
    const triggers = await loadTriggers({
      file: gateway.eventsPath,
      catalog: () => catalog,
      captured: () => captured,
      environment,
    })
    return undeliverable(triggers, createAddressGuard({ allow: gateway.webhookAllow, loopback }))
  } catch (failure) {
    if (!(failure instanceof ConfigError)) throw failure
    const fix = 'Correct the triggers; the gateway does not start while they have problems.'
    return failure.problems.map(problem => error(printProblem(problem), fix))
  }
}

function error(message: string, fix: string): Finding {
  return { level: 'error', message, fix }
}
