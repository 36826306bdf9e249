/** Errors in the form of PostgREST: `{code, details, hint, message}`, with its codes and statuses. */
import type { Table } from '../catalog/model.ts'
import { type ErrorCode, GatewayError } from '../errors.ts'
import type { Relationship } from './relationship.ts'

/** The parts of an error other than its code and message. */
interface Extras {
  readonly details?: unknown
  readonly hint?: string | null
  readonly headers?: Readonly<Record<string, string>>
  readonly cause?: unknown
}

/** An error with a code of PostgREST, or with PostgreSQL's SQLSTATE. */
export class PostgrestError extends GatewayError {
  /** `PGRST100`, or an SQLSTATE. */
  readonly sqlCode: string
  readonly #status: number

  constructor(status: number, sqlCode: string, message: string, extras: Extras = {}) {
    super(codeOf(status), message, {
      details: extras.details ?? null,
      headers: extras.headers ?? {},
      ...(extras.hint == null ? {} : { hint: extras.hint }),
      ...(extras.cause === undefined ? {} : { cause: extras.cause }),
    })
    this.name = 'PostgrestError'
    this.sqlCode = sqlCode
    this.#status = status
  }

  override get status(): number {
    return this.#status
  }
}

/** The gateway's error code for a status, for log and metrics. */
function codeOf(status: number): ErrorCode {
  switch (status) {
    case 401:
      return 'UNAUTHORIZED'
    case 403:
      return 'FORBIDDEN'
    case 404:
      return 'NOT_FOUND'
    case 405:
      return 'METHOD_NOT_ALLOWED'
    case 503:
      return 'UNAVAILABLE'
    default:
      return status >= 500 ? 'INTERNAL' : 'QUERY_ERROR'
  }
}

// ---- requests ---------------------------------------------------------------------------------------------

/**
 * A parameter that does not parse. `message` has the position; `details` has what was found and expected
 * there.
 */
export function invalidParameter(message: string, details: string | null): PostgrestError {
  return new PostgrestError(400, 'PGRST100', message, { details })
}

/** A list of `any` or `all` that is not an array, with PostgreSQL's message. */
export function malformedArray(text: string): PostgrestError {
  return new PostgrestError(400, '22P02', `malformed array literal: "${text}"`)
}

/** A method that functions do not accept. */
export function invalidRpcMethod(method: string): PostgrestError {
  return new PostgrestError(405, 'PGRST101', `Cannot use the ${method} method on RPC`)
}

/** A body that cannot be read. */
export function invalidBody(message: string): PostgrestError {
  return new PostgrestError(400, 'PGRST102', message)
}

/** A range that cannot be answered. `total`: the number of rows, if that is the reason. */
export function invalidRange(details: string, total: number | null = null): PostgrestError {
  return new PostgrestError(416, 'PGRST103', 'Requested range not satisfiable', {
    details,
    ...(total === null ? {} : { headers: { 'Content-Range': `*/${total}` } }),
  })
}

/** A PUT whose filters are not the primary key. */
export function invalidPutFilters(): PostgrestError {
  const message = "Filters must include all and only primary key columns with 'eq' operators"
  return new PostgrestError(405, 'PGRST105', message)
}

/** A profile header with a schema that is not served. */
export function unknownSchema(schema: string, schemas: readonly string[]): PostgrestError {
  return new PostgrestError(406, 'PGRST106', `Invalid schema: ${schema}`, {
    hint: `Only the following schemas are exposed: ${schemas.join(', ')}`,
  })
}

/** An `Accept` header that contains no media type of the resource. */
export function noMediaType(types: readonly string[]): PostgrestError {
  return new PostgrestError(406, 'PGRST107', `None of these media types are available: ${types.join(', ')}`)
}

/** A parameter for a relation that `select` does not embed. */
export function notEmbedded(name: string, alias: string | null = null): PostgrestError {
  const found =
    alias === null
      ? { hint: `Verify that '${name}' is included in the 'select' query parameter.` }
      : {
          details: 'Target names are not allowed in filters if they have an alias',
          hint: `Change '${name}' to '${alias}' in filters, orders or limits.`,
        }
  return new PostgrestError(400, 'PGRST108', `'${name}' is not an embedded resource in this request`, found)
}

/** Invalid settings that the statement made for the response. */
export function invalidResponseHeaders(): PostgrestError {
  const message = 'response.headers guc must be a JSON array composed of objects with a single key and a string value'
  return new PostgrestError(500, 'PGRST111', message)
}

/** Likewise. */
export function invalidResponseStatus(): PostgrestError {
  return new PostgrestError(500, 'PGRST112', 'response.status guc must be a valid status code')
}

/** A PUT with a range. */
export function rangeOfPut(): PostgrestError {
  return new PostgrestError(400, 'PGRST114', 'limit/offset querystring parameters are not allowed for PUT')
}

/** A PUT whose body has another key than its filters. */
export function otherPutKey(): PostgrestError {
  return new PostgrestError(400, 'PGRST115', 'Payload values do not match URL in primary key column(s)')
}

/** A result of more or fewer rows than the one that was requested. */
export function notSingular(rows: number): PostgrestError {
  return new PostgrestError(406, 'PGRST116', 'Cannot coerce the result to a single JSON object', {
    details: `The result contains ${rows} rows`,
  })
}

/** A method that no resource accepts. */
export function unsupportedMethod(method: string): PostgrestError {
  return new PostgrestError(405, 'PGRST117', `Unsupported HTTP method: ${method}`)
}

/** Preferences that are not known, with `handling=strict`. */
export function invalidPreferences(preferences: readonly string[]): PostgrestError {
  return new PostgrestError(400, 'PGRST122', 'Invalid preferences given with handling=strict', {
    details: `Invalid preferences: ${preferences.join(', ')}`,
  })
}

/** An aggregate while aggregates are disabled. */
export function noAggregates(): PostgrestError {
  return new PostgrestError(400, 'PGRST123', 'Use of aggregate functions is not allowed')
}

/** More affected rows than `max-affected`. */
export function tooManyAffected(rows: number): PostgrestError {
  return new PostgrestError(400, 'PGRST124', 'Query result exceeds max-affected preference constraint', {
    details: `The query affects ${rows} rows`,
  })
}

/** A limit on the affected rows of a function that returns at most one value. */
export function notSetReturning(): PostgrestError {
  const message = 'Function must return SETOF or TABLE when max-affected preference is used with handling=strict'
  return new PostgrestError(400, 'PGRST128', message)
}

/** A preferred timeout above that of the role or of the gateway, in milliseconds. */
export function timeoutTooLong(maxMs: number): PostgrestError {
  return new PostgrestError(400, 'PGRST129', 'Timeout preference exceeded maximum allowed', {
    details: `The maximum timeout allowed is ${Math.floor(maxMs / 1000)}s`,
    hint: 'Reduce the timeout',
  })
}

/** A path that does not name a resource. */
export function invalidPath(): PostgrestError {
  return new PostgrestError(404, 'PGRST125', 'Invalid path specified in request URL')
}

/** The root, while its document is disabled. */
export function rootDisabled(): PostgrestError {
  return new PostgrestError(404, 'PGRST126', 'Root endpoint metadata is disabled')
}

/** A request that the gateway cannot answer in this dialect. */
export function notImplemented(details: string): PostgrestError {
  return new PostgrestError(400, 'PGRST127', 'Feature not implemented', { details })
}

// ---- names ------------------------------------------------------------------------------------------------

/** A relation that cannot be embedded. `near`: the nearest name, or null. */
export function noRelationship(
  table: Pick<Table, 'schema' | 'name'>,
  name: string,
  hint: string | null,
  near: string | null,
): PostgrestError {
  const { schema, name: origin } = table
  const using = hint === null ? '' : ` using the hint '${hint}'`
  return new PostgrestError(
    400,
    'PGRST200',
    `Could not find a relationship between '${origin}' and '${name}' in the schema cache`,
    {
      details:
        `Searched for a foreign key relationship between '${origin}' and '${name}'${using} in the schema ` +
        `'${schema}', but no matches were found.`,
      hint: near === null ? null : `Perhaps you meant '${near}' instead of '${name}'.`,
    },
  )
}

/** A relation that can be embedded in several ways. */
export function ambiguousRelationship(origin: string, name: string, found: readonly Relationship[]): PostgrestError {
  const choices = found.map(({ constraint, junction }) => `'${name}!${junction?.table.name ?? constraint}'`)
  return new PostgrestError(
    300,
    'PGRST201',
    `Could not embed because more than one relationship was found for '${origin}' and '${name}'`,
    {
      details: found.map(relationship => ({
        cardinality: relationship.cardinality,
        embedding: `${origin} with ${relationship.to.name}`,
        relationship: describeRelationship(relationship),
      })),
      hint:
        `Try changing '${name}' to one of the following: ${choices.join(', ')}. ` +
        "Find the desired relationship in the 'details' key.",
    },
  )
}

function describeRelationship({ from, to, columns, toColumns, constraint, junction }: Relationship): string {
  const list = (of: string, names: readonly string[]) => `${of}(${names.join(', ')})`
  if (junction === null) return `${constraint} using ${list(from.name, columns)} and ${list(to.name, toColumns)}`
  const { table } = junction
  return `${table.name} using ${list(constraint, junction.from)} and ${list(junction.constraint, junction.to)}`
}

/** An order by the columns of a relation with several rows. */
export function noRelatedOrder(origin: string, name: string): PostgrestError {
  return new PostgrestError(400, 'PGRST118', `A related order on '${name}' is not possible`, {
    details: `'${origin}' and '${name}' do not form a many-to-one or one-to-one relationship`,
  })
}

/** A filter on an embedded relation that does not test for its presence. */
export function badEmbedFilter(name: string): PostgrestError {
  return new PostgrestError(400, 'PGRST120', `Bad operator on the '${name}' embedded resource`, {
    details: 'Only is null or not is null filters are allowed on embedded resources',
  })
}

/** A table that the schema does not have. `near`: the nearest name, or null. */
export function undefinedTable(schema: string, name: string, near: string | null): PostgrestError {
  return new PostgrestError(404, 'PGRST205', `Could not find the table '${schema}.${name}' in the schema cache`, {
    hint: near === null ? null : `Perhaps you meant the table '${schema}.${near}'`,
  })
}

/** The call of a function that does not exist. `bodyType`: the media type of the body, if there is one. */
export function undefinedFunction({ schema, name, keys, bodyType }: UnknownCall, hint: string | null): PostgrestError {
  const whole = bodyType === null ? undefined : WHOLE_BODY_TYPES[bodyType]
  const called = `${schema}.${name}`
  const listed = keys.length === 0 ? ' without parameters' : `(${keys.join(', ')})`
  const searched =
    keys.length === 0 ? ' without parameters' : ` with parameter${keys.length > 1 ? 's' : ''} ${keys.join(', ')}`
  const unnamed = bodyType === 'application/json' ? ' or with a single unnamed json/jsonb parameter' : ''
  const how = whole === undefined ? `${searched}${unnamed}` : ` with a single unnamed ${whole} parameter`
  const message = `Could not find the function ${called}${whole === undefined ? listed : ''} in the schema cache`
  const details = `Searched for the function ${called}${how}, but no matches were found in the schema cache.`
  return new PostgrestError(404, 'PGRST202', message, { details, hint })
}

interface UnknownCall {
  readonly schema: string
  readonly name: string
  readonly keys: readonly string[]
  readonly bodyType: string | null
}

const WHOLE_BODY_TYPES: Readonly<Record<string, string>> = {
  ...{ 'text/plain': 'text', 'text/xml': 'xml', 'application/octet-stream': 'bytea' },
}

/** A call that several functions accept. */
export function ambiguousFunction(candidates: readonly string[]): PostgrestError {
  const message = `Could not choose the best candidate function between: ${candidates.join(', ')}`
  const hint =
    'Try renaming the parameters or the function itself in the database so function overloading can be resolved'
  return new PostgrestError(300, 'PGRST203', message, { hint })
}

/** A column of the body or of `columns` that the table does not have. */
export function unknownBodyColumn(column: string, table: string): PostgrestError {
  return new PostgrestError(400, 'PGRST204', `Could not find the '${column}' column of '${table}' in the schema cache`)
}

/** A column of a filter, of `select` or of `order` that the table does not have, as PostgreSQL reports it. */
export function undefinedColumn(column: string, table: string, near: readonly string[]): PostgrestError {
  const columns = near.map(name => `the column "${table}.${name}"`)
  const hint = columns.length === 0 ? null : `Perhaps you meant to reference ${columns.join(' or ')}.`
  return new PostgrestError(400, '42703', `column ${table}.${column} does not exist`, { hint })
}

/** A cast to a type that is not known, as PostgreSQL reports it. */
export function undefinedType(name: string): PostgrestError {
  return new PostgrestError(400, '42704', `type "${name}" does not exist`)
}

/** An operator that these types do not have, as PostgreSQL reports it for a literal on the right. */
export function undefinedOperator(left: string, operator: string, right: string): PostgrestError {
  return new PostgrestError(404, '42883', `operator does not exist: ${left} ${operator} ${right}`, {
    hint: 'No operator matches the given name and argument types. You might need to add explicit type casts.',
  })
}

/** A value for a column that PostgreSQL fills in itself, as PostgreSQL reports it. */
export function notWritable(
  name: string,
  kind: 'generated' | 'identity',
  statement: 'INSERT' | 'UPDATE',
): PostgrestError {
  const message =
    statement === 'INSERT'
      ? `cannot insert a non-DEFAULT value into column "${name}"`
      : `column "${name}" can only be updated to DEFAULT`
  const what = kind === 'generated' ? 'a generated column' : 'an identity column defined as GENERATED ALWAYS'
  return new PostgrestError(400, '428C9', message, {
    details: `Column "${name}" is ${what}.`,
    hint: kind === 'identity' && statement === 'INSERT' ? 'Use OVERRIDING SYSTEM VALUE to override.' : null,
  })
}

// ---- callers ----------------------------------------------------------------------------------------------

/** A token that cannot be verified. */
export function invalidToken(message: string, extras: Pick<Extras, 'details' | 'cause'> = {}): PostgrestError {
  return refusedToken('PGRST301', message, extras)
}

/** A token whose claims are not accepted. */
export function invalidClaims(message: string, cause?: unknown): PostgrestError {
  return refusedToken('PGRST303', message, { cause })
}

function refusedToken(code: string, message: string, extras: Extras): PostgrestError {
  const challenge = `Bearer error="invalid_token", error_description=${JSON.stringify(message)}`
  return new PostgrestError(401, code, message, { ...extras, headers: { 'WWW-Authenticate': challenge } })
}

/** A request without a token while there is no anonymous role. */
export function tokenRequired(): PostgrestError {
  return new PostgrestError(401, 'PGRST302', 'Anonymous access is disabled', {
    headers: { 'WWW-Authenticate': 'Bearer' },
  })
}

/** A token, although the gateway has no secret to verify it with. */
export function noSecret(): PostgrestError {
  return new PostgrestError(500, 'PGRST300', 'Server lacks JWT secret')
}
