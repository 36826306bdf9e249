/** Writes the commands of one request and tracks which of its statements the server has prepared. */
import { type DatabaseError, ProtocolError } from './errors.ts'
import type { FieldDescription } from './fields.ts'
import { isEncoded } from './parameters.ts'
import { type PreparedStatement, type PreparedStatements, unnamed } from './prepared-statements.ts'
import { writeBind, writeClose, writeDescribe, writeExecute, writeInput, writeParse } from './protocol/frontend.ts'
import type { Writer } from './protocol/writer.ts'
import type { Command } from './types.ts'

const NONE: readonly PreparedStatement[] = []

/**
 * "prepared statement … does not exist": a pooler switched sessions, or someone ran DEALLOCATE or DISCARD
 * ALL.
 */
const INVALID_STATEMENT_NAME = '26000'
const FEATURE_NOT_SUPPORTED = '0A000'
/**
 * Reports "cached plan must not change result type" in the server's plancache.c; the message itself is
 * localized.
 */
const REVALIDATE = 'RevalidateCachedQuery'

/**
 * Command tags of commands that a rollback undoes completely. A CALL or DO may have committed; COMMIT
 * certainly has.
 */
const UNDONE = /^((SELECT|INSERT|UPDATE|DELETE|MERGE) |(SET|RESET|SET CONSTRAINTS|UNLISTEN|DISCARD TEMP)$)/

/** The commands of one request as sent on one connection. */
export class CommandPlan {
  readonly #used: PreparedStatement[] = []
  #fresh: PreparedStatement[] | typeof NONE = NONE
  #parsed = 0
  #described = 0

  /** Writes Parse and Describe at the first use of the text on this connection; then Bind and Execute. */
  write(command: Command, rowsMax: number, writer: Writer, statements: PreparedStatements): void {
    const statement = statements.use(command.text)
    this.#used.push(statement)
    if (!statement.sent) this.#prepare(statement, writer)
    const { parameters, resultFormat = 'text' } = command
    writeBind(writer, statement.name, isEncoded(parameters) ? parameters.bytes : parameters, resultFormat)
    writeExecute(writer, rowsMax)
    // Without waiting for CopyInResponse: a server that refuses the command ignores both messages.
    if (command.input !== undefined) writeInput(writer, command.input)
  }

  /** Writes Parse and Describe without executing; nothing remains in the session. */
  writeDescribe(text: string, writer: Writer): void {
    const statement = unnamed(text)
    this.#prepare(statement, writer)
    writeClose(writer, 'statement', statement.name)
  }

  #prepare(statement: PreparedStatement, writer: Writer): void {
    this.#fresh = [...this.#fresh, statement]
    writeParse(writer, statement.name, statement.text)
    writeDescribe(writer, 'statement', statement.name)
    statement.sent = true
  }

  /** Returns false when the server confirms more than was requested. */
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
    return (this.#used[index] as PreparedStatement).fields
  }

  /**
   * Statements not confirmed do not exist: the server skipped them, or they were never sent. Those parsed but
   * not described – cancelled in between, or waiting too long for a lock – exist, but their columns are
   * unknown.
   */
  forgetUnconfirmed(statements: PreparedStatements): void {
    for (const statement of this.#fresh) {
      if (!statement.described) statements.forget(statement)
    }
  }

  /**
   * True if an error means only that a prepared statement has become invalid, and everything before it has
   * been rolled back: then the same commands can be sent again with new statements. An error in a function's
   * own statement has a context.
   */
  isStale(error: DatabaseError, tags: readonly string[], statements: PreparedStatements): boolean {
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

/** Records a ParseComplete. @throws ProtocolError if the request has no Parse that waits for it. */
export function confirmParse(plan: CommandPlan | null): void {
  if (plan?.parseComplete() !== true) throw new ProtocolError('the server confirmed a statement that was not prepared')
}

/**
 * Records the response to a Describe. @throws ProtocolError if the request has no Describe that waits for it.
 */
export function confirmDescription(plan: CommandPlan | null, fields: readonly FieldDescription[]): void {
  if (plan?.described(fields) !== true) throw new ProtocolError('the server described a statement without a request')
}
