/**
 * The checks of a configuration against its database, for `svc check` and for `/internal/checks`
 * (docs/guides/checking.md).
 */
import { createPolicies, PolicyError } from '../access/policy/policies.ts'
import type { Query } from '../catalog/introspect.ts'
import type { Catalog } from '../catalog/model.ts'
import type { Config } from '../config/config.ts'
import type { Environment } from '../config/expand.ts'
import { policyFiles } from '../config/policy-files.ts'
import { ConfigError, printProblem } from '../config/problem.ts'
import type { Finding } from '../finding.ts'
import { inspectInstallation, type OpenFeed, unusableFeed } from '../install/installation.ts'
import { installationProblem } from '../install/installed.ts'
import { readWalProblems } from '../install/wal-problems.ts'
import { findingAbout } from '../lint/finding-about.ts'
import { type DatabaseLints, lintDatabase } from '../lint/lint-database.ts'
import { invalidExamples } from '../openapi/invalid-examples.ts'
import { createAddressGuard } from '../outbound/address-guard.ts'
import { loadTriggers } from '../webhooks/triggers.ts'
import { undeliverable } from '../webhooks/undeliverable.ts'
import { unmatchedFindings } from './lists.ts'
import { sessionSettingsFindings } from './session-settings.ts'
import { tableFindings } from './table-settings.ts'

interface DatabaseParts {
  readonly query: Query
  readonly catalog: Catalog
  /** For the variables in the file of the triggers. */
  readonly environment: Environment
  /** Logs in as the feed role. */
  readonly openFeed: OpenFeed
}

/** The findings, and what further checks need. */
export interface DatabaseChecks extends DatabaseLints {
  /** The captured tables; null if there is no outbox. */
  readonly captured: ReadonlySet<string> | null
}

/** Runs the lints, and compares policies, triggers, allow-lists and tables with the schema. */
export async function checkAgainstSchema(config: Config, parts: DatabaseParts): Promise<DatabaseChecks> {
  const { query, catalog } = parts
  const policies = await policyMismatches(config, catalog)
  const found = await usableInstallation(parts)
  const captured = found === null || 'reason' in found ? null : found.captured
  const triggers = await triggerFindings(config, captured, parts)
  const { findings, accepted } = await lintDatabase(query, config.gateway)
  return {
    findings: [
      ...findings,
      ...policies,
      ...triggers,
      ...installationFindings(found),
      ...(await captureFindings(query, found)),
      ...exampleFindings(catalog),
      ...(await unmatchedFindings(config, catalog)),
      ...tableFindings(config, catalog),
      ...sessionSettingsFindings(config, catalog),
    ],
    ...{ accepted, captured },
  }
}

type Found = Awaited<ReturnType<typeof inspectInstallation>>

/** The installation as a gateway uses it: only if its feed role can log in. */
async function usableInstallation({ query, openFeed }: DatabaseParts): Promise<Found> {
  const found = await inspectInstallation(query)
  if (found === null || 'reason' in found) return found
  try {
    await openFeed(found.feed)
    return found
  } catch (error) {
    return unusableFeed(error)
  }
}

async function policyMismatches(config: Config, catalog: Catalog): Promise<readonly Finding[]> {
  try {
    const schema = () => ({ catalog, ...config.gateway })
    await createPolicies({ ...policyFiles(config), schema, onProblem: () => {} })
    return []
  } catch (failure) {
    if (!(failure instanceof PolicyError)) throw failure
    const fix = 'Correct the policy; the gateway does not start while it has problems.'
    return failure.problems.map(problem => ({ level: 'error', message: printProblem(problem), fix }))
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

/** Findings about the installation; a missing installation is not one. */
function installationFindings(found: Found): readonly Finding[] {
  const problem = installationProblem(found)
  if (problem === null) return []
  // The gateway continues as if nothing were installed.
  const level = found !== null && 'reason' in found ? 'error' : 'warning'
  return [{ level, ...problem }]
}

/** Obstacles to reading the write-ahead log, if changes are captured from there. */
async function captureFindings(query: Query, found: Found): Promise<readonly Finding[]> {
  if (found === null || 'reason' in found || !found.usesWal) return []
  const { problems } = await readWalProblems(query, { role: null, feed: found.feed, isGranted: false })
  if (problems.length === 0) return []
  const message = 'Changes cannot be read from the write-ahead log.'
  return [{ level: 'warning', message, fix: problems.join(' ') }]
}

async function triggerFindings(
  { gateway, devMode }: Config,
  captured: ReadonlySet<string> | null,
  { catalog, environment }: DatabaseParts,
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
    return failure.problems.map(problem => ({ level: 'error', message: printProblem(problem), fix }))
  }
}
