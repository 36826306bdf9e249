/** Runs writes so that they tell of themselves (`announce.ts`), and passes on what only this process learns: the rows as they were before. */

import { toldColumns } from '../compile/print-write.ts'
import type { BoundStatement, WriteStatement } from '../compile/statement.ts'
import { GatewayError } from '../errors.ts'
import { DatabaseError } from '../postgres/errors.ts'
import type { Command, Result, Row, RunningRequest } from '../postgres/types.ts'
import { createAnnouncer } from './announce.ts'
import { rebound } from './rebound.ts'

/** Who wants to know what rows were like. */
export interface RowsBefore {
  /** Somebody here subscribes to the table. */
  wants(table: string): boolean
  /** Of a write that has been committed; each row by its key, both as JSON text. */
  learn(txid: string, table: string, rows: ReadonlyMap<string, string>): void
}

export interface Announcements {
  /** `attempt` with `statements` as they tell, and what is to be run behind them; its results are those of the plain statements. It rejects with `GatewayError`. */
  run(
    statements: readonly BoundStatement<WriteStatement>[],
    attempt: (
      statements: readonly BoundStatement<WriteStatement>[],
      more: readonly Command[],
    ) => RunningRequest<readonly Result[]>,
  ): RunningRequest<readonly Result[]>
  /** Tells that rows of a table may have changed, no matter which. */
  doubt(table: string): Command
}

/** Texts that cannot tell, and are not tried again. */
const UNREADABLE_MAX = 1_000

const FEATURE_NOT_SUPPORTED = '0A000'

/**
 * The role may write the rows and not read their key; this row may be written and not seen (42501, whoever answers rows needs to see them). Or the table
 * has rules, which a statement that is part of another does not take.
 */
const CANNOT_TELL: ReadonlySet<string> = new Set(['42501', FEATURE_NOT_SUPPORTED])

/** Reports a missing privilege, which is the same for every row, in the server's aclchk.c. */
const ACL_CHECK = 'aclcheck_error'

interface Telling {
  readonly bound: BoundStatement<WriteStatement>
  /** Of whose rows it could tell, whether it does or not. */
  readonly table: string | undefined
  /** Columns behind the answer's own. */
  readonly extra: number
  readonly before: boolean
}

export interface AnnouncementsParts {
  /** Of this process. */
  readonly origin: string
  readonly rowsBefore: RowsBefore
  /** Whether triggers write down every change of a table, by resource name: nobody listens to what is told of it besides. */
  readonly isLogged: (table: string) => boolean
  /** The column that says whom a row of the table concerns, as far as that is known. */
  readonly routeBy: (table: string) => string | null
}

export function createAnnouncements({ origin, rowsBefore, isLogged, routeBy }: AnnouncementsParts): Announcements {
  const announcer = createAnnouncer(origin)
  const unreadable = new Set<string>()

  function tellingOf(bound: BoundStatement<WriteStatement>): Telling {
    const { own, text } = bound.statement
    if (own === null || own.telling === null) return { bound, table: undefined, extra: 0, before: false }
    const { resource, columnByName } = own.table
    if (unreadable.has(text) || isLogged(resource)) return { bound, table: resource, extra: 0, before: false }
    const before = own.telling.hasBefore && rowsBefore.wants(resource)
    const column = routeBy(resource)
    const route = column !== null && columnByName.has(column) ? column : null
    const told = rebound(bound, announcer.statementOf(bound.statement, before, route))
    return { bound: told, table: resource, extra: toldColumns(own.telling) + (before ? 2 : 0), before }
  }

  /** Tables of whose rows nothing is told. */
  function untold(
    statements: readonly BoundStatement<WriteStatement>[],
    isTold: (index: number) => boolean,
  ): readonly string[] {
    const tables: string[] = []
    const add = (table: string) => {
      if (!tables.includes(table) && !isLogged(table)) tables.push(table)
    }
    for (const [index, { statement }] of statements.entries()) {
      const { own, besides } = statement
      if (own !== null && own.telling !== null && !isTold(index)) add(own.table.resource)
      for (const table of besides) add(table)
    }
    return tables
  }

  function plainly(results: readonly Result[], written: readonly Telling[]): readonly Result[] {
    const txid = results[0]?.rows[0]?.[0]?.toString() ?? ''
    return results.map((result, index) => {
      const write = written[index - 1]
      if (write === undefined || write.extra === 0) return result
      if (write.before && write.table !== undefined) rowsBefore.learn(txid, write.table, beforeOf(result.rows))
      return { ...result, rows: result.rows.map(row => row.slice(0, -write.extra)) }
    })
  }

  return {
    doubt: announcer.bulk,
    run(statements, attempt) {
      const tellings = statements.map(tellingOf)
      const isTold = (index: number) => tellings[index]?.bound !== statements[index]
      const told = attempt(
        tellings.map(({ bound }) => bound),
        untold(statements, isTold).map(announcer.bulk),
      )
      let current = told
      let cancelled = false
      const again = async (error: unknown) => {
        const cause = error instanceof GatewayError ? error.cause : null
        if (cancelled || !(cause instanceof DatabaseError) || !tellings.some((_, index) => isTold(index))) throw error
        if (!CANNOT_TELL.has(cause.sqlstate)) throw error
        // Nothing is left of it. If the write itself is refused, it is refused again.
        current = attempt(statements, untold(statements, () => false).map(announcer.bulk))
        const results = await current.result
        if (cause.routine === ACL_CHECK || cause.sqlstate === FEATURE_NOT_SUPPORTED) {
          for (const { statement } of statements) if (unreadable.size < UNREADABLE_MAX) unreadable.add(statement.text)
        }
        return results
      }
      return {
        result: told.result.then(results => plainly(results, tellings), again),
        cancel() {
          cancelled = true
          current.cancel()
        },
      }
    },
  }
}

function beforeOf(rows: readonly Row[]): ReadonlyMap<string, string> {
  return new Map(
    rows.flatMap((row): (readonly [string, string])[] => {
      const key = row.at(-2)
      const before = row.at(-1)
      return key == null || before == null ? [] : [[key.toString(), before.toString()]]
    }),
  )
}
