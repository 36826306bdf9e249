/** Errors of the connection to PostgreSQL. They are independent of HTTP; one place above translates them. */
import type { ErrorFields } from './protocol/backend.ts'

export { ProtocolError } from './protocol/error.ts'

/**
 * The server refused a statement: the fields of its ErrorResponse (PostgreSQL manual, 54.8), null where it
 * sent none.
 */
export class DatabaseError extends Error {
  readonly sqlstate: string
  /** Not localized: `ERROR`, `FATAL`, `PANIC`. */
  readonly severity: string
  readonly detail: string | null
  readonly hint: string | null
  /** The position in the statement, in characters from 1. */
  readonly position: number | null
  readonly where: string | null
  readonly schema: string | null
  readonly table: string | null
  readonly column: string | null
  readonly dataType: string | null
  readonly constraint: string | null
  /**
   * The function in the server's source that reported the error: the only field that is neither localized nor
   * ambiguous.
   */
  readonly routine: string | null

  constructor(fields: ErrorFields) {
    super(fields.get('M') ?? 'the server sent no message')
    this.name = 'DatabaseError'
    this.sqlstate = fields.get('C') ?? 'XX000'
    this.severity = fields.get('V') ?? fields.get('S') ?? 'ERROR'
    this.detail = fields.get('D') ?? null
    this.hint = fields.get('H') ?? null
    this.position = Number(fields.get('P')) || null
    this.where = fields.get('W') ?? null
    this.schema = fields.get('s') ?? null
    this.table = fields.get('t') ?? null
    this.column = fields.get('c') ?? null
    this.dataType = fields.get('d') ?? null
    this.constraint = fields.get('n') ?? null
    this.routine = fields.get('R') ?? null
  }
}

/** A refusal by the gateway itself, with the SQLSTATE that PostgreSQL would use. */
export function refusal(sqlstate: string, message: string, hint: string): DatabaseError {
  return new DatabaseError(
    new Map([
      ['S', 'ERROR'],
      ['C', sqlstate],
      ['M', message],
      ['H', hint],
    ]),
  )
}

/**
 * No connection was available in time, or the connection broke. With `sent` the server may have executed the
 * statement; without, it certainly has not.
 */
export class UnavailableError extends Error {
  readonly sent: boolean

  constructor(message: string, sent: boolean, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'UnavailableError'
    this.sent = sent
  }
}

/** The server did not respond in time; the reason for destroying a connection. */
export class UnresponsiveError extends Error {
  constructor(ms: number) {
    super(`no response for ${ms} ms`)
    this.name = 'SilentError'
  }
}

/** The caller cancelled a running or waiting request. */
export class CancelledError extends Error {
  constructor() {
    super('the caller cancelled this request')
    this.name = 'CancelledError'
  }
}

/**
 * A connection could not be made. `permanent`: retrying cannot help until the configuration of gateway or
 * server changes (wrong password, unknown database, invalid certificate, a policy that forbids it).
 */
export class ConnectError extends Error {
  readonly permanent: boolean

  constructor(message: string, permanent: boolean, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'ConnectError'
    this.permanent = permanent
  }
}

/** The server is not of the kind that `target_session_attrs` requires. */
export class WrongServerError extends ConnectError {
  constructor(message: string) {
    super(message, false)
  }
}

/** No attempt was made, because attempts are blocked for some time. */
export class BlockedError extends ConnectError {
  readonly forMs: number

  constructor(message: string, forMs: number, cause?: unknown) {
    super(message, false, cause)
    this.forMs = forMs
  }
}

/** A connection URL is unusable, for all the reasons listed. No reason quotes the password. */
export class UrlError extends Error {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(`the database URL is invalid: ${problems.join('; ')}`)
    this.name = 'UrlError'
    this.problems = problems
  }
}
