/**
 * The functions that an expression can call.
 * Of PostgreSQL's own: functions that compute a value from their arguments, listed by name. Excluded are
 * functions that read files, settings or other sessions, run text as SQL (`ts_rewrite` does), wait, lock or
 * notify, and those that return a reg type, which turns OIDs into the names of hidden objects.
 * Of the database's: functions that only read, as far as the calling code allows.
 */
import type { Catalog, Column, DatabaseFunction } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { FunctionCall, TableName } from '../language/tree/ast.ts'
import { isKnownAggregate, isOrderedSet, SYNTAX_FUNCTIONS, VALUE_FUNCTIONS } from '../language/tree/functions.ts'
import { nearest } from '../text/nearest.ts'
import { shorten } from '../text/shorten.ts'

/** In the order of the PostgreSQL manual, chapter 9. Aggregates are defined in the language itself. */
const COMPUTING: ReadonlySet<string> = words(`
  coalesce nullif greatest least num_nulls num_nonnulls grouping
  abs cbrt ceil ceiling degrees div erf erfc exp factorial floor gamma gcd lcm lgamma ln log log10 min_scale mod
  pi power radians random round
  scale sign sqrt trim_scale trunc width_bucket acos asin atan atan2 cos cot sin tan sinh cosh tanh asinh acosh atanh
  ascii btrim bit_length casefold char_length character_length chr concat concat_ws format initcap left length
  lower lpad ltrim md5 normalize
  octet_length overlay parse_ident position quote_ident quote_literal quote_nullable regexp_count regexp_instr
  regexp_like regexp_match
  regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table regexp_substr repeat replace reverse
  right rpad rtrim split_part
  starts_with string_to_array string_to_table strpos substr substring to_hex to_bin to_oct translate trim
  unicode_assigned unistr upper
  bit_count crc32 crc32c get_bit get_byte set_bit set_byte sha224 sha256 sha384 sha512 convert_from convert_to
  encode decode
  to_char to_date to_number to_timestamp
  age clock_timestamp current_date current_time current_timestamp date_add date_bin date_part date_subtract
  date_trunc extract isfinite
  justify_days justify_hours justify_interval localtime localtimestamp make_date make_interval make_time
  make_timestamp make_timestamptz now
  statement_timestamp timeofday transaction_timestamp timezone
  enum_first enum_last enum_range
  area center diagonal diameter height isclosed isopen npoints pclose popen radius slope width box circle line
  lseg path point polygon
  abbrev broadcast family host hostmask inet_merge inet_same_family masklen netmask network set_masklen
  macaddr8_set7bit
  array_to_tsvector get_current_ts_config numnode plainto_tsquery phraseto_tsquery querytree setweight strip
  to_tsquery to_tsvector
  ts_delete ts_filter ts_headline ts_rank ts_rank_cd tsquery_phrase tsvector_to_array websearch_to_tsquery
  json_to_tsvector
  jsonb_to_tsvector
  gen_random_uuid uuidv4 uuidv7 uuid_extract_timestamp uuid_extract_version
  to_json to_jsonb array_to_json row_to_json json_build_array jsonb_build_array json_build_object
  jsonb_build_object json_object jsonb_object
  json_array_elements jsonb_array_elements json_array_elements_text jsonb_array_elements_text json_array_length
  jsonb_array_length json_each
  jsonb_each json_each_text jsonb_each_text json_extract_path jsonb_extract_path json_extract_path_text
  jsonb_extract_path_text
  json_object_keys jsonb_object_keys json_strip_nulls jsonb_strip_nulls jsonb_set jsonb_set_lax jsonb_insert
  jsonb_path_exists
  jsonb_path_match jsonb_path_query jsonb_path_query_array jsonb_path_query_first jsonb_path_exists_tz
  jsonb_path_match_tz
  jsonb_path_query_tz jsonb_path_query_array_tz jsonb_path_query_first_tz jsonb_pretty json_typeof jsonb_typeof
  jsonb_concat
  array_append array_cat array_dims array_fill array_length array_lower array_ndims array_position array_positions
  array_prepend array_remove
  array_replace array_reverse array_sample array_shuffle array_sort array_to_string array_upper cardinality
  trim_array unnest
  isempty lower_inc lower_inf upper_inc upper_inf range_merge multirange int4range int8range numrange tsrange
  tstzrange daterange
  int4multirange int8multirange nummultirange tsmultirange tstzmultirange datemultirange
  row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value
  generate_series generate_subscripts
`)

/** True if a database function can be called in this way; decided where its rules are known. */
export type IsCallable = (called: DatabaseFunction, call: FunctionCall) => boolean

/** The name of a function, and the type of its result if that is known. */
export interface CallableName extends Pick<FunctionCall, 'schema' | 'name'> {
  readonly result?: Pick<Column, 'type' | 'typeText'>
}

/** True if the only argument of the function is a row of this table. */
export function isOfRow({ inputs }: DatabaseFunction, { schema, name }: Pick<TableName, 'schema' | 'name'>): boolean {
  const [only] = inputs
  return (
    inputs.length === 1 && only?.type.kind === 'composite' && only.type.schema === schema && only.type.name === name
  )
}

/**
 * The schema-qualified name of the function that the call must use, which cannot mean anything else. Throws
 * `FORBIDDEN` for any other function.
 */
export function callableName(call: FunctionCall, catalog: Catalog, isCallable: IsCallable): CallableName {
  const name = call.name.toLowerCase()
  const isOwn = call.schema === null || call.schema === 'pg_catalog'
  if (isOwn && (COMPUTING.has(name) || isKnownAggregate(name) || isOrderedSet(call))) return ownName(name)
  if (call.represents === true) return representing(call, catalog)
  const bare = call.schema === null || call.schema === catalog.schemas[0]
  const overloads = catalog.functions.get(bare ? call.name : `${call.schema}.${call.name}`) ?? []
  const [known] = overloads
  if (known === undefined) throw notCallable(call)
  // A function of a row computes a column of it. No request writes such a call: it names the column.
  const [only] = call.arguments
  if (only?.kind === 'whole row' && call.arguments.length === 1) {
    const { result } = overloads.find(of => isOfRow(of, only.table)) ?? known
    return { schema: known.schema, name: known.name, ...(result.kind === 'scalar' ? { result: result.column } : {}) }
  }
  const shown = shorten(known.resource)
  // PostgreSQL chooses between overloads later, so all of them must be safe. A function that is merely
  // STABLE can still change a setting that row-level security reads, in the middle of the statement that it
  // protects.
  if (overloads.some(overload => overload.volatility !== 'immutable')) {
    throw new GatewayError(
      'FORBIDDEN',
      `function "${shown}" is not IMMUTABLE, and only IMMUTABLE functions can be called here; ` +
        `call it with POST /api/rpc/${shown}`,
      { span: call.span },
    )
  }
  if (!overloads.every(overload => isCallable(overload, call))) {
    throw new GatewayError('FORBIDDEN', `function "${shown}" cannot be called here`, { span: call.span })
  }
  return { schema: known.schema, name: known.name }
}

/** The function of a cast of the database, which the value of a column is converted with. */
function representing(call: FunctionCall, catalog: Catalog): CallableName {
  const { schema, name } = call
  const all = Array.from(catalog.representations.values()).flatMap(({ toJson, fromJson, fromText }) => [
    ...[toJson, fromJson, fromText],
  ])
  if (!all.some(known => known?.schema === schema && known.name === name)) throw notCallable(call)
  return { schema, name }
}

/**
 * Without a schema, PostgreSQL would call an overload in the search path that matches the arguments better,
 * whatever it does. Key words have no schema; `trim` is the only one that is a function under another name.
 */
function ownName(name: string): Pick<FunctionCall, 'schema' | 'name'> {
  if (name === 'trim') return { schema: 'pg_catalog', name: 'btrim' }
  return { schema: isKeyword(name) ? null : 'pg_catalog', name }
}

function isKeyword(name: string): boolean {
  return name === 'extract' || VALUE_FUNCTIONS.has(name) || (SYNTAX_FUNCTIONS.has(name) && !CALLED_BY_NAME.has(name))
}

/** Functions with an SQL syntax that can also be called like any function. */
const CALLED_BY_NAME: ReadonlySet<string> = new Set(['substring', 'overlay', 'normalize'])

function notCallable(call: FunctionCall): GatewayError {
  const hint = insteadOf(call.name.toLowerCase())
  const name = call.schema === null ? call.name : `${call.schema}.${call.name}`
  return new GatewayError('FORBIDDEN', `function "${shorten(name)}" cannot be called; ${hint}`, { span: call.span })
}

function insteadOf(name: string): string {
  if (name === 'any' || name === 'some') return `compare a list with "in :list" and an array column with tags @> ['a']`
  const near = nearest(name, COMPUTING)
  return near === null ? 'only functions that compute a value can be called here' : `did you mean "${near}"?`
}

function words(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/))
}
