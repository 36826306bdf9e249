/**
 * PostgreSQL's keywords by class (PostgreSQL 18, `pg_get_keywords()`; PostgreSQL manual, appendix C). The
 * fourth class, the unreserved keywords, are ordinary names everywhere and need no list.
 */

/** Keywords that always need quotes as a name. */
export const RESERVED: ReadonlySet<string> = words(`
  all analyse analyze and any array as asc asymmetric both case cast check collate column constraint
  create current_catalog current_date current_role current_time current_timestamp current_user default
  deferrable desc distinct do else end except false fetch for foreign from grant group having in
  initially intersect into lateral leading limit localtime localtimestamp not null offset on only or
  order placing primary references returning select session_user some symmetric system_user table then
  to trailing true union unique user using variadic when where window with
`)

/** Keywords that need quotes except as the name of a function or type. */
export const TYPE_OR_FUNCTION: ReadonlySet<string> = words(`
  authorization binary collation concurrently cross current_schema freeze full ilike inner is isnull
  join left like natural notnull outer overlaps right similar tablesample verbose
`)

/**
 * Keywords that need quotes only as the name of a function or type, because PostgreSQL has special syntax for
 * them.
 */
export const COLUMN_ONLY: ReadonlySet<string> = words(`
  between bigint bit boolean char character coalesce dec decimal exists extract float greatest
  grouping inout int integer interval json json_array json_arrayagg json_exists json_object
  json_objectagg json_query json_scalar json_serialize json_table json_value least merge_action
  national nchar none normalize nullif numeric out overlay position precision real row setof smallint
  substring time timestamp treat trim values varchar xmlattributes xmlconcat xmlelement xmlexists
  xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable
`)

function words(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/))
}
