/** Translates errors of PostgreSQL and the pool into those of docs/reference/errors.md. */

import { COLLECTION_GUARD, CONTAINMENT_GUARD, PATTERN_GUARD, TOO_LARGE } from '../access/guard.ts'
import type { ParameterUse } from '../access/parameters.ts'
import { MARKED_ROW, REFUSED_ROW } from '../access/row-filter.ts'
import { baseOf } from '../access/types.ts'
import { OTHER_COUNT, TOO_MANY_ROWS } from '../compile/print-write.ts'
import type { BoundStatement } from '../compile/statement.ts'
import { type ErrorExtras, GatewayError } from '../errors.ts'
import { FAILED_STEP } from '../language/sql/print-json-patch.ts'
import { NESTED_BYTES, NESTED_OVERFLOW } from '../language/sql/print-nest.ts'
import { CancelledError, DatabaseError, UnavailableError, UnresponsiveError } from '../postgres/errors.ts'
import { LIMIT_NAMES } from '../statement-limits.ts'
import { shorten } from '../text/shorten.ts'
import { operatorSuggestion } from './operator-suggestion.ts'
import type { Access } from './settings.ts'

/** Seconds after which a client should retry. */
const RETRY_AFTER = { 'Retry-After': '1' }

/** The attempted statements. */
export interface AttemptedStatements {
  /** The statements that ran, for errors about one of their values. */
  readonly statements: readonly BoundStatement[]
  readonly access: Access
}

/** The GatewayError for an error; errors that are not PostgreSQL's or the pool's are returned unchanged. */
export function toGatewayError(error: unknown, attempt: AttemptedStatements): unknown {
  if (error instanceof DatabaseError) return fromDatabase(error, attempt)
  if (error instanceof UnavailableError) {
    if (error.cause instanceof UnresponsiveError && attempt.access === 'read only') {
      return new GatewayError('TIMEOUT', 'the database did not respond within statement_timeout_ms', { cause: error })
    }
    return error.sent && attempt.access === 'read write'
      ? doubtful('the connection to the database was lost before it confirmed the change', error)
      : unavailable('the database is unavailable; try again later', error)
  }
  if (error instanceof CancelledError) return new GatewayError('TIMEOUT', 'the request was cancelled', { cause: error })
  return error
}

/** The error for a request that has used up its time. */
export function timedOut(extras: ErrorExtras = {}): GatewayError {
  return new GatewayError('TIMEOUT', 'the query took longer than statement_timeout_ms allows and was cancelled', extras)
}

const UNKNOWN_OUTCOME = 'the change may or may not have been made; read the data before sending it again'

/**
 * Undefined column, table, function, object; invalid schema (PostgreSQL manual, appendix A). Every name came
 * from the catalog, so the catalog is out of date.
 */
const STALE: ReadonlySet<string> = new Set(['42703', '42P01', '42883', '42704', '3F000'])

/**
 * Reports whether the catalog is out of date. A value may also name something that does not exist, for
 * example for a column of type `regclass`; that is excluded.
 */
export function isStaleSchema(error: unknown): boolean {
  return error instanceof DatabaseError && STALE.has(error.sqlstate) && refusedParameter(error) === null
}

function unavailable(message: string, cause: unknown, hint?: string): GatewayError {
  return new GatewayError('UNAVAILABLE', message, {
    headers: RETRY_AFTER,
    cause,
    ...(cause instanceof DatabaseError ? { details: detailsOf(cause) } : {}),
    ...(hint === undefined ? {} : { hint }),
  })
}

/** The error for a change that may have been committed. */
function doubtful(message: string, cause: unknown, hint: string = UNKNOWN_OUTCOME): GatewayError {
  const details = cause instanceof DatabaseError ? detailsOf(cause) : {}
  return new GatewayError('UNAVAILABLE', message, {
    headers: RETRY_AFTER,
    details: { ...details, outcome: 'unknown' },
    hint,
    cause,
  })
}

function fromDatabase(error: DatabaseError, { statements, access }: AttemptedStatements): GatewayError {
  const written = TOO_MANY.exec(error.message)
  if (written !== null && error.sqlstate === '22P02') return tooManyRows(written[1] ?? '', error)
  if (error.message.includes(OTHER_COUNT) && error.sqlstate === '22P02') return missingRow(error)
  if (error.message.includes(REFUSED_ROW)) return refusedRow(error)
  if (error.message.includes(MARKED_ROW)) return takenKey(error)
  const step = FAILED_OPERATION.exec(error.message)
  if (step !== null) return failedOperation(Number(step[1]), step[2] === 'test', error)
  const built = TOO_LARGE_VALUE.exec(error.message)
  if (built !== null) return tooLarge(built[1] ?? '', error)
  if (isNestedOverflow(error, statements)) return tooManyNestedBytes(error)
  const { sqlstate } = error
  const meaning = MEANING[sqlstate] ?? MEANING[sqlstate.slice(0, 2)] ?? 'refusal'
  if (isOutage(error) || meaning === 'outage') {
    return unavailable(`the database cannot respond at the moment (${sqlstate}); try again later`, error)
  }
  if (access === 'read write') {
    if (meaning === 'doubt') return doubtful('the database cannot report the outcome of the change', error)
    if (sqlstate === READ_ONLY) return unavailable('the database is read-only at the moment; try again later', error)
    if (isOversize(error)) return doubtful('the changed rows exceed the size limit of a response', error, OVERSIZE)
  }
  const message = limited(error.message)
  const hint = hintOf(error)
  const extras = { details: detailsOf(error), ...(hint === null ? {} : { hint: limited(hint) }), cause: error }
  if (isOversize(error) && RESULT_BYTES.test(message)) {
    const limit = LIMIT_NAMES.maxResultBytes
    return new GatewayError('QUERY_ERROR', `${message} (${limit})`, { ...extras, limit })
  }
  switch (meaning) {
    case 'time':
      return timedOut(extras)
    case 'permission':
      return new GatewayError('FORBIDDEN', message, extras)
    case 'conflict':
      return new GatewayError('UNAVAILABLE', `${message}; nothing was changed, try again`, {
        ...extras,
        headers: RETRY_AFTER,
      })
  }
  // An error while reading a value is about the value, under any code: a tsquery that is too deep is XX000.
  const refused = refusedValue(error, statements)
  if (refused !== null) {
    const meant = operatorSuggestion(refused.value)
    return new GatewayError('PARSE_ERROR', refused.message, { ...extras, ...(meant === null ? {} : { hint: meant }) })
  }
  if (meaning === 'defect' && !isAboutBody(error, statements)) {
    return new GatewayError('INTERNAL', `the database reported an internal error (${sqlstate})`, { cause: error })
  }
  return new GatewayError('QUERY_ERROR', message, extras)
}

/**
 * Input functions of some types, such as `hstore` before PostgreSQL 16, report an invalid value as an
 * internal error. In a body it has no context; in the database's own code it has one.
 */
function isAboutBody({ sqlstate, where }: DatabaseError, statements: readonly BoundStatement[]): boolean {
  const hasBody = statements.some(({ values }) => values.some(value => value !== null && typeof value !== 'string'))
  return sqlstate === 'XX000' && where === null && hasBody
}

/**
 * The meaning of an error for the request:
 * - `refusal`: this request with this data is refused, by a constraint, a type, or a function's exception.
 * - `permission`: the caller lacks a privilege.
 * - `time`: it took too long.
 * - `conflict`: it conflicted with another request and was rolled back; a retry may succeed.
 * - `outage`: the server or its machine lacks something, whatever is requested.
 * - `doubt`: it is unknown whether the transaction was committed.
 * - `defect`: the database's own code, definition or data is broken; no other request would fix it. The log
 *   has details.
 */
type ErrorMeaning = 'refusal' | 'permission' | 'time' | 'conflict' | 'outage' | 'doubt' | 'defect'

/** By SQLSTATE, or else by its class (PostgreSQL manual, appendix A); everything else is a refusal. */
const MEANING: Readonly<Record<string, ErrorMeaning>> = {
  '08': 'outage', // connection exception
  '08007': 'doubt', // transaction resolution unknown
  '0B': 'defect', // invalid transaction initiation
  '0Z': 'defect', // diagnostics exception
  '24': 'defect', // invalid cursor state
  '25': 'defect', // invalid transaction state
  '25006': 'refusal', // read-only transaction: of a read, a function that is declared STABLE but is not
  '25P03': 'time', // idle in transaction for too long
  '25P04': 'time', // transaction timeout
  '26': 'defect', // invalid statement name
  '27': 'defect', // a trigger changed the row that it was fired for
  '28': 'permission', // invalid authorization, as a function raises it
  '2D': 'defect', // invalid transaction termination
  '2F': 'defect', // SQL routine exception
  '34': 'defect', // invalid cursor name
  '39': 'defect', // external routine invocation exception
  '3B': 'defect', // savepoint exception
  '3D': 'defect', // invalid catalog name
  '40': 'conflict', // transaction rollback: serialization, deadlock
  '40002': 'refusal', // integrity constraint violation
  '40003': 'doubt', // statement completion unknown
  '42501': 'permission', // insufficient privilege, row-level security
  '42P17': 'defect', // invalid definition: a policy that asks itself
  '53': 'outage', // insufficient resources
  '55006': 'conflict', // object in use
  '55P03': 'conflict', // lock not available
  '57': 'outage', // operator intervention
  '57014': 'time', // query cancelled
  '58': 'outage', // system error
  '72': 'conflict', // snapshot too old
  F0: 'defect', // configuration file error
  HV: 'defect', // foreign data wrapper error
  HV001: 'outage', // out of memory
  HV00N: 'outage', // unable to establish a connection
  P0004: 'defect', // assert failure
  XX: 'defect', // internal error
}

/**
 * For a write: a hot standby, or a server that was made read-only. Another server, or this one later, accepts
 * it.
 */
const READ_ONLY = '25006'

/**
 * A prepared statement that is invalid twice in a row: the schema is being changed, or a pooler mixes
 * sessions. The request is not the cause.
 */
function isOutage(error: DatabaseError): boolean {
  return (
    error.where === null &&
    (error.sqlstate === '26000' || (error.sqlstate === '0A000' && error.routine === 'RevalidateCachedQuery'))
  )
}

/** The gateway's own error (postgres/batch.ts): the result was too large, and the change may be committed. */
export function isOversize(error: unknown): boolean {
  return error instanceof DatabaseError && error.sqlstate === '54000' && error.routine === null
}

/** Reports whether PostgreSQL reports the function, trigger or inner statement in which an error occurred. */
export function isRaisedWithin(error: unknown): boolean {
  return error instanceof GatewayError && error.cause instanceof DatabaseError && error.cause.where !== null
}

/** The message about a result above `max_result_bytes`. The limit on one row of a stream is not a setting. */
const RESULT_BYTES = /^the result exceeds/

const OVERSIZE = `${UNKNOWN_OUTCOME}, and request fewer columns with returning, or none with Prefer: return=minimal`

/**
 * Limit on the length of a quoted value: PostgreSQL quotes values completely, and a body may be one value.
 */
const TEXT_CHARACTERS_MAX = 1_000

const UNPAIRED_SURROGATE = /[\ud800-\udbff]$/

function limited(text: string): string {
  return text.length <= TEXT_CHARACTERS_MAX
    ? text
    : `${text.slice(0, TEXT_CHARACTERS_MAX).replace(UNPAIRED_SURROGATE, '')}…`
}

/** See `compile/print-write`: PostgreSQL quotes the text that it could not read, in any language. */
const TOO_MANY = new RegExp(`${TOO_MANY_ROWS}(\\d+)`)

function tooManyRows(count: string, cause: DatabaseError): GatewayError {
  return new GatewayError(
    'PARSE_ERROR',
    `the filters match ${count} rows, more than the limit in X-Max-Affected; nothing was changed`,
    { cause, hint: 'narrow the filters, or send X-Max-Affected with a larger number' },
  )
}

function missingRow(cause: DatabaseError): GatewayError {
  return new GatewayError('NOT_FOUND', 'a row that the body names does not exist, or you cannot write it', { cause })
}

/** See `access/guard`. */
const TOO_LARGE_VALUE = new RegExp(`${TOO_LARGE}(with recursive|\\w+) `)

function tooLarge(name: string, cause: DatabaseError): GatewayError {
  const limit = name === 'generate_series' ? LIMIT_NAMES.maxSeriesRows : LIMIT_NAMES.maxBuiltValueBytes
  if (name === PATTERN_GUARD) {
    const message =
      'a computed pattern of like or ilike is longer than a sixteenth of ' +
      `${LIMIT_NAMES.maxPatternBytes}; search for a shorter text`
    return new GatewayError('PARSE_ERROR', message, { cause, limit: LIMIT_NAMES.maxPatternBytes })
  }
  if (name === CONTAINMENT_GUARD) {
    const { maxContainedElements } = LIMIT_NAMES
    const message = `a computed operand of @>, <@, &&, ?| or ?& has more elements than ${maxContainedElements}`
    return new GatewayError('PARSE_ERROR', message, { cause, limit: maxContainedElements })
  }
  if (name === COLLECTION_GUARD) {
    const { maxCollectedBytes } = LIMIT_NAMES
    const message = `the aggregates of the query collect more bytes than ${maxCollectedBytes} allows; request less`
    return new GatewayError('PARSE_ERROR', message, { cause, limit: maxCollectedBytes })
  }
  if (name === 'power' || name === 'exp') {
    const message = `"${name}" would compute a number of more than 1000 digits; use smaller numbers`
    return new GatewayError('PARSE_ERROR', message, { cause, limit })
  }
  if (SEARCHING.has(name)) {
    const message =
      `"${name}" would compare too many characters: the lengths of its two texts multiply to more ` +
      `than 64 times ${limit}; use shorter texts`
    return new GatewayError('PARSE_ERROR', message, { cause, limit })
  }
  const what = name === 'generate_series' ? 'would make more rows' : 'would build a larger value'
  return new GatewayError('PARSE_ERROR', `"${name}" ${what} than ${limit} allows; request less`, { cause, limit })
}

/**
 * Reports whether an array of related rows reached its limit (language/sql/print-nest). An overflow in an
 * expression of the same statement looks the same; one in a function has a context with its name.
 */
function isNestedOverflow({ routine, where }: DatabaseError, statements: readonly BoundStatement[]): boolean {
  if (routine !== NESTED_OVERFLOW || where !== null) return false
  return statements.some(({ statement }) => statement.text.includes(NESTED_BYTES))
}

function tooManyNestedBytes(cause: DatabaseError): GatewayError {
  const { maxCollectedBytes: limit } = LIMIT_NAMES
  const message = `the related rows of one row have more bytes than ${limit} allows; request fewer rows or columns`
  return new GatewayError('PARSE_ERROR', message, { cause, limit })
}

/** Their results are bounded by the lengths of their arguments (access/built-values). */
const SEARCHING: ReadonlySet<string> = new Set(
  'strpos position split_part string_to_array string_to_table translate btrim ltrim rtrim'.split(' '),
)

function refusedRow(cause: DatabaseError): GatewayError {
  return new GatewayError('FORBIDDEN', 'the policy does not allow writing this row; nothing was changed', {
    cause,
  })
}

/** An upsert met a row that is marked as deleted: its key is taken, and the row cannot be updated. */
function takenKey(cause: DatabaseError): GatewayError {
  return new GatewayError('QUERY_ERROR', 'a deleted row still has this key, so the key cannot be used again', {
    details: { ...detailsOf(cause), sqlstate: UNIQUE_VIOLATION },
    cause,
  })
}

const FAILED_OPERATION = new RegExp(`${FAILED_STEP}(\\d+) (test|path)`)

/** An operation of a JSON Patch failed. `number` counts from 1. */
function failedOperation(number: number, isTest: boolean, cause: DatabaseError): GatewayError {
  const at = `operation ${number} of the patch`
  const details = { operation: number - 1 }
  return isTest
    ? new GatewayError('TEST_FAILED', `${at} is a test that the row does not meet; nothing was changed`, {
        details,
        cause,
      })
    : new GatewayError('PATH_NOT_FOUND', `${at} has a path that does not exist in the row; nothing was changed`, {
        details,
        cause,
      })
}

const UNIQUE_VIOLATION = '23505'

/**
 * PostgreSQL's hints are meant for the author of the SQL and may name columns that the caller cannot see; for
 * a missing operator, the caller gets a hint of the gateway's. An error raised by a function has a context.
 */
function hintOf(error: DatabaseError): string | null {
  if (error.where !== null || !error.sqlstate.startsWith('42')) return error.hint
  return error.sqlstate === '42883' && error.routine !== 'ParseFuncOrColumn'
    ? "the column's type has no such operator or order; use another operator or column"
    : null
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
 * A line of an error's context that ends with a parameter (and its value, if the server logs those), without
 * a quote before it: "unnamed portal parameter $2", in any language. SQL that a function runs is quoted.
 */
const PORTAL_PARAMETER = /^[^"'\n]*\$(\d+)(?= = |$)/gm

/**
 * The index of the parameter whose value PostgreSQL was reading, from the last line of the context that names
 * one: earlier lines are about parts of the value.
 */
function refusedParameter(error: DatabaseError): number | null {
  const named = [...(error.where ?? '').matchAll(PORTAL_PARAMETER)].at(-1)
  return named === undefined ? null : Number(named[1]) - 1
}

/** The type that PostgreSQL assumed is only in its message. */
const LITERAL: ParameterUse = { typeName: '', type: null, subject: null, list: false }

interface RefusedValue {
  readonly value: string
  readonly message: string
}

/**
 * A message about a value that PostgreSQL could not read as its column's type; null if the error is about
 * something else.
 */
function refusedValue(error: DatabaseError, statements: readonly BoundStatement[]): RefusedValue | null {
  const index = refusedParameter(error)
  if (index === null) return null
  const candidates = statements.flatMap(({ statement, values }) => {
    const parameter = statement.parameters[index]
    const value = values[index]
    // Bodies are Buffers and other values are strings; for a body, PostgreSQL's message describes the
    // problem.
    if (parameter === undefined || typeof value !== 'string') return []
    return [{ use: 'literal' in parameter ? LITERAL : parameter.use, value }]
  })
  // PostgreSQL does not report which statement failed. Most messages quote the value; if not, the first
  // statement is assumed, because it would fail first.
  const refused = candidates.find(({ value }) => error.message.includes(`"${value}"`)) ?? candidates[0]
  if (refused === undefined) return null
  const { use } = refused
  const element = use.list ? elementIn(refused.value, error.message) : null
  const value = element ?? refused.value
  const what = use.list && element === null ? `a list of ${use.typeName}` : use.typeName
  const shown = `"${shorten(value)}"`
  const description =
    use.subject === null ? `the value ${shown} is not accepted` : `${use.subject} is ${what} and cannot hold ${shown}`
  const type = use.type === null ? null : baseOf(use.type)
  const labels = type?.kind === 'enum' ? `; expected one of ${type.labels.join(', ')}` : ''
  return { value, message: `${description}: ${limited(error.message)}${labels}` }
}

/** The element of a list that PostgreSQL quotes; null if it quotes none, or more than one. */
function elementIn(list: string, message: string): string | null {
  const quoted = QUOTED_TEXT.exec(message)?.[1]?.replace(FRENCH_SPACES, '')
  return quoted !== undefined && list.includes(`"${quoted.replace(/["\\]/g, '\\$&')}"`) ? quoted : null
}

/** From the first quotation mark to the last, in any language. */
const QUOTED_TEXT = /["„«»“](.*)["“”»«]/s

const FRENCH_SPACES = /^[\u00a0\u202f]|[\u00a0\u202f]$/g
