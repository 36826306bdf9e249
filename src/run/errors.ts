/** Turns what PostgreSQL and the pool say into what a caller is told (specification 7, decisions 8). */
import { GatewayError } from '../errors.ts'
import { CancelledError, DatabaseError, UnavailableError } from '../postgres/errors.ts'
import type { BoundStatement } from './statement.ts'

/** Seconds a client should wait before it tries again. */
const RETRY_AFTER = { 'Retry-After': '1' }

/** `statements`: what ran, for errors about one of its values. */
export function toGatewayError(error: unknown, statements: readonly BoundStatement[]): unknown {
  if (error instanceof DatabaseError) return fromDatabase(error, statements)
  if (error instanceof UnavailableError)
    return unavailable('the database is not available at the moment; try again', error)
  if (error instanceof CancelledError) return new GatewayError('TIMEOUT', 'the request was cancelled', { cause: error })
  return error
}

/** Undefined column, table, object; invalid schema (manual, appendix A): every name came from the catalogue, so that is out of date. */
const STALE: ReadonlySet<string> = new Set(['42703', '42P01', '42704', '3F000'])

export function isStaleSchema(error: unknown): boolean {
  return error instanceof DatabaseError && STALE.has(error.sqlstate)
}

function unavailable(message: string, cause: unknown): GatewayError {
  return new GatewayError('UNAVAILABLE', message, { headers: RETRY_AFTER, cause })
}

function fromDatabase(error: DatabaseError, statements: readonly BoundStatement[]): GatewayError {
  const extras = {
    details: detailsOf(error),
    ...(error.hint === null ? {} : { hint: error.hint }),
    cause: error,
  }
  switch (error.sqlstate) {
    case '57014':
      return new GatewayError(
        'TIMEOUT',
        'the query took longer than statement_timeout_ms allows and was cancelled',
        extras,
      )
    case '42501':
      return new GatewayError('FORBIDDEN', error.message, extras)
  }
  switch (error.sqlstate.slice(0, 2)) {
    // Data exceptions while a value was read are about the value; others are about the data.
    case '22': {
      const value = refusedValue(error, statements)
      return value === null
        ? new GatewayError('QUERY_ERROR', error.message, extras)
        : new GatewayError('PARSE_ERROR', value, extras)
    }
    // Connection, resources, operator intervention, system: not the request's fault, and it may pass.
    case '08':
    case '53':
    case '57':
    case '58':
      return unavailable(`the database cannot answer at the moment (${error.sqlstate}); try again`, error)
    case 'XX':
      return new GatewayError('INTERNAL', 'the database reported an internal error', { cause: error })
    default:
      return new GatewayError('QUERY_ERROR', error.message, extras)
  }
}

function detailsOf(error: DatabaseError): Record<string, string | null> {
  return {
    sqlstate: error.sqlstate,
    table: error.table,
    column: error.column,
    constraint: error.constraint,
  }
}

/**
 * A message about the value that PostgreSQL could not read as its column's type. It says which in the error's context
 * ("unnamed portal parameter $2"); with a single parameter there is nothing to choose.
 */
function refusedValue(error: DatabaseError, statements: readonly BoundStatement[]): string | null {
  const named = /parameter \$(\d+)/.exec(error.where ?? '')
  if (named === null) return null
  const index = Number(named[1]) - 1
  for (const { statement, values } of statements) {
    const parameter = statement.parameters[index]
    const value = values[index]
    // Statements of one request run in order and share nothing but the request; the value is the one the message quotes.
    if (parameter === undefined || value === undefined) continue
    const { column, typeName, type, list } = parameter.use
    const what = list ? `a list of ${typeName}` : typeName
    const where = column === null ? 'the value' : `column "${column}" is ${what} and`
    const labels = type?.kind === 'enum' ? `; expected one of ${type.labels.join(', ')}` : ''
    return `${where} cannot hold "${value.length > 80 ? `${value.slice(0, 80)}…` : value}": ${error.message}${labels}`
  }
  return null
}
