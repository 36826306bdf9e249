/** Writes the commands of one exchange and keeps the books on which of its statements the server has got to know. */
import type { DatabaseError } from './errors.ts'
import type { FieldDescription } from './fields.ts'
import { isEncoded } from './parameters.ts'
import { writeBind, writeClose, writeDescribe, writeExecute, writeParse } from './protocol/frontend.ts'
import type { Writer } from './protocol/writer.ts'
import { type Statement, type Statements, unnamed } from './statements.ts'
import type { Command } from './types.ts'

const NONE: readonly Statement[] = []

/** "prepared statement … does not exist": a pooler gave us another session, or somebody said DEALLOCATE or DISCARD ALL. */
const INVALID_STATEMENT_NAME = '26000'
const FEATURE_NOT_SUPPORTED = '0A000'
/** Reports "cached plan must not change result type" in the server's plancache.c; the message itself is localised. */
const REVALIDATE = 'RevalidateCachedQuery'

/** Command tags of what a rollback undoes completely. A CALL or DO may have committed; COMMIT certainly has. */
const UNDONE = /^((SELECT|INSERT|UPDATE|DELETE|MERGE) |(SET|RESET|SET CONSTRAINTS|UNLISTEN|DISCARD TEMP)$)/

export class Plan {
  readonly #used: Statement[] = []
  #fresh: Statement[] | typeof NONE = NONE
  #parsed = 0
  #described = 0

  /** Parse and Describe at the first use of the text on this connection; then Bind and Execute. */
  write(command: Command, rowsMax: number, writer: Writer, statements: Statements): void {
    const statement = statements.use(command.text)
    this.#used.push(statement)
    if (!statement.sent) this.#prepare(statement, writer)
    const { parameters, resultFormat = 'text' } = command
    writeBind(writer, statement.name, isEncoded(parameters) ? parameters.bytes : parameters, resultFormat)
    writeExecute(writer, rowsMax)
  }

  /** Parse and Describe without a use; nothing of it stays in the session. */
  writeDescribe(text: string, writer: Writer): void {
    const statement = unnamed(text)
    this.#prepare(statement, writer)
    writeClose(writer, 'statement', statement.name)
  }

  #prepare(statement: Statement, writer: Writer): void {
    this.#fresh = [...this.#fresh, statement]
    writeParse(writer, statement.name, statement.text)
    writeDescribe(writer, 'statement', statement.name)
    statement.sent = true
  }

  /** False when the server confirms more than it was asked for. */
  parseComplete(): boolean {
    const statement = this.#fresh[this.#parsed++]
    if (statement === undefined) return false
    statement.parsed = true
    return true
  }

  described(fields: readonly FieldDescription[]): boolean {
    const statement = this.#fresh[this.#described++]
    if (statement === undefined) return false
    statement.fields = fields
    statement.described = true
    return true
  }

  fields(index: number): readonly FieldDescription[] {
    return (this.#used[index] as Statement).fields
  }

  /**
   * What was not confirmed does not exist: the server skipped it, or it was never sent. What was parsed and not described
   * – cancelled in between, or it waited for a lock for too long – exists, and nobody knows its columns.
   */
  forgetUnconfirmed(statements: Statements): void {
    for (const statement of this.#fresh) {
      if (!statement.described) statements.forget(statement)
    }
  }

  /**
   * True if the error only says that a statement prepared earlier is of no use any more, and all that was done before
   * it has been undone with it: then the same commands, prepared anew, may be sent once more. What a function says of a
   * statement of its own has a context.
   */
  isStale(error: DatabaseError, tags: readonly string[], statements: Statements): boolean {
    const stale =
      (error.sqlstate === INVALID_STATEMENT_NAME && error.where === null) ||
      (error.sqlstate === FEATURE_NOT_SUPPORTED && error.routine === REVALIDATE)
    if (!stale) return false
    for (const statement of this.#used) {
      if (!this.#fresh.includes(statement)) statements.forget(statement)
    }
    return tags.every(tag => UNDONE.test(tag))
  }
}
