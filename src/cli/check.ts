/**
 * `svc check`: everything that is wrong or dangerous about configuration and database, each with what mends it
 * (decisions 1).
 */
import type { GatewayConfig } from '../config/config.ts'
import { unbuiltFindings } from '../config/findings.ts'
import { loadConfig } from '../config/load.ts'
import { printConfig } from '../config/print.ts'
import { asErrors, type Finding } from '../finding.ts'
import { listFindings } from '../gateway.ts'
import { identityFindings } from '../identity/boot.ts'
import { parseUrl } from '../postgres/url.ts'
import { checkDatabase } from './check-database.ts'
import { printReport, reportOf } from './check-report.ts'
import { printFailure } from './failure.ts'
import { EXIT, type World } from './world.ts'

export interface CheckCommand {
  readonly file: string | undefined
  readonly print: boolean
  readonly json: boolean
}

/** Answers the exit code: 1 when a finding is an error. Rejects with `ConfigError`, which tells all problems itself. */
export async function check(command: CheckCommand, world: World): Promise<number> {
  const loaded = loadConfig({ ...world, file: command.file })
  const { config } = loaded
  if (command.print) world.out(printConfig(config))
  const database = await checkDatabase(config)
  const findings = [
    ...unbuiltFindings(loaded),
    ...asErrors(identityFindings(config)),
    ...database.findings,
    ...findingsOfListener(config.gateway),
    ...(await listFindings(config)),
  ]
  const report = reportOf(config.file, findings, database.accepted)
  if (command.json) world.out(JSON.stringify(report, null, 2))
  else for (const line of printReport(report)) world.error(line)
  return report.errors > 0 ? EXIT.failed : EXIT.ok
}

/** Parsed only: who can reach the database at all can listen. */
function findingsOfListener({ realtimeDatabaseUrl }: GatewayConfig): readonly Finding[] {
  if (realtimeDatabaseUrl === null) return []
  try {
    parseUrl(realtimeDatabaseUrl)
    return []
  } catch (failure) {
    const message = `Changes of the schema cannot be listened for: ${printFailure(failure)}`
    return [{ level: 'error', message, fix: 'See realtime_database_url.' }]
  }
}
