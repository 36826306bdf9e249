/** Statements whose estimate holds for their own values alone. */
import type { Get } from '../language/tree/ast.ts'
import { visit } from '../language/tree/walk.ts'

/**
 * Whether PostgreSQL may estimate any number of rows for other values of the same statement: a function in it returns a set, as in `generate_series(1, $1)`. What
 * it is given may be a column that stands for a parameter, so its arguments are not looked at.
 */
export function isEstimatedEachTime(query: Get): boolean {
  let each = false
  visit(query, {
    call(call) {
      each ||= call.kind === 'function source' || isOfDatabase(call.schema) || SETS.has(call.name.toLowerCase())
    },
  })
  return each
}

/** Of PostgreSQL's functions that a query may call, those that return sets (PostgreSQL manual, 9.26 and the chapters of their types). */
const SETS: ReadonlySet<string> = new Set(
  `generate_series generate_subscripts unnest string_to_table regexp_matches regexp_split_to_table json_array_elements jsonb_array_elements
   json_array_elements_text jsonb_array_elements_text json_each jsonb_each json_each_text jsonb_each_text json_object_keys jsonb_object_keys
   jsonb_path_query jsonb_path_query_tz`.split(/\s+/),
)

/** It may return a set, and estimate it by its arguments. */
function isOfDatabase(schema: string | null): boolean {
  return schema !== null && schema !== 'pg_catalog'
}
