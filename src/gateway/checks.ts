/**
 * The checks of a running gateway, for operators: the configuration that it runs with, and the lints of `svc
 * check` on its own database (docs/guides/checking.md#findings-of-a-running-gateway).
 */
import type { Query } from '../catalog/introspect.ts'
import type { Catalog } from '../catalog/model.ts'
import type { Config } from '../config/config.ts'
import { configNotes } from '../config/notes.ts'
import { type FindingReport, reportFindings } from '../finding.ts'
import { lintDatabase } from '../lint/lint-database.ts'
import { configFindings } from './boot.ts'
import { listFindings, unmatchedFindings } from './lists.ts'
import { tableFindings } from './table-settings.ts'

/** How long a report is used again: the lints of a large schema take seconds. */
export const CHECKS_KEPT_MS = 10_000

interface ChecksParts {
  readonly config: Config
  readonly query: Query
  readonly catalog: () => Catalog
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
}

/** Creates the function that runs the checks. Requests at the same time share one run. */
export function createChecks(parts: ChecksParts): () => Promise<FindingReport> {
  let last: { readonly at: number; readonly report: Promise<FindingReport> } | null = null
  return () => {
    if (last !== null && parts.now() - last.at < CHECKS_KEPT_MS) return last.report
    const report = runChecks(parts)
    last = { at: parts.now(), report }
    // A failure is not kept.
    report.catch(() => {
      if (last?.report === report) last = null
    })
    return report
  }
}

async function runChecks({ config, query, catalog }: ChecksParts): Promise<FindingReport> {
  const { findings, accepted } = await lintDatabase(query, config.gateway)
  return reportFindings(
    [
      ...(await configFindings(config)),
      ...configNotes(config),
      ...findings,
      ...(await unmatchedFindings(config, catalog())),
      ...tableFindings(config, catalog()),
      ...(await listFindings(config)),
    ],
    accepted,
  )
}
