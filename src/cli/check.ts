/**
 * `svc check`: everything that is wrong or dangerous about configuration and database, each with what mends it
 * (decisions 1).
 */
import { createPolicies, PolicyError } from '../access/policy/policies.ts'
import { introspect } from '../catalog/introspect.ts'
import type { Config, GatewayConfig } from '../config/config.ts'
import { unbuiltFindings } from '../config/findings.ts'
import { loadConfig } from '../config/load.ts'
import { policyFiles } from '../config/policy-files.ts'
import { printConfig } from '../config/print.ts'
import { printProblem } from '../config/problem.ts'
import { listFindings } from '../gateway.ts'
import { identityFindings } from '../identity/boot.ts'
import { databaseFindings } from '../ops/checks.ts'
import { asErrors, type Finding, printFinding } from '../ops/finding.ts'
import { parseUrl } from '../postgres/url.ts'
import { openDatabase } from './database.ts'
import { printFailure } from './failure.ts'
import { EXIT, type World } from './world.ts'

export interface CheckCommand {
  readonly file: string | undefined
  readonly print: boolean
}

/** Answers the exit code: 1 when a finding is an error. Rejects with `ConfigError`, which tells all problems itself. */
export async function check(command: CheckCommand, world: World): Promise<number> {
  const loaded = loadConfig({ ...world, file: command.file })
  const { config } = loaded
  if (command.print) world.out(printConfig(config))
  const findings = [
    ...unbuiltFindings(loaded),
    ...asErrors(identityFindings(config)),
    ...asErrors(await findingsOfDatabase(config)),
    ...findingsOfListener(config.gateway),
    ...(await listFindings(config)),
  ]
  for (const finding of findings) world.error(printFinding(finding))
  const errors = findings.filter(({ level }) => level === 'error').length
  world.error(
    `${config.file ?? 'no configuration file'}: ${count(errors, 'error')}, ${count(findings.length - errors, 'warning')}`,
  )
  return errors > 0 ? EXIT.failed : EXIT.ok
}

async function findingsOfDatabase(config: Config): Promise<readonly Finding[]> {
  const { gateway } = config
  const { databaseUrl, preparedStatements } = gateway
  if (databaseUrl === null) {
    return [
      error(
        'No database is configured.',
        'Set DATABASE_URL or [gateway] database_url to postgres://user:password@host:5432/database.',
      ),
    ]
  }
  const findings: Finding[] = []
  try {
    const database = openDatabase(databaseUrl, { preparedStatements })
    try {
      findings.push(...(await databaseFindings(database.query, gateway)))
      // Whether the schema can be published at all: one that is missing is found here.
      const catalog = await introspect(database.query, gateway)
      await createPolicies({ ...policyFiles(config), schema: () => ({ catalog, ...gateway }), onProblem: () => {} })
    } finally {
      await database.close()
    }
  } catch (failure) {
    if (failure instanceof PolicyError) {
      const fix = 'Mend the policy; while it has problems the gateway does not start.'
      return [...findings, ...failure.problems.map(problem => error(printProblem(problem), fix))]
    }
    findings.push(
      error(`The database cannot be checked: ${printFailure(failure)}`, 'See database_url (DATABASE_URL) and schemas.'),
    )
  }
  return findings
}

/** Parsed only: who can reach the database at all can listen. */
function findingsOfListener({ realtimeDatabaseUrl }: GatewayConfig): readonly Finding[] {
  if (realtimeDatabaseUrl === null) return []
  try {
    parseUrl(realtimeDatabaseUrl)
    return []
  } catch (failure) {
    return [
      error(`Changes of the schema cannot be listened for: ${printFailure(failure)}`, 'See realtime_database_url.'),
    ]
  }
}

function error(message: string, fix: string): Finding {
  return { level: 'error', message, fix }
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}
