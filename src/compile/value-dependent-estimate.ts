/** Statements whose cost estimate is valid for one set of values only. */
import type { Get } from '../language/tree/ast.ts'
import { visit } from '../language/tree/walk.ts'

/**
 * Reports whether PostgreSQL's row estimate of a statement can depend on its values: it contains a function
 * that returns a set, as in `generate_series(1, $1)`. The arguments are not examined, because a column can
 * represent a parameter.
 */
export function hasValueDependentEstimate(query: Get): boolean {
  let each = false
  visit(query, {
    call(call) {
      each ||= call.kind === 'function source' || isOfDatabase(call.schema) || SETS.has(call.name.toLowerCase())
    },
  })
  return each
}

/**
 * The functions of PostgreSQL that a query can call and that return sets (PostgreSQL manual, 9.26 and the
 * chapters of their types).
 */
const SETS: ReadonlySet<string> = new Set(
  `generate_series generate_subscripts unnest string_to_table regexp_matches regexp_split_to_table
   json_array_elements jsonb_array_elements json_array_elements_text jsonb_array_elements_text json_each
   jsonb_each json_each_text jsonb_each_text json_object_keys jsonb_object_keys
   jsonb_path_query jsonb_path_query_tz`.split(/\s+/),
)

/** A function of the database can return a set whose estimate depends on its arguments. */
function isOfDatabase(schema: string | null): boolean {
  return schema !== null && schema !== 'pg_catalog'
}
