/**
 * Prints the changes of JSON documents: JSON Merge Patch (RFC 7396) and JSON Patch (RFC 6902). A recursive
 * common table applies one step after the other, so the text depends neither on the patch nor on its length.
 */

import type { JsonPatch } from '../tree/ast.ts'
import { unknownNode } from '../tree/error.ts'

/**
 * Begins the quoted value in the error of a step that failed, before its number and `test` or `path`. A
 * caller who sends it in a value changes the error of that request only.
 */
export const FAILED_STEP = 'svc_failed_step '

/** `document` and `patch` are the printed operands, of type jsonb. */
export function printJsonPatch(form: JsonPatch['form'], document: string, patch: string): string {
  switch (form) {
    case 'merge':
      return merged(document, patch)
    case 'operations':
      return patched(document, patch)
    default:
      return unknownNode(form)
  }
}

// ---- JSON Merge Patch ----

/** Each object of the patch is a step, after the object that contains it. */
function merged(document: string, patch: string): string {
  return `CASE WHEN jsonb_typeof(${patch}) = 'object' THEN (WITH RECURSIVE svc_part(path, value) AS (
  SELECT '{}'::text[], ${patch}
  UNION ALL SELECT svc_part.path || m.key, m.value FROM svc_part, jsonb_each(svc_part.value) AS m
    WHERE jsonb_typeof(m.value) = 'object'
), svc_step AS MATERIALIZED (
  SELECT row_number() OVER (ORDER BY cardinality(path)) AS n, path,
    (SELECT coalesce(jsonb_object_agg(m.key, m.value), '{}') FROM jsonb_each(value) AS m
      WHERE jsonb_typeof(m.value) NOT IN ('object', 'null')) AS kept,
    ARRAY(SELECT m.key FROM jsonb_each(value) AS m WHERE jsonb_typeof(m.value) = 'null') AS removed
  FROM svc_part
), svc_document(n, value) AS (
  SELECT 0::bigint, ${document}
  UNION ALL SELECT s.n, CASE WHEN s.path = '{}' THEN o.value ELSE jsonb_set(d.value, s.path, o.value) END
    FROM svc_document AS d JOIN svc_step AS s ON s.n = d.n + 1 CROSS JOIN LATERAL (
      SELECT (CASE WHEN jsonb_typeof(d.value #> s.path) = 'object' THEN d.value #> s.path ELSE '{}' END
        - s.removed) || s.kept AS value
    ) AS o
) SELECT value FROM svc_document ORDER BY n DESC LIMIT 1) ELSE ${patch} END`
}

// ---- JSON Patch ----

const INDEX = `'^(0|[1-9][0-9]{0,8})$'`

function patched(document: string, patch: string): string {
  return `(WITH RECURSIVE svc_step AS MATERIALIZED (
  SELECT o.n, o.item ->> 'op' AS op, o.item -> 'value' AS value,
    ARRAY(SELECT jsonb_array_elements_text(o.item -> 'path')) AS path,
    CASE WHEN o.item ? 'from' THEN ARRAY(SELECT jsonb_array_elements_text(o.item -> 'from')) END AS origin
  FROM jsonb_array_elements(${patch}) WITH ORDINALITY AS o(item, n)
), svc_document(n, value) AS (
  SELECT 0::bigint, ${document}
  UNION ALL SELECT s.n, CASE
    WHEN s.origin IS NOT NULL AND NOT (${isThere('d.value', 's.origin')}) THEN ${failure('path')}
    WHEN s.op = 'test' THEN
      CASE WHEN ${isThere('d.value', 's.path')} AND d.value #> s.path = s.value THEN d.value ELSE ${failure('test')} END
    WHEN s.op IN ('remove', 'replace') THEN CASE
      WHEN NOT (${isThere('d.value', 's.path')}) THEN ${failure('path')}
      WHEN s.op = 'remove' THEN d.value #- s.path
      ELSE jsonb_set(d.value, s.path, s.value, false) END
    WHEN NOT (${isThere('b.value', 'b.parent')}) THEN ${failure('path')}
    ELSE CASE jsonb_typeof(b.value #> b.parent)
      WHEN 'object' THEN jsonb_set(b.value, s.path, b.item)
      WHEN 'array' THEN CASE
        WHEN b.key IN ('-', jsonb_array_length(b.value #> b.parent)::text)
          THEN jsonb_set(b.value, b.parent, (b.value #> b.parent) || jsonb_build_array(b.item))
        WHEN b.key ~ ${INDEX} AND b.value #> s.path IS NOT NULL THEN jsonb_insert(b.value, s.path, b.item)
        ELSE ${failure('path')} END
      ELSE ${failure('path')} END
    END
    FROM svc_document AS d JOIN svc_step AS s ON s.n = d.n + 1 CROSS JOIN LATERAL (
      SELECT CASE WHEN s.op = 'move' THEN d.value #- s.origin ELSE d.value END AS value,
        CASE WHEN s.origin IS NULL THEN s.value ELSE d.value #> s.origin END AS item,
        s.path[:cardinality(s.path) - 1] AS parent, s.path[cardinality(s.path)] AS key
    ) AS b
) SELECT value FROM svc_document ORDER BY n DESC LIMIT 1)`
}

/** PostgreSQL also accepts negative indexes and leading zeros, which JSON Pointer does not. */
function isThere(document: string, path: string): string {
  return `${document} #> ${path} IS NOT NULL AND NOT EXISTS (SELECT FROM generate_series(1, cardinality(${path})) AS i
      WHERE ${path}[i] !~ ${INDEX} AND jsonb_typeof(${document} #> ${path}[:i - 1]) = 'array')`
}

/** The column keeps PostgreSQL from evaluating it before the step. */
function failure(why: 'test' | 'path'): string {
  return `to_jsonb(concat('${FAILED_STEP}', s.n, ' ${why}')::integer)`
}
