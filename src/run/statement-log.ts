/** Emits the texts of executed statements, for the log at level debug. */
import type { Emit } from '../events.ts'
import type { ObserveStatements } from './observed-statements.ts'

/** The dependencies of the statement log. */
export interface StatementLogParts {
  readonly emit: Emit
  /** The id of the request being processed; null for the gateway's own work. */
  readonly requestId: () => string | null
}

/** Creates the observer that logs statements. */
export function createStatementLog({ emit, requestId }: StatementLogParts): ObserveStatements {
  return statements => {
    const started = performance.now()
    const id = requestId()
    const sql = statements.map(({ text }) => text)
    return () =>
      emit({ kind: 'statement', requestId: id, sql, durationMs: Math.round((performance.now() - started) * 100) / 100 })
  }
}
