/**
 * The captured tables: those selected, with their partitions, how each is captured, and whether completely.
 */
import { CAPTURE_TRIGGERS } from './capture.ts'
import { IS_PUBLISHED, PUBLICATION, PUBLISH_TABLE, restoreIdentities, SOURCE_OF_TABLE } from './wal-capture.ts'

const NAMES = CAPTURE_TRIGGERS.map(({ name }) => `'${name}'`).join(', ')

/** The table of selected tables. */
export const SELECTED_TABLES: readonly string[] = [
  `CREATE TABLE IF NOT EXISTS svc.selected ("schema" text, "table" text, PRIMARY KEY ("schema", "table"))`,
  `COMMENT ON TABLE svc.selected IS 'Tables whose changes are captured; an empty ` +
    `name stands for every table of the schema.'`,
]

/**
 * Every table that should be captured. `source`: by triggers or from the write-ahead log; a table has one of
 * them. `arguments` are those of its triggers; `whole`: it has all of them, with these arguments, or is
 * published with its old rows. Foreign tables have no transition tables (PostgreSQL manual, CREATE TRIGGER),
 * so a write that reaches one through its parent would fail. Tables of extensions are excluded. So are tables
 * that no gateway role can SELECT: their changes could not be shown, and their rows must not be logged.
 */
export const CAPTURED_TABLES: string = `SELECT c.oid, n.nspname AS "schema", c.relname AS "table",
  c.relkind, c.relreplident AS identity, r.oid AS root, rn.nspname AS root_schema, r.relname AS root_table,
  v.arguments, w.source, w.published,
  CASE w.source WHEN 'wal' THEN w.published AND (c.relkind = 'p' OR c.relreplident = 'f') AND w.triggers = 0
    ELSE w.triggers = ${CAPTURE_TRIGGERS.length} AND NOT w.published END AS whole
  FROM pg_catalog.pg_class AS c
  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
  JOIN pg_catalog.pg_class AS r ON r.oid = coalesce(pg_catalog.pg_partition_root(c.oid), c.oid)
  JOIN pg_catalog.pg_namespace AS rn ON rn.oid = r.relnamespace
  CROSS JOIN LATERAL (
    SELECT ARRAY[rn.nspname::text, r.relname::text] || coalesce((
      SELECT array_agg(a.attname::text ORDER BY k.place) FROM pg_catalog.pg_constraint AS p
      CROSS JOIN LATERAL unnest(p.conkey) WITH ORDINALITY AS k(attnum, place)
      JOIN pg_catalog.pg_attribute AS a ON a.attrelid = r.oid AND a.attnum = k.attnum
      WHERE p.conrelid = r.oid AND p.contype = 'p'
    ), '{}') AS arguments
  ) AS v
  CROSS JOIN LATERAL (
    SELECT string_agg(convert_to(argument, getdatabaseencoding()) || '\\x00'::bytea, ''::bytea ORDER BY place) AS bytes
    FROM unnest(v.arguments) WITH ORDINALITY AS each(argument, place)
  ) AS b
  CROSS JOIN LATERAL (SELECT ${SOURCE_OF_TABLE} AS source, ${IS_PUBLISHED} AS published,
    (SELECT count(*) FROM pg_catalog.pg_trigger AS t JOIN pg_catalog.pg_proc AS p ON p.oid = t.tgfoid
      JOIN pg_catalog.pg_namespace AS pn ON pn.oid = p.pronamespace
      WHERE t.tgrelid = c.oid AND t.tgname IN (${NAMES}) AND t.tgenabled = 'O'
        AND pn.nspname = 'svc' AND p.proname = substr(t.tgname, 5)
          AND t.tgargs = b.bytes) AS triggers
  ) AS w
  WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't'
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_partition_tree(r.oid) AS p JOIN pg_catalog.pg_class AS f
      ON f.oid = p.relid WHERE f.relkind = 'f')
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits AS i JOIN pg_catalog.pg_class AS f ON f.oid = i.inhrelid
      WHERE i.inhparent = c.oid AND f.relkind = 'f')
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend AS d
      WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
    AND EXISTS (SELECT FROM svc.selected AS s WHERE s."schema" = rn.nspname AND s."table" IN ('', r.relname))
    AND EXISTS (SELECT FROM svc.served AS s JOIN pg_catalog.pg_roles AS g ON g.rolname = s.role
      WHERE has_schema_privilege(g.oid, rn.oid, 'USAGE') AND has_any_column_privilege(g.oid, r.oid, 'SELECT'))`

const create = CAPTURE_TRIGGERS.map(({ name, event, referencing, function: of }) => {
  const trigger = `CREATE TRIGGER ${name} AFTER ${event} ON %I.%I${referencing}`
  return `EXECUTE format('${trigger} FOR EACH STATEMENT EXECUTE FUNCTION svc.${of}(%s)',
      it."schema", it."table", arguments);`
}).join('\n    ')

/**
 * The capture triggers of every table, including those no longer captured. `logged`: the schema and name
 * of the table that the trigger reports.
 */
const ALL_CAPTURE_TRIGGERS = `SELECT t.tgname AS name, n.nspname AS "schema", c.relname AS "table",
      (SELECT array_agg(convert_from(decode(replace(piece, ' ', ''), 'hex'), getdatabaseencoding()) ORDER BY place)
        FROM unnest(string_to_array(regexp_replace(encode(t.tgargs, 'hex'), '(..)', '\\1 ', 'g'), '00 '))
          WITH ORDINALITY AS each(piece, place)
        WHERE place <= 2) AS logged
    FROM pg_catalog.pg_trigger AS t
    JOIN pg_catalog.pg_class AS c ON c.oid = t.tgrelid
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    JOIN pg_catalog.pg_proc AS p ON p.oid = t.tgfoid
    JOIN pg_catalog.pg_namespace AS pn ON pn.oid = p.pronamespace
    WHERE pn.nspname = 'svc' AND n.nspname <> 'svc' AND NOT t.tgisinternal
      AND NOT EXISTS (SELECT FROM (${CAPTURED_TABLES}) AS f WHERE f.oid = c.oid AND f.whole)`

/** Published tables that are not captured from the write-ahead log any more. */
const NO_LONGER_PUBLISHED = `SELECT n.nspname AS "schema", c.relname AS "table" FROM pg_catalog.pg_publication_rel AS pr
    JOIN pg_catalog.pg_publication AS pb ON pb.oid = pr.prpubid
    JOIN pg_catalog.pg_class AS c ON c.oid = pr.prrelid
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE pb.pubname = '${PUBLICATION}'
      AND NOT EXISTS (SELECT FROM (${CAPTURED_TABLES}) AS f WHERE f.oid = c.oid AND f.source = 'wal')`

/**
 * Repairs the capture triggers and returns the tables that were changed: called after an installation, after
 * a partition, table or key was added or changed, and when a gateway finds something missing. The log gets a
 * bulk entry for each table: a partition adds rows when it is attached and removes them when it is detached.
 * Gateways call it, and can only have selected tables captured by it.
 */
export const REPAIR: string = `CREATE OR REPLACE FUNCTION svc.repair() RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '3s' AS $$
DECLARE
  it record;
  arguments text;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('svc.repair'));
  PERFORM set_config('svc.repairing', 'on', true);
  FOR it IN ${ALL_CAPTURE_TRIGGERS}
  LOOP
    EXECUTE format('DROP TRIGGER %I ON %I.%I', it.name, it."schema", it."table");
    IF it.name = 'svc_capture_insert' THEN
      INSERT INTO svc.change ("schema", "table", operation) VALUES (it.logged[1], it.logged[2], 'B');
    END IF;
  END LOOP;
  FOR it IN ${NO_LONGER_PUBLISHED}
  LOOP
    EXECUTE format('LOCK TABLE %I.%I IN SHARE ROW EXCLUSIVE MODE', it."schema", it."table");
    EXECUTE format('ALTER PUBLICATION ${PUBLICATION} DROP TABLE %I.%I', it."schema", it."table");
    INSERT INTO svc.change ("schema", "table", operation) VALUES (it."schema", it."table", 'B');
  END LOOP;
  ${restoreIdentities(`NOT EXISTS (SELECT FROM (${CAPTURED_TABLES}) AS f
    WHERE f.oid = b.relation AND f.source = 'wal')`)}
  FOR it IN SELECT * FROM (${CAPTURED_TABLES}) AS f WHERE NOT f.whole ORDER BY f.oid <> f.root, f."schema", f."table"
  LOOP
    IF it.source = 'wal' THEN
      ${PUBLISH_TABLE}
      INSERT INTO svc.change ("schema", "table", operation) VALUES (it.root_schema, it.root_table, 'B');
      RETURN NEXT format('%I.%I', it."schema", it."table");
      CONTINUE;
    END IF;
    arguments := (SELECT string_agg(quote_literal(argument), ', ' ORDER BY place)
      FROM unnest(it.arguments) WITH ORDINALITY AS each(argument, place));
    ${create}
    INSERT INTO svc.change ("schema", "table", operation) VALUES (it.root_schema, it.root_table, 'B');
    RETURN NEXT format('%I.%I', it."schema", it."table");
  END LOOP;
  PERFORM set_config('svc.repairing', '', true);
END $$`
