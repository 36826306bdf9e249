/**
 * Runs writes with notifications (`write-notifications.ts`), and passes on the old row images, which only
 * this process receives.
 */

import { notificationColumns } from '../compile/print-write.ts'
import type { BoundStatement, WriteStatement } from '../compile/statement.ts'
import { GatewayError } from '../errors.ts'
import { DatabaseError } from '../postgres/errors.ts'
import type { Command, Result, ResultRow, RunningRequest } from '../postgres/types.ts'
import { rebind } from './rebind.ts'
import { createWriteNotifier } from './write-notifications.ts'

/** Receives old row images. */
export interface OldImages {
  /** Reports whether this process has a subscription to the table. */
  wants(table: string): boolean
  /** The old rows of a committed write by key, both as JSON text. */
  store(txid: string, table: string, rows: ReadonlyMap<string, string>): void
}

/** Runs writes with notifications. */
export interface NotifyingWrites {
  /**
   * Runs `attempt` with the notifying forms of `statements`; its results are those of the plain statements.
   * Rejects with `GatewayError`.
   */
  run(
    statements: readonly BoundStatement<WriteStatement>[],
    attempt: (
      statements: readonly BoundStatement<WriteStatement>[],
      more: readonly Command[],
    ) => RunningRequest<readonly Result[]>,
  ): RunningRequest<readonly Result[]>
  /** Notifies that unspecified rows of a table may have changed. */
  doubt(table: string): Command
}

/** Limit on texts that are known to be unable to notify. */
const UNNOTIFIABLE_MAX = 1_000

const FEATURE_NOT_SUPPORTED = '0A000'

/**
 * The role may write rows without reading their key, or write a row that it cannot see (42501, because
 * returned rows must be visible). Or the table has rules, which a statement within another does not apply.
 */
const CANNOT_NOTIFY: ReadonlySet<string> = new Set(['42501', FEATURE_NOT_SUPPORTED])

/**
 * The function in the server's aclchk.c that reports a missing privilege, which is the same for every row.
 */
const ACL_CHECK = 'aclcheck_error'

interface NotifyingForm {
  readonly bound: BoundStatement<WriteStatement>
  /** The table whose rows it could notify of, whether it does or not. */
  readonly table: string | undefined
  /** The number of columns that follow those of the result. */
  readonly extra: number
  readonly before: boolean
}

/** The dependencies of notifying writes. */
export interface NotifyingWritesParts {
  /** The identifier of this process. */
  readonly origin: string
  readonly rowsBefore: OldImages
  /**
   * Reports whether every change of a table is captured, by resource name; its writes need no notification.
   */
  readonly isLogged: (table: string) => boolean
  /** The routing column of a table, if known. */
  readonly routeBy: (table: string) => string | null
}

/** Creates the wrapper that makes writes notify. */
export function createNotifyingWrites({
  origin,
  rowsBefore,
  isLogged,
  routeBy,
}: NotifyingWritesParts): NotifyingWrites {
  const notifier = createWriteNotifier(origin)
  const unreadable = new Set<string>()

  function formOf(bound: BoundStatement<WriteStatement>): NotifyingForm {
    const { own, text } = bound.statement
    if (own === null || own.notification === null) return { bound, table: undefined, extra: 0, before: false }
    const { resource, columnByName } = own.table
    if (unreadable.has(text) || isLogged(resource)) return { bound, table: resource, extra: 0, before: false }
    const before = own.notification.hasBefore && rowsBefore.wants(resource)
    const column = routeBy(resource)
    const route = column !== null && columnByName.has(column) ? column : null
    const notifying = rebind(bound, notifier.statementOf(bound.statement, before, route))
    return {
      bound: notifying,
      table: resource,
      extra: notificationColumns(own.notification) + (before ? 2 : 0),
      before,
    }
  }

  /** Tables whose rows are not notified of individually. */
  function unnotified(
    statements: readonly BoundStatement<WriteStatement>[],
    isNotified: (index: number) => boolean,
  ): readonly string[] {
    const tables: string[] = []
    const add = (table: string) => {
      if (!tables.includes(table) && !isLogged(table)) tables.push(table)
    }
    for (const [index, { statement }] of statements.entries()) {
      const { own, otherTables } = statement
      if (own !== null && own.notification !== null && !isNotified(index)) add(own.table.resource)
      for (const table of otherTables) add(table)
    }
    return tables
  }

  function withoutNotifications(results: readonly Result[], written: readonly NotifyingForm[]): readonly Result[] {
    const txid = results[0]?.rows[0]?.[0]?.toString() ?? ''
    return results.map((result, index) => {
      const write = written[index - 1]
      if (write === undefined || write.extra === 0) return result
      if (write.before && write.table !== undefined) rowsBefore.store(txid, write.table, beforeOf(result.rows))
      return { ...result, rows: result.rows.map(row => row.slice(0, -write.extra)) }
    })
  }

  return {
    doubt: notifier.bulk,
    run(statements, attempt) {
      const forms = statements.map(formOf)
      const isNotified = (index: number) => forms[index]?.bound !== statements[index]
      const first = attempt(
        forms.map(({ bound }) => bound),
        unnotified(statements, isNotified).map(notifier.bulk),
      )
      let current = first
      let cancelled = false
      const again = async (error: unknown) => {
        const cause = error instanceof GatewayError ? error.cause : null
        if (cancelled || !(cause instanceof DatabaseError) || !forms.some((_, index) => isNotified(index))) throw error
        if (!CANNOT_NOTIFY.has(cause.sqlstate)) throw error
        // The attempt was rolled back. If the write itself is refused, it is refused again.
        current = attempt(statements, unnotified(statements, () => false).map(notifier.bulk))
        const results = await current.result
        if (cause.routine === ACL_CHECK || cause.sqlstate === FEATURE_NOT_SUPPORTED) {
          for (const { statement } of statements) if (unreadable.size < UNNOTIFIABLE_MAX) unreadable.add(statement.text)
        }
        return results
      }
      return {
        result: first.result.then(results => withoutNotifications(results, forms), again),
        cancel() {
          cancelled = true
          current.cancel()
        },
      }
    },
  }
}

function beforeOf(rows: readonly ResultRow[]): ReadonlyMap<string, string> {
  return new Map(
    rows.flatMap((row): (readonly [string, string])[] => {
      const key = row.at(-2)
      const before = row.at(-1)
      return key == null || before == null ? [] : [[key.toString(), before.toString()]]
    }),
  )
}
