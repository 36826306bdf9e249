/** What keeps the gateway from starting, or is said at its start (decisions 1). */
import type { Query } from '../catalog/introspect.ts'
import type { Config } from '../config/config.ts'
import type { Emit } from '../events.ts'
import { asErrors, asWarnings, type Finding, printFinding } from '../finding.ts'
import { bootDangers, lintDatabase } from '../lint/lint-database.ts'

/** The gateway cannot start as it is configured; `message` says all of what to change. */
export class BootError extends Error {
  constructor(findings: readonly Finding[]) {
    super(findings.map(printFinding).join('\n'))
    this.name = 'BootError'
  }
}

/** `strict` looks at everything that `svc check` looks at; who only wants to start does not wait for that. */
export async function databaseFindings({ gateway }: Config, query: Query): Promise<readonly Finding[]> {
  if (gateway.strict) return (await lintDatabase(query, gateway)).findings
  return asWarnings(await bootDangers(query, gateway))
}

/** Warnings go to the log; an error, or any finding under `strict`, ends the start (decisions 1). */
export function report(findings: readonly Finding[], config: Config, emit: Emit): void {
  const judged = config.gateway.strict ? asErrors(findings) : findings
  const errors = judged.filter(finding => finding.level === 'error')
  if (errors.length > 0) throw new BootError(errors)
  for (const { message, fix } of judged) emit({ kind: 'warning', message, fix })
}
