/** The checks at startup, which prevent it or log warnings (docs/guides/checking.md#at-startup). */
import type { Query } from '../catalog/introspect.ts'
import type { Config } from '../config/config.ts'
import { policyFindings } from '../config/policy-files.ts'
import { shareFindings } from '../config/share.ts'
import type { Emit } from '../events.ts'
import { asErrors, asWarnings, type Finding, printFinding } from '../finding.ts'
import { identityFindings } from '../identity/boot.ts'
import { bootDangers, lintDatabase } from '../lint/lint-database.ts'
import { connectionFindings } from '../ops/connections.ts'

/** The gateway cannot start with this configuration; `message` lists all necessary changes. */
export class BootError extends Error {
  readonly findings: readonly Finding[]

  constructor(findings: readonly Finding[]) {
    super(findings.map(printFinding).join('\n'))
    this.name = 'BootError'
    this.findings = findings
  }
}

/** The finding for a configuration without a database. */
export const NO_DATABASE: Finding = {
  level: 'error',
  message: 'no database is configured',
  fix: 'Set DATABASE_URL or [gateway] database_url to postgres://user:password@host:5432/database.',
}

/** All problems that can be found before anything is opened, so that they can be fixed together. */
export async function configFindings(config: Config): Promise<readonly Finding[]> {
  const missing = config.gateway.databaseUrl === null ? [NO_DATABASE] : []
  const settings = [...identityFindings(config), ...policyFindings(config), ...shareFindings(config)]
  return [...settings, ...missing, ...(await connectionFindings(config))]
}

/** Runs the lints of boot, or all lints of `svc check` with `strict`. */
export async function databaseFindings({ gateway }: Config, query: Query): Promise<readonly Finding[]> {
  if (gateway.strict) return (await lintDatabase(query, gateway, 'strict')).findings
  return asWarnings(await bootDangers(query, gateway))
}

/**
 * Warnings go to the log, and notes are for `svc check`; an error, or any finding under `strict`, ends the
 * start.
 */
export function report(findings: readonly Finding[], config: Config, emit: Emit): void {
  const judged = config.gateway.strict ? asErrors(findings) : findings
  const errors = judged.filter(finding => finding.level === 'error')
  if (errors.length > 0) throw new BootError(errors)
  for (const { level, message, fix } of judged) if (level !== 'note') emit({ kind: 'warning', message, fix })
}
