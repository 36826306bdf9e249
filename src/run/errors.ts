/** Turns what PostgreSQL and the pool say into what a caller is told (specification 7, decisions 8). */
import { baseOf } from '../access/types.ts'
import { GatewayError } from '../errors.ts'
import { CancelledError, DatabaseError, UnavailableError } from '../postgres/errors.ts'
import { shorten } from '../shorten.ts'
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

/** A value may name what is not there too, as one for a column of type `regclass` does; that says nothing about the catalogue. */
export function isStaleSchema(error: unknown): boolean {
  return error instanceof DatabaseError && STALE.has(error.sqlstate) && refusedParameter(error) === null
}

function unavailable(message: string, cause: unknown): GatewayError {
  return new GatewayError('UNAVAILABLE', message, { headers: RETRY_AFTER, cause })
}

function fromDatabase(error: DatabaseError, statements: readonly BoundStatement[]): GatewayError {
  const hint = hintOf(error)
  const extras = { details: detailsOf(error), ...(hint === null ? {} : { hint }), cause: error }
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
    // Connection, conflict, resources, operator intervention, system: not the request's fault, and it may pass.
    case '08':
    case '40':
    case '53':
    case '57':
    case '58':
      return unavailable(`the database cannot answer at the moment (${error.sqlstate}); try again`, error)
  }
  // Whatever went wrong while a value was read is about the value, under any code: a tsquery that is too deep is XX000.
  const value = refusedValue(error, statements)
  if (value !== null) return new GatewayError('PARSE_ERROR', value, extras)
  if (error.sqlstate.startsWith('XX'))
    return new GatewayError('INTERNAL', 'the database reported an internal error', { cause: error })
  return new GatewayError('QUERY_ERROR', error.message, extras)
}

/** PostgreSQL advises whoever wrote the SQL; of a missing operator our caller is told what they can do. */
function hintOf(error: DatabaseError): string | null {
  const isOurs = error.sqlstate === '42883' && error.where === null
  return isOurs ? "the column's type has no such operator or order; use another operator or column" : error.hint
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
 * A line of an error's context that ends in a parameter (and its value, if the server logs those), without a quote before it: "unnamed portal
 * parameter $2" in whatever language the server speaks. SQL that a function runs is quoted.
 */
const PORTAL_PARAMETER = /^[^"'\n]*\$(\d+)(?= = |$)/gm

/** The index of the parameter whose value PostgreSQL was reading; what it tells of the value's insides comes before. */
function refusedParameter(error: DatabaseError): number | null {
  const named = [...(error.where ?? '').matchAll(PORTAL_PARAMETER)].at(-1)
  return named === undefined ? null : Number(named[1]) - 1
}

/** A message about the value that PostgreSQL could not read as its column's type; null when the error is about something else. */
function refusedValue(error: DatabaseError, statements: readonly BoundStatement[]): string | null {
  const index = refusedParameter(error)
  if (index === null) return null
  const candidates = statements.flatMap(({ statement, values }) => {
    const use = statement.parameters[index]?.use
    const value = values[index]
    return use === undefined || value === undefined ? [] : [{ use, value }]
  })
  // It does not say of which statement. Most messages quote the value; else the first statement would have failed first.
  const refused = candidates.find(({ value }) => error.message.includes(`"${value}"`)) ?? candidates[0]
  if (refused === undefined) return null
  const { use, value } = refused
  const what = use.list ? `a list of ${use.typeName}` : use.typeName
  const where = use.column === null ? 'the value' : `column "${use.column}" is ${what} and`
  const type = use.type === null ? null : baseOf(use.type)
  const labels = type?.kind === 'enum' ? `; expected one of ${type.labels.join(', ')}` : ''
  return `${where} cannot hold "${shorten(value)}": ${error.message}${labels}`
}
