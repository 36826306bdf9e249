/** Runs statements under the settings of the one who asked: a transaction, a packet, a round trip (design 4). */
import type { Identity } from '../identity/identity.ts'
import type { Command, Database, Row, Running } from '../postgres/types.ts'
import { isStaleSchema, toGatewayError } from './errors.ts'
import type { SettingsSource } from './settings.ts'
import type { BoundStatement } from './statement.ts'

export type { Row } from '../postgres/types.ts'

export interface Runner {
  /** One result for each statement, all of one transaction. Rejects with a `GatewayError`. */
  read(identity: Identity, statements: readonly BoundStatement[]): Running<readonly (readonly Row[])[]>
  /** Rows as PostgreSQL produces them, batch by batch as they are taken; the connection is held until the end. */
  stream(identity: Identity, statement: BoundStatement): AsyncIterableIterator<readonly Row[]>
}

/** Rows asked for at a time in a stream: enough to keep PostgreSQL busy, little enough to hold. */
const STREAM_BATCH_ROWS = 1_000

export interface RunnerParts {
  readonly database: Database
  readonly settings: SettingsSource
  /** A statement named something that is not there any more: the schema has changed under it. */
  readonly onStaleSchema: () => void
}

export function createRunner({ database, settings, onStaleSchema }: RunnerParts): Runner {
  const fail = (error: unknown, statements: readonly BoundStatement[]): Promise<never> => {
    if (isStaleSchema(error)) onStaleSchema()
    return Promise.reject(toGatewayError(error, statements))
  }
  return {
    read(identity, statements) {
      const running = database.run([settings.forReading(identity), ...statements.map(toCommand)])
      return {
        result: running.result.then(
          ([, ...results]) => results.map(result => result.rows),
          error => fail(error, statements),
        ),
        cancel: () => running.cancel(),
      }
    },
    stream(identity, statement) {
      const rows = database.stream([settings.forReading(identity)], toCommand(statement), STREAM_BATCH_ROWS)
      return translating(rows, error => fail(error, [statement]))
    },
  }
}

/** Not a generator: `return` must reach the database while a batch is still awaited, or nothing could be cancelled. */
function translating(
  rows: AsyncIterableIterator<readonly Row[]>,
  fail: (error: unknown) => Promise<never>,
): AsyncIterableIterator<readonly Row[]> {
  return {
    next: () => rows.next().catch(fail),
    return: async () => (await rows.return?.()) ?? { done: true, value: undefined },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}

function toCommand({ statement, values }: BoundStatement): Command {
  return { text: statement.text, parameters: values }
}
