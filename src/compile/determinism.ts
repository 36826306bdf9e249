/**
 * Determinism of functions and values: whether the same arguments, settings and rows always give the same
 * result. The clock, random numbers and the server's internal state do not. A read that contains any of them
 * is never cached.
 */

/**
 * The functions of PostgreSQL that an expression can call (`access/functions`) and whose result changes over
 * time: the VOLATILE ones, and the STABLE ones that read the clock. `age(x)` counts from today, and
 * `timezone` of a time without a date depends on daylight saving time.
 */
const MOVING: ReadonlySet<string> = words(`
  age array_sample array_shuffle clock_timestamp current_date current_time current_timestamp gen_random_uuid
  localtime localtimestamp now random statement_timestamp timeofday timezone transaction_timestamp uuidv4
  uuidv7
`)

/**
 * The STABLE functions of PostgreSQL that depend on arguments and settings only, such as the time zone. Views
 * and policies can contain them. A name that is not listed is not trusted.
 */
const STEADY: ReadonlySet<string> = words(`
  array_to_json array_to_string concat concat_ws convert convert_from convert_to format length quote_literal
  quote_nullable anytextcat textanycat current_database current_schema current_schemas current_setting
  current_user session_user get_current_ts_config date date_add date_cmp_timestamptz date_eq_timestamptz
  date_ge_timestamptz date_gt_timestamptz date_le_timestamptz date_lt_timestamptz date_ne_timestamptz
  date_part date_subtract date_trunc extract generate_series in_range interval_pl_timestamptz make_timestamptz
  overlaps timestamp timestamp_cmp_timestamptz timestamp_eq_timestamptz timestamp_ge_timestamptz
  timestamp_gt_timestamptz timestamp_le_timestamptz timestamp_lt_timestamptz timestamp_ne_timestamptz
  timestamptz timestamptz_cmp_date timestamptz_cmp_timestamp timestamptz_eq_date timestamptz_eq_timestamp
  timestamptz_ge_date timestamptz_ge_timestamp timestamptz_gt_date timestamptz_gt_timestamp
  timestamptz_le_date timestamptz_le_timestamp timestamptz_lt_date timestamptz_lt_timestamp
  timestamptz_mi_interval timestamptz_ne_date timestamptz_ne_timestamp timestamptz_pl_interval to_char to_date
  to_number to_timestamp enum_first enum_last enum_range json_agg json_agg_strict json_build_array
  json_build_object json_object_agg json_object_agg_strict json_object_agg_unique
  json_object_agg_unique_strict json_populate_record json_populate_recordset json_to_record json_to_recordset
  jsonb_agg jsonb_agg_strict jsonb_build_array jsonb_build_object jsonb_object_agg jsonb_object_agg_strict
  jsonb_object_agg_unique jsonb_object_agg_unique_strict jsonb_path_exists_tz jsonb_path_match_tz
  jsonb_path_query_array_tz jsonb_path_query_first_tz jsonb_path_query_tz jsonb_populate_record
  jsonb_populate_recordset jsonb_to_record jsonb_to_recordset row_to_json to_json to_jsonb json_to_tsvector
  jsonb_to_tsvector phraseto_tsquery plainto_tsquery to_tsquery to_tsvector ts_headline ts_match_tq
  ts_match_tt websearch_to_tsquery
`)

/**
 * Reports whether a function of PostgreSQL changes over time. Functions of the database that can be called
 * are IMMUTABLE.
 */
export function changesOverTime(name: string): boolean {
  return MOVING.has(name)
}

/** Reports whether a STABLE function of PostgreSQL depends on arguments and settings only. */
export function isDeterministic(name: string): boolean {
  return STEADY.has(name)
}

/** The input words for dates and times that mean a different moment tomorrow (PostgreSQL manual, 8.5.1.4). */
const CLOCK_WORD = /\b(?:now|today|tomorrow|yesterday)\b/i

/**
 * Reports whether a value could mean a different moment the next time, whatever its type. Executing a read
 * that could have been cached is harmless.
 */
export function hasClockWord(value: string | Buffer | null): boolean {
  return value !== null && CLOCK_WORD.test(typeof value === 'string' ? value : value.toString('latin1'))
}

/** Reports whether SQL text contains such a value as a literal. */
export function hasClockLiteral(sql: string): boolean {
  return CLOCK_WORD.test(sql) && /'[^']*\b(?:now|today|tomorrow|yesterday)\b/i.test(sql)
}

function words(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/))
}
