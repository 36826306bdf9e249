/**
 * `svc check` (docs/guides/checking.md): reports everything that is wrong or dangerous about configuration
 * and database, each with its fix.
 */
import { loadConfig } from '../config/load.ts'
import { configNotes } from '../config/notes.ts'
import { policyFindings } from '../config/policy-files.ts'
import { printConfig } from '../config/print.ts'
import { shareFindings } from '../config/share.ts'
import { asErrors } from '../finding.ts'
import { listFindings } from '../gateway/lists.ts'
import { providerFindings } from '../gateway/providers.ts'
import { identityFindings } from '../identity/boot.ts'
import { connectionFindings, connectionPolicies } from '../ops/connections.ts'
import { type CheckOptions, checkDatabase } from './check-database.ts'
import { printReport, reportOf } from './check-report.ts'
import { EXIT, type World } from './world.ts'

export interface CheckCommand extends CheckOptions {
  readonly file: string | undefined
  readonly print: boolean
  readonly json: boolean
}

/**
 * Returns the exit code: 1 when a finding is an error. Rejects with `ConfigError`, which lists all problems
 * itself.
 */
export async function check(command: CheckCommand, world: World): Promise<number> {
  const { config } = loadConfig({ ...world, file: command.file })
  if (command.print) world.out(printConfig(config))
  const unreachable = await connectionFindings(config)
  // Findings about the database are meaningless while it cannot be queried.
  const database =
    unreachable.length > 0
      ? { findings: unreachable, accepted: 0 }
      : await checkDatabase(config, world.environment, command)
  const findings = [
    ...asErrors(identityFindings(config)),
    ...(await providerFindings(config)),
    ...policyFindings(config),
    ...configNotes(config),
    ...shareFindings(config),
    ...database.findings,
    ...(await listFindings(config)),
  ]
  const report = reportOf(config.file, {
    findings,
    accepted: database.accepted,
    connections: connectionPolicies(config),
  })
  if (command.json) world.out(JSON.stringify(report, null, 2))
  else for (const line of printReport(report, world)) world.out(line)
  return report.errors > 0 ? EXIT.failed : EXIT.ok
}
