/** What can go wrong between us and PostgreSQL. None of these know HTTP; one place above translates them. */
import type { ErrorFields } from './protocol/backend.ts'

export { ProtocolError } from './protocol/error.ts'

/** The server refused a statement: the fields of its ErrorResponse (PostgreSQL manual, 54.8), null where it sent none. */
export class DatabaseError extends Error {
  readonly sqlstate: string
  /** Not localised: `ERROR`, `FATAL`, `PANIC`. */
  readonly severity: string
  readonly detail: string | null
  readonly hint: string | null
  /** 1-based, in characters of the statement. */
  readonly position: number | null
  readonly where: string | null
  readonly schema: string | null
  readonly table: string | null
  readonly column: string | null
  readonly dataType: string | null
  readonly constraint: string | null
  /** The function of the server's source that reported it: the only part that is neither localised nor ambiguous. */
  readonly routine: string | null

  constructor(fields: ErrorFields) {
    super(fields.get('M') ?? 'the server gave no message')
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

/** A refusal of our own, in the form and under the SQLSTATE that PostgreSQL would use for it. */
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
 * No connection in time, or the connection broke. With `sent` the server may or may not have done the work; without,
 * it certainly has not.
 */
export class UnavailableError extends Error {
  readonly sent: boolean

  constructor(message: string, sent: boolean, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'UnavailableError'
    this.sent = sent
  }
}

/** The server has not answered in time. The reason for which a connection was destroyed. */
export class SilentError extends Error {
  constructor(ms: number) {
    super(`no answer for ${ms} ms`)
    this.name = 'SilentError'
  }
}

/** The caller asked for it: `cancel()` of what was running or waiting. */
export class CancelledError extends Error {
  constructor() {
    super('the caller cancelled this')
    this.name = 'CancelledError'
  }
}

/**
 * A connection could not be made. `permanent`: trying again cannot help until somebody changes the configuration here
 * or in the server (wrong password, unknown database, a certificate that does not verify, a policy that forbids).
 */
export class ConnectError extends Error {
  readonly permanent: boolean

  constructor(message: string, permanent: boolean, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'ConnectError'
    this.permanent = permanent
  }
}

/** Nothing was tried: it is known to be of no use before so many milliseconds have passed. */
export class BlockedError extends ConnectError {
  readonly forMs: number

  constructor(message: string, forMs: number, cause?: unknown) {
    super(message, false, cause)
    this.forMs = forMs
  }
}

/** A connection URL that cannot be used, with everything that is wrong with it. No problem quotes the password. */
export class UrlError extends Error {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(`the database URL cannot be used: ${problems.join('; ')}`)
    this.name = 'UrlError'
    this.problems = problems
  }
}
