/** Writes that say what they did to each row, for whoever wants to know it once they are committed (specification 6.2). */
import type { Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Identity } from '../identity/identity.ts'
import { DatabaseError } from '../postgres/errors.ts'
import type { Happened } from './images.ts'
import { rebound } from './rebound.ts'
import type { Row, Runner, Running, Written } from './run.ts'
import type { BoundStatement, Captured, HiddenWrite, Statement } from './statement.ts'

export interface RowChange {
  readonly happened: Happened
  /** JSON objects of all columns; null where there is none. */
  readonly after: string | null
  readonly before: string | null
}

/** Who wants to know. Nothing here may throw or take long: the caller waits for the answer. */
export interface ChangeWatch {
  /** Names of those who want to know from us; what the database writes down by itself is nobody's here. */
  wants(table: Table, happened: readonly Happened[]): readonly string[]
  wantsHidden(write: HiddenWrite): boolean
  /** What a transaction did, after its commit, in the order of its statements, for those who wanted it when it began. */
  committed(table: Table, changes: readonly RowChange[], names: readonly string[]): void
  /** Rows of the table were changed, and nobody knows which. */
  unseen(table: Table): void
  /** Names of those for whom the database writes it down, within the write. */
  inOutbox(table: Table, happened: readonly Happened[]): readonly string[]
  /** It has written down something for them. */
  stored(names: readonly string[]): void
}

/** Of the answer, behind the statement's own. */
const IMAGE_COLUMNS = 3

export function captureChanges(runner: Runner, watch: ChangeWatch): Runner {
  const wanted = ({ statement: { captured } }: BoundStatement): Wanted | null => {
    const names = captured === undefined ? [] : watch.wants(captured.table, captured.happened)
    return captured === undefined || names.length === 0 ? null : { captured, names }
  }

  function write(
    identity: Identity,
    statements: readonly BoundStatement[],
    wants: readonly (Wanted | null)[],
  ): Running<readonly Written[]> {
    const capturing = statements.map((bound, index) => {
      const found = wants[index]
      return found == null ? bound : rebound(bound, found.captured.statement())
    })
    let current = runner.write(identity, capturing)
    let cancelled = false
    const seen = (written: readonly Written[]) =>
      written.map((result, index) => {
        const found = wants[index]
        if (found == null) return result
        watch.committed(found.captured.table, result.rows.map(toChange), found.names)
        return { ...result, rows: plainRows(result.rows) }
      })
    const unseen = (): void => {
      for (const found of wants) if (found !== null) watch.unseen(found.captured.table)
    }
    const again = async (error: unknown): Promise<readonly Written[]> => {
      if (isOversize(error)) {
        unseen()
        throw oversize(error)
      }
      if (cancelled || !isUnseen(error)) throw error
      // Nothing is left of it. If the write itself is refused, it is refused again.
      current = runner.write(identity, statements)
      const written = await current.result
      unseen()
      return written
    }
    return {
      result: current.result.then(seen, again),
      cancel() {
        cancelled = true
        current.cancel()
      },
    }
  }

  const stored = ({ statement: { captured } }: BoundStatement): readonly string[] =>
    captured === undefined ? [] : watch.inOutbox(captured.table, captured.happened)

  return {
    ...runner,
    write(identity, statements) {
      for (const { statement } of statements) refuseHidden(statement, watch)
      const wants = statements.map(wanted)
      const running = wants.some(found => found !== null)
        ? write(identity, statements, wants)
        : runner.write(identity, statements)
      // A second hearer of the same promise: whoever waits for the answer waits for nothing else.
      const names = statements.flatMap(stored)
      if (names.length > 0)
        running.result.then(
          () => watch.stored(names),
          () => {},
        )
      return running
    },
  }
}

interface Wanted {
  readonly captured: Captured
  readonly names: readonly string[]
}

/** To be silent about them would be worse: somebody relies on being told. */
function refuseHidden({ hidden = [] }: Statement, watch: ChangeWatch): void {
  for (const found of hidden) {
    if (!watch.wantsHidden(found)) continue
    throw new GatewayError(
      'FORBIDDEN',
      `a webhook is told of what happens to "${found.table.name}", which "with" cannot say; write it in a statement of its own`,
      { span: found.table.span },
    )
  }
}

/** Whoever may write a row need not be able to see it, nor all of its columns. A table with rules answers nothing of a statement within another. */
const CANNOT_SEE: ReadonlySet<string> = new Set(['42501', '0A000'])

function isUnseen(error: unknown): boolean {
  // A plan that has gone stale has 0A000 too, and is no answer.
  if (!(error instanceof GatewayError) || error.code === 'UNAVAILABLE') return false
  return error.cause instanceof DatabaseError && CANNOT_SEE.has(error.cause.sqlstate)
}

/** Ours, not the server's (postgres/unit.ts): the rows are more than can be held, and the change is probably made. */
function isOversize(error: unknown): error is GatewayError {
  if (!(error instanceof GatewayError) || !(error.cause instanceof DatabaseError)) return false
  return error.cause.sqlstate === '54000' && error.cause.routine === null
}

function oversize({ code, message, headers, cause }: GatewayError): GatewayError {
  return new GatewayError(code, message, {
    ...{ headers, cause },
    hint: 'the change may have been made or not; read the data before you send it again, and write fewer rows at a time: webhooks are told of each, as it is and as it was',
  })
}

function toChange(row: Row): RowChange {
  const [happened, after, before] = row.slice(-IMAGE_COLUMNS)
  return {
    happened: String(happened) as Happened,
    after: after?.toString() ?? null,
    before: before?.toString() ?? null,
  }
}

/** As the plain statement answers: without columns there are no rows. */
function plainRows(rows: readonly Row[]): readonly Row[] {
  return rows.map(row => row.slice(0, -IMAGE_COLUMNS)).filter(row => row.length > 0)
}
