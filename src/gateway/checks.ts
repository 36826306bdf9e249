/**
 * The checks of a running gateway, for operators: those of `svc check`, of the configuration that it runs
 * with and of its database (docs/guides/checking.md#findings-of-a-running-gateway).
 */
import type { Query } from '../catalog/introspect.ts'
import type { Catalog } from '../catalog/model.ts'
import type { Config } from '../config/config.ts'
import type { Environment } from '../config/expand.ts'
import { configNotes } from '../config/notes.ts'
import type { Emit } from '../events.ts'
import { type FindingReport, reportFindings } from '../finding.ts'
import { configFindings } from './boot.ts'
import { checkAgainstSchema } from './database-checks.ts'
import { createFeed } from './feed.ts'
import { listFindings } from './lists.ts'
import { providerFindings } from './providers.ts'

/** How long a report is used again: the lints of a large schema take seconds. */
export const CHECKS_KEPT_MS = 10_000

interface ChecksParts {
  readonly config: Config
  readonly query: Query
  readonly catalog: () => Catalog
  readonly environment: Environment
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
    // A failed report is not cached.
    report.catch(() => {
      if (last?.report === report) last = null
    })
    return report
  }
}

async function runChecks({ config, query, catalog, environment }: ChecksParts): Promise<FindingReport> {
  // Not the feed of the gateway: a check must not replace the connections that are in use.
  const feed = createFeed(config, SILENT)
  try {
    const parts = { query, catalog: catalog(), environment, openFeed: feed.open }
    const { findings, accepted } = await checkAgainstSchema(config, parts)
    return reportFindings(
      [
        ...(await configFindings(config)),
        ...(await providerFindings(config)),
        ...configNotes(config),
        ...findings,
        ...(await listFindings(config)),
      ],
      accepted,
    )
  } finally {
    await feed.close({ deadlineMs: 0 })
  }
}

/** A failure to connect is a finding. */
const SILENT: Emit = () => {}
